"""The memory section as terminal text: what the peak is made of, who holds it, what other choices would save."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from uncork.findings import Location
from uncork.locale import say
from uncork.render import Options
from uncork.render.lines import NARROW, Text
from uncork.render.tables import where
from uncork.units import format_bytes, format_share

_COLOR = "#cc79a7"
_FEW, _MANY = 3, 20
WORTH_A_LARGER_BATCH = 1.25
_WIDEST_BAR = 40
_OWNER_WIDTH, _LEAST_PLACE = 28, 12
"""An owner's name and size with the room between; the place gets what they leave."""
_IDLE_SHARE, _IDLE_BYTES = 0.12, 1 << 30
"""Of the reserve, idle at the peak: as `uncork.rules.memory.fragmentation`."""
_MOST_SEGMENTS = 8
_SMALLEST_SHARE = 0.005
_WORTH_TELLING_BYTES = 1 << 20
"""Of growth per step: less is a logger's or a cache's."""


def memory_parts(memory: Mapping[str, Any], options: Options) -> Iterator[RenderableType]:
    """Yield the section; a trace's own figures, which have no categories, only with ``-v``."""
    categories = memory.get("categories") or []
    if not categories and not options.verbose:
        return
    yield ""
    if "peak_bytes" in memory:
        yield _head(memory, options.lang)
    if memory.get("oom"):
        yield from _failure(memory["oom"], options.lang)
    if categories:
        worth = [row for row in categories if options.verbose or row["share"] >= _SMALLEST_SHARE]
        yield Padding(_categories(worth or categories, options), (0, 0, 0, 2))
    for name in ("largest", "kept"):
        rows = memory.get(name) or []
        if rows and (options.verbose or name == "largest"):
            yield Text(say(options.lang, f"ui.memory.{name}"), style="dim")
            yield Padding(_owners(rows if options.verbose else rows[:_FEW], options), (0, 0, 0, 2))
    yield from _by_module(memory, options)
    yield from _choices(memory, options)


def _choices(memory: Mapping[str, Any], options: Options) -> Iterator[RenderableType]:
    """Yield what other choices would save, and how the reserve lies."""
    if options.verbose and memory.get("segment_allocs"):
        yield Text(say(options.lang, "ui.memory.driver", memory), style="dim")
    savings = memory.get("what_if") or []
    if savings:
        yield Text(say(options.lang, "ui.memory.what_if"), style="dim")
        yield Padding(_savings(savings if options.verbose else savings[:_FEW], options), (0, 0, 0, 2))
    segments = memory.get("segments") or {}
    if segments.get("shown") and (options.verbose or _in_pieces(memory)):
        yield Text(say(options.lang, "ui.memory.segments", segments), style="dim")
        if options.verbose and any(map(_free_between, segments["shown"])):
            yield Padding(_segments(segments, options), (0, 0, 0, 2))


def _failure(failed: Mapping[str, Any], lang: str) -> Iterator[RenderableType]:
    """Yield what a failed request asked for, in which phase and line, and below it what was free."""
    phase = say(lang, f"memory.phase.{failed['phase']}")
    line = Text(say(lang, "ui.memory.failed", {**failed, "phase": phase}), style="bold")
    owner = failed["owner"]
    place = where(Location(file=owner["file"], line=owner["line"], function=owner["function"], op=owner["op"]))
    keys = ["failed_idle"] if failed["device_free_bytes"] is None else ["failed_free", "failed_idle"]
    keys += ["failed_limit"] if failed["limited"] else [] if failed["short_bytes"] is None else ["failed_short"]
    yield line.append("  " + " · ".join(place), style="cyan")
    yield Padding(Text(" · ".join(say(lang, f"ui.memory.{key}", failed) for key in keys), style="dim"), (0, 0, 0, 2))


def _in_pieces(memory: Mapping[str, Any]) -> bool:
    """Return whether so much lies idle at the peak that how it lies is worth a look."""
    idle, reserved = memory.get("idle_at_peak_bytes") or 0, memory.get("reserved_peak_bytes") or 0
    return bool(idle > _IDLE_SHARE * reserved and idle > _IDLE_BYTES)


def _segments(segments: Mapping[str, Any], options: Options) -> Table:
    """Return the segments in which most is free between blocks as bars of one scale: in use, and free."""
    table = _grid(1)
    room = max(10, options.width - 16)
    shown = sorted(filter(_free_between, segments["shown"]), key=_free_between, reverse=True)[:_MOST_SEGMENTS]
    largest = max(segment["bytes"] for segment in shown)
    for segment in shown:
        table.add_row(
            "", format_bytes(segment["bytes"]), _bar(segment, max(1, round(room * segment["bytes"] / largest)))
        )
    return table


def _free_between(segment: Mapping[str, Any]) -> int:
    """Return what is free in a segment that is in use in part; of one that is wholly free nothing."""
    used = sum(size for size, state in zip(segment["size_bytes"], segment["state"], strict=True) if state != "inactive")
    return int(segment["bytes"] - used) if used else 0


def _bar(segment: Mapping[str, Any], cells: int) -> Text:
    """Return a segment as cells, each in use where most of it is."""
    used = [0.0] * cells
    cell_bytes = max(segment["bytes"], 1) / cells
    blocks = zip(segment["offset_bytes"], segment["size_bytes"], segment["state"], strict=True)
    for begin, end in ((offset, offset + size) for offset, size, state in blocks if state != "inactive"):
        for cell in range(max(int(begin / cell_bytes), 0), min(int(end / cell_bytes) + 1, cells)):
            used[cell] += max(min(end, (cell + 1) * cell_bytes) - max(begin, cell * cell_bytes), 0)
    return Text("".join("█" if part > cell_bytes / 2 else "░" for part in used), style=_COLOR)


