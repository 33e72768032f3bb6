"""Memory snapshots from lines of a sketch, in the form that torch 2.13 dumps.

Each line begins with ``snapshot``; the actions stand in the order in which they happen, 1 ms apart::

    snapshot reserved 8GiB                                   # a segment; several add up
    snapshot old 2GiB                                        # in use from before the history to its end
    snapshot alloc a 3GiB train.py:12:forward < torch/nn/modules/module.py:1750:_call_impl
    snapshot free a torch::autograd::Engine::thread_main
    snapshot alloc b x20 1MiB                                # b0, b1 … b19
    snapshot step AdamW                                      # a marked optimiser step begins
    snapshot oom 1GiB free 100MiB train.py:40:main
    snapshot without history                                 # as torch.cuda.memory_snapshot() gives it

Frames stand innermost first with `` < `` between them: ``FILE:LINE:FUNCTION``, or a C++ function alone.
"""

import pickle
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from uncork.testing.sketch import SketchError

BASE = 1 << 40
START_US = 1_700_000_000_000_000
STEP_US = 1_000
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(B|KiB|MiB|GiB)")
_UNITS_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass
class _Snapshot:
    """A snapshot as it grows, and the blocks that are in use."""

    reserved: list[int] = field(default_factory=list)
    actions: list[dict[str, object]] = field(default_factory=list)
    regions: list[dict[str, object]] = field(default_factory=list)
    live: dict[str, dict[str, object]] = field(default_factory=dict)
    history: bool = True
    next_address: int = BASE
    holes: list[tuple[int, int]] = field(default_factory=list)


def write_snapshot(lines: Sequence[str], path: Path) -> Path:
    """Return the file that was written for the snapshot lines of a sketch (without their first word)."""
    snapshot = _Snapshot()
    for line in lines:
        _read_line(snapshot, line)
    segments = _segments(snapshot)
    document: object = segments
    if snapshot.history:
        document = {
            "segments": segments,
            "device_traces": [snapshot.actions],
            "allocator_settings": {"expandable_segments": False},
            "external_annotations": snapshot.regions,
        }
    path.write_bytes(pickle.dumps(document, protocol=4))
    return path


def _read_line(snapshot: _Snapshot, line: str) -> None:
    word, _, rest = line.partition(" ")
    now_us = START_US + STEP_US * len(snapshot.actions)
    if word == "reserved":
        snapshot.reserved.append(byte_size(rest))
    elif word == "without":
        snapshot.history = False
    elif word == "old":
        _open(snapshot, f"old {len(snapshot.live)}", byte_size(rest), [])
    elif word == "step":
        region = {"stage": "START", "name": f"Optimizer.step#{rest}.step", "device": 0, "time_us": now_us}
        snapshot.regions.append(region)
    elif word in _ACTIONS:
        _ACTIONS[word](snapshot, rest, now_us)
    else:
        raise SketchError(f"'{word}' is no line of a snapshot")


def _alloc(snapshot: _Snapshot, rest: str, now_us: int) -> None:
    found = re.fullmatch(r"(\S+)(?: x(\d+))? (\S+)(?: (.*))?", rest)
    if not found:
        raise SketchError("an allocation is written as 'snapshot alloc NAME SIZE FRAMES'")
    for number in range(int(found[2] or 1)):
        name = f"{found[1]}{number}" if found[2] else found[1]
        block = _open(snapshot, name, byte_size(found[3]), _frames(found[4] or ""))
        snapshot.actions.append(_action("alloc", block, now_us + STEP_US * number))


def _free(snapshot: _Snapshot, rest: str, now_us: int) -> None:
    name, _, frames = rest.partition(" ")
    block = {**snapshot.live.pop(name), "frames": _frames(frames)}
    snapshot.holes.append((int(str(block["address"])), int(str(block["size"]))))
    snapshot.actions.append(_action("free_requested", block, now_us))
    snapshot.actions.append(_action("free_completed", block, now_us + STEP_US))


def _oom(snapshot: _Snapshot, rest: str, now_us: int) -> None:
    found = re.fullmatch(r"(\S+)(?: free (\S+))?(?: (.*))?", rest)
    if not found:
        raise SketchError("an out-of-memory is written as 'snapshot oom SIZE free SIZE FRAMES'")
    failed = {"address": 0, "requested_size": byte_size(found[1]), "frames": _frames(found[3] or "")}
    action = _action("oom", failed, now_us)
    if found[2]:
        action["device_free"] = byte_size(found[2])
    snapshot.actions.append(action)


_ACTIONS = {"alloc": _alloc, "free": _free, "oom": _oom}


def _open(snapshot: _Snapshot, name: str, size: int, frames: list[dict[str, object]]) -> dict[str, object]:
    block = {"address": _place(snapshot, size), "size": size, "requested_size": size, "frames": frames}
    snapshot.live[name] = block
    return block


def _place(snapshot: _Snapshot, size: int) -> int:
    """Return the address of a new block: the first hole that it fits into, else behind all others."""
    hole = min((one for one in snapshot.holes if one[1] >= size), default=None)
    if hole is None:
        snapshot.next_address += size
        return snapshot.next_address - size
    snapshot.holes.remove(hole)
    if hole[1] > size:
        snapshot.holes.append((hole[0] + size, hole[1] - size))
    return hole[0]


def _action(word: str, block: dict[str, object], now_us: int) -> dict[str, object]:
    return {
        "action": word,
        "addr": block["address"],
        "size": block["requested_size"],
        "stream": 0,
        "time_us": now_us,
        "frames": block["frames"],
    }


def _segments(snapshot: _Snapshot) -> list[dict[str, object]]:
    """Return one segment for all blocks in use, with what is free between and behind them."""
    used = sum(int(str(block["size"])) for block in snapshot.live.values())
    reserved = max(sum(snapshot.reserved), snapshot.next_address - BASE)
    blocks: list[dict[str, object]] = []
    at = BASE
    for block in sorted(snapshot.live.values(), key=lambda one: int(str(one["address"]))):
        address = int(str(block["address"]))
        if address > at:
            blocks.append(_free_block(at, address - at))
        blocks.append({**block, "state": "active_allocated"})
        at = address + int(str(block["size"]))
    if BASE + reserved > at:
        blocks.append(_free_block(at, BASE + reserved - at))
    segment = {
        "device": 0,
        "address": BASE,
        "total_size": reserved,
        "allocated_size": used,
        "active_size": used,
        "requested_size": used,
        "stream": 0,
        "segment_type": "large",
        "is_expandable": False,
        "blocks": blocks,
    }
    return [segment] if reserved else []


def _free_block(address: int, size: int) -> dict[str, object]:
    return {"address": address, "size": size, "requested_size": 0, "state": "inactive", "frames": []}


def _frames(text: str) -> list[dict[str, object]]:
    return [_frame(part) for part in filter(None, map(str.strip, text.split(" < ")))]


@cache
def _frame(part: str) -> dict[str, object]:
    """Return a frame; as in torch's own snapshots, all its stacks hold the same one."""
    found = re.fullmatch(r"(\S+\.py):(\d+):(\S+)", part)
    file, line, name = (found[1], int(found[2]), found[3]) if found else ("??", 0, part)
    return {"name": name, "filename": file, "line": line}


def byte_size(text: str) -> int:
    """Return the bytes of a size such as ``1.5GiB``."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise SketchError(f"'{text}' is not a size such as 2GiB")
    return round(float(found[1]) * _UNITS_BYTES[found[2]])
