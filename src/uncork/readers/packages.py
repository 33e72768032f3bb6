"""A recording with folders in front of packages whose names mislead: ``fastai/learner.py`` is not the user's own."""

import json
import re
from dataclasses import replace

from uncork.events import EventTable, Strings
from uncork.recording import Recording

INSTALLED = "site-packages"
MOST_PACKAGES = 10_000
PLACE = re.compile(rb"([^/\\():]+?)(?:\.py|[/\\][^\n]*\.py)[(:]\d")
"""A frame's name, or the place of a call: both begin with a package, since torch cuts what is on ``sys.path``."""


def with_packages(recording: Recording, told: object) -> Recording:
    """Return a recording of a run with the folders of some packages in front of their files.

    Args:
        recording: As read.
        told: What the recorder saw of them (`uncork.capture.packages`).
    """
    folders = _folders(told)
    if not folders:
        return recording
    deep = recording.deep
    return replace(
        recording,
        events=_placed(recording.events, folders),
        deep=replace(deep, events=_placed(deep.events, folders)) if deep else None,
    )


def _folders(told: object) -> dict[bytes, bytes]:
    """Return what stands in front of the files of each package, as texts stand in traces."""
    told = told if isinstance(told, dict) else {}
    installed, own = told.get("installed"), told.get("own")
    folders = [(name, INSTALLED) for name in (installed if isinstance(installed, list) else ())]
    folders += (own if isinstance(own, dict) else {}).items()
    texts = [(name, at) for name, at in folders if isinstance(name, str) and isinstance(at, str)]
    return {_raw(name): _raw(at.rstrip("/\\") + "/") for name, at in texts[:MOST_PACKAGES] if name and at}


def _raw(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")


def _placed(table: EventTable | None, folders: dict[bytes, bytes]) -> EventTable | None:
    """Return events whose frames lie in their folders."""
    if table is None:
        return None
    strings = table.strings
    texts = [strings.raw(index) for index in range(len(strings))]
    fronts = [folders.get(found[1], b"") if (found := PLACE.match(text)) else b"" for text in texts]
    if not any(fronts):
        return table
    return replace(table, strings=Strings.of_raw([front + text for front, text in zip(fronts, texts, strict=True)]))
