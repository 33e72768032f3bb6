"""LostNames: names that torch's traces cannot hold; Kineto writes "unknown" for each that is not printable ASCII.

Regions and functions that are named in Chinese, and all functions of a file that is, would be lost. The events that
torch builds on request still have their names: these are written beside the trace, and put in when it is packed.
"""

import json
import re
from pathlib import Path
from types import FrameType
from typing import Any

from uncork.capture.files import pieces, write_json
from uncork.capture.versions import is_lost

UNKNOWN = b'"name": "unknown"'
EVENT = re.compile(UNKNOWN + rb',\s*"pid": [^,]*,\s*"tid": [^,]*,\s*"ts": ([\d.]+),\s*"dur": ([\d.]+)')
BASE = re.compile(rb'"baseTimeNanoseconds": (\d+)')
"""What all times of the file count from, near its begin or its end."""

Names = dict[str, list[list[int]]]
"""Each lost name with the begin and the length of its events, in ns."""


class LostNames:
    """Whether this process uses names that its traces would lose."""

    def __init__(self) -> None:
        self._are_met = False

    def are_expected(self, frame: FrameType | None) -> bool:
        """Return whether a trace that begins here should have torch build its events.

        They make its end half as long again, so they are asked for only where a name was lost before, or where the
        functions that run now have such a name.

        Args:
            frame: The innermost frame.
        """
        while frame is not None and not self._are_met:
            self._are_met = is_lost(frame.f_code.co_filename + frame.f_code.co_name)
            frame = frame.f_back
        return self._are_met

    def write(self, results: Any, trace: Path, beside: Path) -> None:
        """Write the names that a trace has lost, if torch built its events; else note that there are some.

        Args:
            results: What torch's profiler returned.
            trace: The file that it wrote.
            beside: The file for the names.
        """
        beside.unlink(missing_ok=True)
        if not self._are_met:
            self._are_met = any(UNKNOWN in text for text, _ in pieces(trace, len(UNKNOWN)))
        names: Names = {}
        for event in results.events() if self._are_met else ():
            if is_lost(name := _told(event)) and hasattr(event, "start_ns"):  # older ones have whole microseconds only
                names.setdefault(name, []).append([event.start_ns(), event.duration_ns()])
        if names:
            write_json(beside, names, indent=None)


def _told(event: Any) -> str:
    """Return an event's name; nothing where torch kept no more than its place, and other bytes lie there by now."""
    try:
        return str(event.name())
    except UnicodeDecodeError:  # of a module's own code, which is gone once it is imported
        return ""


def put_back(text: bytes, names: Names) -> bytes:
    """Return a trace with its lost names in their places.

    Args:
        text: The trace as torch wrote it.
        names: The lost names with their events.
    """
    base = BASE.search(text)
    base_ns = int(base[1]) if base else 0
    known = {(begin_ns, length_ns): name for name, events in names.items() for begin_ns, length_ns in events}

    def named(event: re.Match[bytes]) -> bytes:
        name = known.get((base_ns + _to_ns(event[1]), _to_ns(event[2])))
        whole = event[0]
        return whole if name is None else b'"name": ' + json.dumps(name).encode() + whole.removeprefix(UNKNOWN)

    return EVENT.sub(named, text)


def _to_ns(time_us: bytes) -> int:
    """Return a time in microseconds, with up to three places, in nanoseconds; no double holds them all."""
    whole, _, places = time_us.partition(b".")
    return int(whole) * 1000 + int(places[:3].ljust(3, b"0"))
