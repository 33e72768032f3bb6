"""The plain sections of a Report, gathered from the measurements of all ranks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from uncork.ledger import CAUSES
from uncork.measure import Measured, Measurement, Missing, present
from uncork.measure.facts import Facts, repairs_of
from uncork.measure.module_memory import ModuleMemory
from uncork.measure.step_ledger import StepLedger
from uncork.measure.views.steps_view import StepsView
from uncork.quantiles import median, quantile
from uncork.report import LedgerEntry

Section = dict[str, Any]
# Rows kept per table; the page and the terminal show the top of what is here.
_MOST_ROWS = 200


def ledger_section(measured: Sequence[Measured]) -> tuple[tuple[LedgerEntry, ...], int]:
    """Return the ledger as the mean over steps and ranks, and the step time that it sums to."""
    ledgers = [ledger for ledger in present(measured, StepLedger) if len(ledger.step_ns)]
    if not ledgers:
        return (), 0
    means: dict[str, int] = {}
    for cause in dict.fromkeys(cause for ledger in ledgers for cause in ledger.causes):
        means[cause] = sum(ledger.mean_ns(cause) for ledger in ledgers) // len(ledgers)
    step_ns = sum(means.values())
    return tuple(
        LedgerEntry(cause, CAUSES[cause].bottleneck, ns, ns / step_ns if step_ns else 0.0)
        for cause, ns in sorted(means.items(), key=lambda item: -item[1])
        if ns
    ), step_ns


def run_section(measured: Sequence[Measured], numbers: Sequence[int], step_ns: int) -> Section:
    """Return what was observed: ranks, steps, devices, versions, flags, and the observer's own cost."""
    facts = present(measured, Facts)
    if not facts:
        return {"ranks": list(numbers), "step_ns": step_ns}
    first = facts[0]
    ledgers = present(measured, StepLedger)
    steps = np.concatenate([ledger.step_ns for ledger in ledgers]) if ledgers else np.empty(0, np.int64)
    section: Section = {
        **_ledgers(measured, numbers),
        "sources": [fact.source for fact in facts],
        "format": first.format,
        "ranks": list(numbers),
        "world_size": first.world_size,
        "devices": [{"index": one.index, "name": one.name, "memory_bytes": one.memory_bytes} for one in first.devices],
        "host": dict(first.host),
        "versions": dict(first.versions),
        "flags": {name: getattr(first.flags, name) for name in ("shapes", "memory", "stacks", "modules", "flops")},
        "events": sum(fact.events for fact in facts),
        "repairs": dict(repairs_of(facts)),
        "step_ns": step_ns,
        "steps": max((len(ledger.step_ns) for ledger in ledgers), default=0),
        "marked_steps": all(ledger.marked for ledger in ledgers) if ledgers else False,
        "median_step_ns": int(median(steps)) if len(steps) else None,
        "p95_step_ns": int(quantile(steps, 0.95)) if len(steps) else None,
        "step_spread_share": _spread_share(steps),
        "on_device": ledgers[0].on_device if ledgers else None,
        "busy_share": _busy_share(ledgers),
    }
    if first.run is not None:
        section |= _observed(first)
    return section


def _ledgers(measured: Sequence[Measured], numbers: Sequence[int]) -> Section:
    """Return where a mean step of each of several ranks goes; of one rank the report's own ledger is all."""
    ledgers = [(number, one.get(StepLedger)) for number, one in zip(numbers, measured, strict=True)]
    found = {
        str(number): {cause: ns for cause in ledger.causes if (ns := ledger.mean_ns(cause))}
        for number, ledger in ledgers
        if isinstance(ledger, StepLedger) and len(ledger.step_ns)
    }
    return {"ledgers": found} if len(found) > 1 else {}


def _spread_share(step_ns: npt.NDArray[np.int64]) -> float | None:
    """Return the distance between the steps' quartiles over their median: what a change must exceed."""
    if len(step_ns) < 4:
        return None
    low, middle, high = (quantile(step_ns, share) for share in (0.25, 0.5, 0.75))
    return float((high - low) / middle) if middle else None


def _busy_share(ledgers: Sequence[StepLedger]) -> float | None:
    wall = sum(int(ledger.step_ns.sum()) for ledger in ledgers)
    return sum(int(ledger.busy_ns.sum()) for ledger in ledgers) / wall if wall else None


def _observed(facts: Facts) -> Section:
    """Return what the recorder saw, and each window's cost as a factor on the steps without a profiler."""
    run = facts.run
    if run is None:
        return {}
    medians = {window.name: int(median(window.step_ns)) for window in run.windows if window.step_ns}
    quiet_ns = medians.get(run.quiet_window)
    return {
        "command": list(run.command),
        "exit_code": run.exit_code,
        "step_rule": run.step_rule,
        "steps_seen": run.steps_seen,
        "notes": list(run.notes),
        "settings": dict(run.settings),
        "startup": _startup(run.startup),
        "windows": [
            {
                "name": window.name,
                "steps": len(window.step_ns),
                "median_step_ns": medians.get(window.name),
                "spread_share": _spread_share(np.array(window.step_ns, np.int64)),
                "overhead_ratio": medians[window.name] / quiet_ns if quiet_ns and window.name in medians else None,
            }
            for window in run.windows
        ],
    }


