"""Perfetto: the timeline as a Chrome trace, with what uncork found as tracks of its own (ui.perfetto.dev opens it)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from uncork.errors import UncorkError
from uncork.locale import say
from uncork.measure.views.packed import unpack
from uncork.measure.views.timeline_view import TimelineView
from uncork.render import Options
from uncork.report import Report, finding_texts, spell

_FINDINGS_PID, _EVENTS_PID = 1, 2


def render(report: Report, options: Options) -> str:
    """Return the trace as JSON text.

    Raises:
        UncorkError: The recording has no timeline.
    """
    view = report.views.get("TimelineView")
    if not isinstance(view, TimelineView):
        raise UncorkError("export_without_timeline")
    meta, columns = unpack(view.block)
    events = [*_findings(report, meta, options.lang), *_tracks(meta, columns, options.lang), *_arrows(meta, columns)]
    return '{"displayTimeUnit":"ms","traceEvents":[\n' + ",\n".join(events) + "\n]}\n"


def _findings(report: Report, meta: Mapping[str, Any], lang: str) -> Iterator[str]:
    """Yield the verdict and each finding as an event as long as the recording, on tracks above all others."""
    span_ns = int(meta["span_ns"])
    yield _named("process_name", _FINDINGS_PID, 0, "uncork")
    yield _named("process_sort_index", _FINDINGS_PID, 0, -1)
    lines: list[tuple[str, dict[str, object]]] = [
        (spell(report.verdict.summary, lang), {"confidence": report.verdict.confidence})
    ]
    for finding in report.findings:
        texts = finding_texts(finding, lang)
        place = {key: value for key, value in vars(finding.location).items() if value is not None}
        lines.append(
            (texts["title"], {"rule": finding.rule, "share": finding.share, "because": texts["because"], **place})
        )
    for number, (title, args) in enumerate(lines):
        yield _event(title, _FINDINGS_PID, number, 0, span_ns, **args)


def _tracks(meta: Mapping[str, Any], columns: Mapping[str, Any], lang: str) -> Iterator[str]:
    """Yield the events row by row: rows of a track nest, so they share one thread of the Chrome trace."""
    names, at = meta["names"], 0
    yield _named("process_name", _EVENTS_PID, 0, "recording")
    for number, track in enumerate(meta["tracks"]):
        label = say(lang, track["label"]["id"], track["label"].get("params", {}))
        overlap = track["role"] in ("device", "loader")
        for row, count in enumerate(track["rows"]):
            thread = number * 1000 + (row if overlap else 0)
            if row == 0 or overlap:
                yield _named("thread_name", _EVENTS_PID, thread, label if row == 0 else f"{label} ({row + 1})")
                yield _named("thread_sort_index", _EVENTS_PID, thread, thread)
            part = slice(at, at + count)
            start_ns = _starts(columns["gap"][part], columns["dur"][part])
            for start, dur, name in zip(
                start_ns.tolist(), columns["dur"][part].tolist(), columns["name"][part].tolist(), strict=True
            ):
                text = say(lang, names[name]) if track["role"] == "cause" else names[name]
                yield _event(text, _EVENTS_PID, thread, start, dur)
            at += count


def _arrows(meta: Mapping[str, Any], columns: Mapping[str, Any]) -> Iterator[str]:
    """Yield the arrows from launching call to device work."""
    start_ns, thread = _places(meta, columns)
    for number, (source, target) in enumerate(
        zip(columns["link_from"].tolist(), columns["link_to"].tolist(), strict=True), start=1
    ):
        for phase, place in (("s", source), ("f", target)):
            yield (
                f'{{"ph":"{phase}","bp":"e","id":{number},"cat":"launch","name":"launch","pid":{_EVENTS_PID},'
                f'"tid":{thread[place]},"ts":{_us(int(start_ns[place]))}}}'
            )


def _places(meta: Mapping[str, Any], columns: Mapping[str, Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return start and thread of every event."""
    starts, threads, at = [], [], 0
    for number, track in enumerate(meta["tracks"]):
        for row, count in enumerate(track["rows"]):
            part = slice(at, at + count)
            starts.append(_starts(columns["gap"][part], columns["dur"][part]))
            own = row if track["role"] in ("device", "loader") else 0
            threads.append(np.full(count, number * 1000 + own, np.int64))
            at += count
    return np.concatenate(starts), np.concatenate(threads)


def _starts(gap_ns: npt.NDArray[np.int64], dur_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the starts of a row's events from their gaps to the event before."""
    return np.cumsum(gap_ns) + np.concatenate([[0], np.cumsum(dur_ns)[:-1]]).astype(np.int64)


def _event(name: str, pid: int, tid: int, start_ns: int, dur_ns: int, **args: object) -> str:
    rest = f',"args":{json.dumps(args, ensure_ascii=False)}' if args else ""
    return (
        f'{{"ph":"X","name":{json.dumps(name, ensure_ascii=False)},"pid":{pid},"tid":{tid},'
        f'"ts":{_us(start_ns)},"dur":{_us(dur_ns)}{rest}}}'
    )


def _named(kind: str, pid: int, tid: int, value: str | int) -> str:
    key = "sort_index" if kind.endswith("sort_index") else "name"
    return json.dumps({"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {key: value}}, ensure_ascii=False)


def _us(value_ns: int) -> str:
    """Return nanoseconds as decimal microseconds, exactly: the format's unit."""
    return f"{value_ns // 1000}.{value_ns % 1000:03d}"
