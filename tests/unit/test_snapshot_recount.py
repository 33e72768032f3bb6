"""Every real snapshot counted another way: dict by dict and action by action, without the product's columns."""

import json
import pickle
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_snapshot import NoCode, memory_of, snapshot_of
from uncork.measure.owners import SHORT_LIVED_ALLOCATIONS
from uncork.snapshot import CATEGORIES

CASES = ("S01", "S03", "S06", "S07", "S10", "S12")
MALFORMED = (
    "70-snapshot-ok-tiny.pickle",
    "73-snapshot-big-int.pickle",
    "74-snapshot-list-of-segments.pickle",
    "76-snapshot-free-before-alloc.pickle",
    "77-snapshot-as-json.pickle",
)
ENGINE = re.compile(r"torch::autograd::(Engine|Node::operator|generated::\w+::apply|AccumulateGrad)|Backward\d*::apply")
PYTHON = re.compile(r"\.py$|^<")


@dataclass(eq=False)
class Block:
    """A block while the actions are walked through."""

    size: int
    made: list[dict[str, Any]]
    number: int = -1
    freed: list[dict[str, Any]] | None = None
    freed_at: int = -1


@dataclass
class Walk:
    """What a walk through one device's actions finds."""

    before: int = 0
    peak: int = 0
    peak_time: int | None = None
    end: int = 0
    reserved_peak: int = 0
    at_peak: list[Block] = field(default_factory=list)
    allocs: list[int] = field(default_factory=list)


def document_of(path: Path) -> dict[str, Any]:
    """Return the plain values of a snapshot file, a list of segments as a document without history."""
    raw = path.read_bytes()
    if raw[:1] in b"{[":
        return json.loads(raw)
    with path.open("rb") as file:
        found = NoCode(file).load()
    return found if isinstance(found, dict) else {"segments": found, "device_traces": []}


def walk(document: dict[str, Any], device: int) -> Walk:
    """Return the peak and what was in use then, by replaying the actions on a dict of addresses."""
    actions = document["device_traces"][device] if document["device_traces"] else []
    final = {}
    for segment in document["segments"]:
        if segment.get("device", 0) == device:
            at = segment["address"]
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    final[block.get("address", at)] = block
                at += block["size"]
    live = _alive_before(actions, final)
    found = Walk(before=sum(block.size for block in live.values()))
    now = found.peak = found.before
    found.at_peak = list(live.values())
    reserved = sum(segment["total_size"] for segment in document["segments"] if segment.get("device", 0) == device)
    later = sum(_grown(action) for action in actions)
    reserved_now = found.reserved_peak = reserved - later
    for number, action in enumerate(actions):
        kind, address = action["action"], action.get("addr", 0)
        reserved_now += _grown(action)
        found.reserved_peak = max(found.reserved_peak, reserved_now)
        if kind == "alloc":
            found.allocs.append(number)
            live[address] = Block(action["size"], action.get("frames", []), number)
            now += action["size"]
        elif kind in ("free_requested", "free_completed") and address in live:
            block = live.pop(address)
            block.freed, block.freed_at = action.get("frames", []), number
            now -= block.size
        if now > found.peak:
            found.peak, found.at_peak, found.peak_time = now, list(live.values()), action.get("time_us")
    found.end = now
    return found


def _grown(action: dict[str, Any]) -> int:
    grows = action["action"] in ("segment_alloc", "segment_map")
    shrinks = action["action"] in ("segment_free", "segment_unmap")
    return action["size"] * (grows - shrinks)


def _alive_before(actions: list[dict[str, Any]], final: dict[int, dict[str, Any]]) -> dict[int, Block]:
    """Return the blocks older than the history: freed before any allocation at their address, or there at the end."""
    live: dict[int, Block] = {}
    seen: set[int] = set()
    last: dict[int, str] = {}
    for action in actions:
        address = action.get("addr", 0)
        if action["action"] in ("alloc", "free_requested", "free_completed"):
            if action["action"] != "alloc" and address not in seen:
                live[address] = Block(action["size"], [])
            seen.add(address)
            last[address] = action["action"]
    for address, block in final.items():
        if last.get(address) != "alloc" and (address not in seen or last[address] != "alloc") and address not in live:
            live[address] = Block(
                min(block.get("requested_size", block["size"]), block["size"]), block.get("frames", [])
            )
    return live


@cache
def _is_engine(name: str) -> bool:
    return bool(ENGINE.search(name))


def _python(frames: list[dict[str, Any]]) -> bool:
    return any(PYTHON.search(frame["filename"]) for frame in frames)