_STARTUP = (
    ("before_torch_ns", "python_ns", "torch_ns"),
    ("import_torch_ns", "torch_ns", "torch_ended_ns"),
    ("setup_ns", "torch_ended_ns", "step_ns"),
    ("first_step_ns", "step_ns", "step_ended_ns"),
)


def _startup(at_ns: Mapping[str, int]) -> dict[str, int]:
    """Return what the program did before its steps: a time per phase, as far as the recorder saw it begin and end."""
    unseen = ("until_second_step_ns", "torch_ended_ns", "step_ended_ns")
    phases = _STARTUP if "step_ns" in at_ns else (*_STARTUP[:2], unseen)
    return {
        name: at_ns[end] - at_ns[begin]
        for name, begin, end in phases
        if begin in at_ns and end in at_ns and at_ns[end] >= at_ns[begin]
    }


def tables_section(measured: Sequence[Measured], numbers: Sequence[int]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the rows of every table; with several ranks each row names its rank."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for number, one in zip(numbers, measured, strict=True):
        for kind, value in one.items():
            if kind.table and not isinstance(value, Missing):
                rows = [row if len(numbers) == 1 else {"rank": number, **row} for row in value.rows()]
                tables.setdefault(kind.table, []).extend(rows[:_MOST_ROWS])
    return tables


def memory_section(measured: Sequence[Measured], numbers: Sequence[int]) -> Section | None:
    """Return sizes, peak and owners of the rank where a request failed, else of the one that used most; or None."""
    ranks = sorted(zip(numbers, measured, strict=True), key=lambda pair: _most_memory(pair[1]), reverse=True)
    for number, one in ranks:
        contents = [content for value in _of_memory(one) if (content := value.content())]
        modules = one.get(ModuleMemory)
        by_module = modules.content() if isinstance(modules, ModuleMemory) else {}
        if contents or by_module:
            return {"rank": number, **(contents[0] if contents else {}), **by_module}
    return None


def _of_memory(one: Measured) -> list[Measurement]:
    """Return the measurements of a rank that fill the section on memory."""
    return [value for kind, value in one.items() if kind.section == "memory" and not isinstance(value, Missing)]


def _most_memory(one: Measured) -> tuple[bool, int]:
    """Return whether a request failed on a rank, and the most that was in use."""
    found = _of_memory(one)
    failed = any(getattr(value, "oom", None) is not None for value in found)
    return failed, max((int(getattr(value, "peak_bytes", 0)) for value in found), default=0)


def views_section(measured: Sequence[Measured], numbers: Sequence[int]) -> Section:
    """Return what the page draws: by measurement name of the first rank that has it; of the ranks shown; all steps.

    ``Shown`` holds the views of up to three ranks, ``Ranks`` the steps of all; ``Faults`` names those that broke.
    """
    of_ranks: dict[int, Section] = {
        number: {kind.__name__: value for kind, value in one.items() if kind.view and not isinstance(value, Missing)}
        for number, one in zip(numbers, measured, strict=True)
    }
    for views, one in zip(of_ranks.values(), measured, strict=True):
        # The ledgers know by now what was waiting for other ranks.
        view, ledger = views.get("StepsView"), one.get(StepLedger)
        if isinstance(view, StepsView) and isinstance(ledger, StepLedger):
            views["StepsView"] = view.charged(ledger)
    first: Section = {}
    for views in of_ranks.values():
        first = views | first
    broken = {kind.__name__ for one in measured for kind, value in one.items() if kind.view and value == _FAULT}
    faults: Section = {"Faults": sorted(broken)} if broken else {}
    if not first:
        return faults
    steps = {number: views["StepsView"] for number, views in of_ranks.items() if "StepsView" in views}
    shown = ranks_shown(steps) or [number for number, views in of_ranks.items() if views][:1]
    return first | faults | {"Shown": {number: of_ranks[number] for number in shown}, "Ranks": steps}


def ranks_shown(steps: Mapping[int, StepsView]) -> list[int]:
    """Return the ranks with most, median and least time of their own: waiting for others is nobody's own time."""
    own = {
        number: sum(int(ns.sum()) for cause, ns in zip(view.causes, view.ns, strict=True) if cause not in _WITH_OTHERS)
        for number, view in steps.items()
    }
    order = sorted(own, key=lambda number: -own[number])
    return list(dict.fromkeys([order[0], order[len(order) // 2], order[-1]])) if order else []


_FAULT = Missing(("fault",))
_WITH_OTHERS = frozenset({"comm", "comm_wait"})