def _by_module(memory: Mapping[str, Any], options: Options) -> Iterator[RenderableType]:
    """Yield what modules hold, and what recomputing some of them would save."""
    modules = (memory.get("modules") or [])[: _MANY if options.verbose else _FEW]
    if modules:
        yield Text(say(options.lang, "ui.memory.modules"), style="dim")
        yield Padding(_modules(modules, options), (0, 0, 0, 2))
    checkpoints = (memory.get("checkpointing") or [])[: _MANY if options.verbose else _FEW]
    if checkpoints:
        yield Text(say(options.lang, "ui.memory.checkpointing"), style="dim")
        table = _grid(0)
        for row in checkpoints:
            told = {
                "freed_bytes": row["freed_bytes"],
                "saved_bytes": row["peak_saved_bytes"],
                "cost_ns": row["forward_ns"],
            }
            table.add_row(Text(row["module"], style="cyan"), say(options.lang, "ui.memory.checkpoint", told))
        yield Padding(table, (0, 0, 0, 2))


def _modules(rows: list[Mapping[str, Any]], options: Options) -> Table:
    sizes = ("activation_bytes", "parameter_bytes", "gradient_bytes", "optimizer_state_bytes")
    table = _grid(len(sizes))
    table.add_row("", *(Text(say(options.lang, f"column.{size}"), style="dim") for size in sizes))
    for row in rows:
        held = ("–" if row[size] is None else format_bytes(row[size]) for size in sizes)
        table.add_row(Text(row["module"], style="cyan", overflow="ellipsis"), *held)
    return table


def _head(memory: Mapping[str, Any], lang: str) -> Text:
    """Return peak, phase and reserve in one line."""
    known = memory.get("has_history", True)
    line = Text(say(lang, "ui.memory.peak" if known else "ui.memory.in_use", memory), style="bold")
    facts = [f"rank {memory['rank']}"] if memory.get("rank") else []
    if memory.get("peak_phase"):
        facts.append(say(lang, f"memory.phase.{memory['peak_phase']}"))
    if known and (after_ns := _peak_after_ns(memory.get("curve") or {})):
        facts.append(say(lang, "ui.memory.after", {"after_ns": after_ns}))
    if memory.get("reserved_peak_bytes"):
        facts.append(say(lang, "ui.memory.reserved", {"reserved_bytes": memory["reserved_peak_bytes"]}))
    if memory.get("capacity_bytes"):
        facts.append(say(lang, "ui.memory.capacity", {"capacity_bytes": memory["capacity_bytes"]}))
    if (memory.get("batch_ratio") or 0) > WORTH_A_LARGER_BATCH:
        facts.append(say(lang, "ui.memory.batch", {"times": memory["batch_ratio"]}))
        if memory.get("batch_time_share") is not None:
            facts.append(say(lang, "headroom.time", {"batch_time_share": memory["batch_time_share"]}))
    if (memory.get("growth_bytes") or 0) >= _WORTH_TELLING_BYTES:
        facts.append(say(lang, "ui.memory.growth", {"growth_bytes": memory["growth_bytes"]}))
    if not known:
        facts.append(say(lang, "ui.memory.no_history"))
    if facts:
        line.append("  " + " · ".join(facts), style="dim")
    return line


def _peak_after_ns(curve: Mapping[str, Any]) -> int:
    """Return when the peak was, since the first moment of the curve; 0 where nobody says."""
    times, sizes = curve.get("time_ns") or [], curve.get("allocated_bytes") or []
    return int(times[sizes.index(max(sizes))] - times[0]) if times and len(times) == len(sizes) else 0


def _categories(rows: list[Mapping[str, Any]], options: Options) -> Table:
    table = _grid(2)
    room = max(10, min(_WIDEST_BAR, options.width - 60)) if options.width >= NARROW else 0
    largest = max(row["share"] for row in rows)
    for row in rows:
        bar = Text("█" * max(room > 0, round(room * row["share"] / largest)), style=_COLOR)
        name = say(options.lang, f"memory.category.{row['category']}")
        table.add_row(name, format_bytes(row["bytes"]), format_share(row["share"]), bar)
    return table


def _owners(rows: list[Mapping[str, Any]], options: Options) -> Table:
    table = _grid(1)
    table.columns[-1].max_width = max(_LEAST_PLACE, options.width - _OWNER_WIDTH)
    for row in rows:
        place = Location(file=row["file"], line=row["line"], function=row["function"], op=row["op"])
        name = say(options.lang, f"memory.category.{row['category']}")
        table.add_row(
            name, format_bytes(row["bytes"]), Text(" · ".join(where(place)), style="cyan", overflow="ellipsis")
        )
    return table


def _savings(rows: list[Mapping[str, Any]], options: Options) -> Table:
    table = _grid(1)
    table.columns[0].no_wrap = table.columns[-1].no_wrap = False
    for row in rows:
        low, high = format_bytes(row["saved_low_bytes"]), format_bytes(row["saved_high_bytes"])
        notes = where(Location(file=row.get("file"), line=row.get("line"), function=row.get("function")))
        if row.get("count"):
            notes.append(say(options.lang, "ui.memory.calls", {"count": row["count"]}))
        if row.get("enough"):
            notes.append(say(options.lang, "ui.memory.enough"))
        name = Text(say(options.lang, f"what_if.{row['change']}"), overflow="fold")
        table.add_row(name, high if low == high else f"{low} … {high}", Text(" · ".join(notes), style="cyan"))
    return table


def _grid(numbers: int) -> Table:
    """Return a grid: a name, some numbers, and what comes after."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    for _ in range(numbers):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    return table