def _in_step(frames: list[dict[str, Any]]) -> bool:
    """Return whether an optimiser's step asked."""
    names = re.compile(r"^(step|__init__|_?init_group|init_state|update_step|_(single|multi|foreach|fused)\w*)$")
    files = re.compile(r"[/\\](torch[/\\]optim|[\w.-]*optim\w*)[/\\]|optim\w*\.py$|bitsandbytes|apex", re.IGNORECASE)
    return any(names.match(frame["name"]) and files.search(frame["filename"]) for frame in frames)


def _is_state(block: Block) -> bool:
    return block.freed is None and _in_step(block.made)


def _is_kept_by_autograd(block: Block, allocs: list[int]) -> bool:
    """Return whether the program made a block in a pass and autograd let go of it, or held it for long."""
    if not block.made or not _python(block.made) or _in_step(block.made) or block.number < 0:
        return False
    if block.freed and any(_is_engine(frame["name"]) for frame in block.freed):
        return True
    if block.freed is None:
        return False
    between = sum(block.number < number < block.freed_at for number in allocs)
    names = [frame["name"] for frame in block.made]
    called = any(re.match(r"^(forward|_call_impl|_wrapped_call_impl)$", name) or _is_engine(name) for name in names)
    return between > SHORT_LIVED_ALLOCATIONS and called


@pytest.mark.parametrize("case", CASES)
def test_r2_2_peak_and_its_moment_equal_a_walk(shared: Path, case: str):
    """Start, peak, when it was, what was reserved at most and the end, on a dict of addresses."""
    (path,) = (shared / "corpus" / "cases" / case).glob("*.pickle")
    memory, counted = memory_of(snapshot_of(path)), walk(document_of(path), 0)
    assert (memory.start_bytes, memory.peak_bytes, memory.allocated_bytes) == (
        counted.before,
        counted.peak,
        counted.end,
    )
    assert memory.peak_ns == (None if counted.peak_time is None else counted.peak_time * 1000)
    assert memory.reserved_peak_bytes == counted.reserved_peak
    assert sum(block.size for block in counted.at_peak) == counted.peak


@pytest.mark.parametrize("case", CASES)
def test_r5_2_categories_equal_a_walk(shared: Path, case: str):
    """Optimiser state, and what the forward pass kept, of the blocks at the peak: frame by frame."""
    (path,) = (shared / "corpus" / "cases" / case).glob("*.pickle")
    memory, counted = memory_of(snapshot_of(path)), walk(document_of(path), 0)
    state = sum(block.size for block in counted.at_peak if _is_state(block))
    assert memory.peak_categories["optimizer_state"] == state
    kept = sum(block.size for block in counted.at_peak if _is_kept_by_autograd(block, counted.allocs))
    lasting = sum(
        block.size
        for block in counted.at_peak
        if block.freed is None and _python(block.made) and not _in_step(block.made)
    )
    # What the program made and nobody freed is a parameter, an activation or unknown by further signs.
    assert kept <= memory.peak_categories["activation"] <= kept + lasting


@pytest.mark.parametrize("name", MALFORMED)
def test_small_odd_snapshots_equal_a_walk(shared: Path, name: str):
    """The hand-made ones too: totals as a walk finds them, no size beyond what a device holds, none below nothing."""
    path = shared / "corpus" / "malformed" / name
    memory, document = memory_of(snapshot_of(path)), document_of(path)
    counted = walk(document, 0)
    if max([0, *(action["size"] for trace in document["device_traces"] for action in trace)]) < 1 << 42:
        assert (memory.start_bytes, memory.peak_bytes, memory.allocated_bytes) == (
            counted.before, counted.peak, counted.end,
        )  # fmt: skip
    assert sum(memory.peak_categories.values()) == memory.peak_bytes
    assert min(memory.peak_categories.values()) >= 0
    assert set(memory.peak_categories) == set(CATEGORIES)


def test_no_snapshot_of_the_corpus_is_left_out(shared: Path):
    """A snapshot that is added there has to be counted here."""
    found = {path.parent.name for path in (shared / "corpus" / "cases").glob("*/*.pickle") if _is_pickle(path)}
    assert found == set(CASES)
    odd = {path.name for path in (shared / "corpus" / "malformed").glob("*snapshot*") if "cut" not in path.name}
    assert odd == set(MALFORMED)


def _is_pickle(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            NoCode(file).load()
    except pickle.UnpicklingError:
        return False
    return True
