"""About this run: what was recorded and by what, what was not, and what recording cost."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from uncork.locale import catalogue
from uncork.measure.views.names import printable
from uncork.report import Report
from uncork.units import format_quantity

Json = dict[str, Any]
Facts = list[tuple[str, object]]
_SAME_RATIO = 1.05
"""Steps that recording makes this much longer, or less, are not told from their spread."""


def notes(report: Report, lang: str) -> list[str]:
    """Return what the recorder noted while it recorded: what it left out, and how it counted; not what a check says."""
    told = {"window-cut": "step-cut"}
    checks = {issue.id for issue in report.quality}
    keys = [f"note.{one}" for one in report.run.get("notes", ()) if told.get(one) not in checks]
    # Ids come from a file that anyone may have written.
    return [catalogue(lang)[key] for key in keys if key in catalogue(lang)]


def about(report: Report) -> list[Json]:
    """Return the sections of "About this run", each a title and facts: labels and values."""
    run = report.run
    sections: list[tuple[str, Facts]] = [
        ("page.about.recorded", _recorded(run)),
        ("page.about.flags", _flags(run.get("flags", {}))),
        ("page.about.machine", _machine(run)),
        ("page.about.startup", [(f"page.field.{name}", value) for name, value in run.get("startup", {}).items()]),
        (
            "page.about.settings",
            [(f"page.field.{name}", _set(name, one)) for name, one in run.get("settings", {}).items()],
        ),
    ]
    found = [
        {"title": {"id": title}, "facts": [{"label": _label(key), "value": _value(key, value)} for key, value in facts]}
        for title, facts in sections
        if facts
    ]
    found[2:2] = [one for one in (_lacking(report),) if one["facts"]]
    windows = [_window(window) for window in run.get("windows", ())]
    return [*found, {"title": {"id": "page.about.observer"}, "facts": windows}] if windows else found


def _recorded(run: Mapping[str, Any]) -> Facts:
    command = [("page.field.command", " ".join(map(str, run["command"])) or None)] if "command" in run else []
    return [
        *command,
        ("page.field.sources", _files([str(source) for source in run.get("sources", ())])),
        ("page.field.format", run.get("format")),
        ("page.field.events", run.get("events")),
        ("page.field.ranks", run.get("ranks")),
        ("page.field.world_size", run.get("world_size")),
        ("page.field.steps", run.get("steps") if run.get("marked_steps") else None),
        ("page.field.median_step_ns", run.get("median_step_ns")),
        ("page.field.p95_step_ns", run.get("p95_step_ns")),
        ("page.field.busy_share", run.get("busy_share")),
    ]


def _flags(flags: Mapping[str, Any]) -> Facts:
    """Return what a profiler was told to record; nothing where none ran: of a memory snapshot they say nothing."""
    told = any(value is not None for value in flags.values())
    return [(f"page.flag.{name}", value) for name, value in flags.items()] if told else []


def _machine(run: Mapping[str, Any]) -> Facts:
    names = Counter(one.get("name") or "" for one in run.get("devices", ()))
    devices = [f"{count} × {name}" if count > 1 else name for name, count in names.items() if name]
    known = {**run.get("host", {}), **run.get("versions", {})}
    return [
        *([("page.field.device", ", ".join(devices) or None)] if names else []),
        *((f"page.field.{name}", value) for name, value in known.items()),
    ]


def _files(paths: list[str]) -> str:
    """Return the files by name: where they lay is nobody's business but their owner's."""
    names = [path.replace("\\", "/").rstrip("/").rpartition("/")[2] for path in dict.fromkeys(paths)]
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} … {names[-1]} ({len(names)})"


def _lacking(report: Report) -> Json:
    """Return what the recording lacks, and how to record it."""
    missing = dict.fromkeys(what for lack in report.not_assessed if report.applies(lack) for what in lack.missing)
    facts = [{"label": {"id": f"missing.{what}"}, "value": {"id": report.record_key(what)}} for what in missing]
    return {"title": {"id": "page.about.lacks"}, "facts": facts}


def _window(window: Mapping[str, Any]) -> Json:
    """Return a stretch of steps that the recorder watched in one way, and what a step took then."""
    ratio = window.get("overhead_ratio") or 0
    bare = window["name"].startswith(("baseline", "warmup"))
    key = "window_alone" if bare or not ratio else "window_cost" if ratio > _SAME_RATIO else "window_free"
    label = f"page.window.{window['name']}"
    return {
        "label": {
            "id": label if label in catalogue("en") else "page.about.window",
            "params": {"steps": window["steps"], "name": printable(window["name"])},
        },
        "value": {
            "id": f"page.about.{key}",
            "params": {"median_ns": window.get("median_step_ns") or 0, "ratio": ratio},
        },
    }


def _label(key: str) -> Json:
    known = key in catalogue("en")
    return {"id": key} if known else {"id": "page.field.other", "params": {"name": printable(key.rpartition(".")[2])}}


def _set(name: str, value: object) -> object:
    """Return a setting's value; None is the library's own choice, not a gap in the recording."""
    if value is None:
        return {"id": "page.not_set"}
    return _files([value]) if name.endswith("_file") and isinstance(value, str) else value


def _value(key: str, value: object) -> object:
    """Return a value as the page shows it: plain, or a message; amounts are spelt by the unit in their name."""
    if isinstance(value, dict) and set(value) == {"id"}:
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(one, (int, float, bool, str)) for one in value):
        return printable(", ".join(map(str, value))) or None
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return format_quantity(key, value)
    return printable(value if isinstance(value, str) else json.dumps(value, default=str))
