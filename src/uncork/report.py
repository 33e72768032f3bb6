"""Report: all that renderers and `compare` see; to and from JSON (schema 1, additive changes only)."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, fields
from pathlib import Path
from typing import Any, TypeVar

from uncork import __version__
from uncork.errors import UnreadableError
from uncork.findings import (
    Bottleneck,
    ClassEvidence,
    Evidence,
    Finding,
    Gain,
    Location,
    Message,
    NotAssessed,
    Quality,
    Verdict,
)
from uncork.ledger import CAUSES
from uncork.locale import catalogue, fill, named, of_the_time, say
from uncork.records import dataclass
from uncork.rules import rules
from uncork.rules.headroom import spoken
from uncork.rules.own_words import own_words
from uncork.rules.page import page
from uncork.schema import misfits

SCHEMA = 1
Json = dict[str, Any]
T = TypeVar("T")
_MOST_SHOWN = 40


@dataclass(frozen=True)
class LedgerEntry:
    """One cause of the ledger, mean over steps and ranks.

    Args:
        cause: Its name (``cause.<name>`` in the catalogue).
        bottleneck: The class it counts for, None for time that counts for none.
        ns_per_step: Mean time per step.
        share: Of the step's wall time.
    """

    cause: str
    bottleneck: Bottleneck | None
    ns_per_step: int
    share: float


@dataclass(frozen=True)
class Report:
    """What one analysis says.

    Args:
        verdict: The answer.
        ledger: Where a step goes; sums to ``run["step_ns"]``.
        findings: Causes, those worth most first.
        not_assessed: Rules that could not look.
        clear: Ids of the rules that looked and found nothing.
        quality: What limits the conclusions.
        run: Device, ranks, steps, versions, flags, observer overhead: plain values with the unit in the name.
        tables: ``operators kernels functions regions collectives copies``: rows of plain values, the unit in the name.
        memory: Sizes, peak and owners, or None where nothing was recorded.
        comm: Collectives over the ranks, or None.
        views: What the page draws; never in the JSON.
    """

    verdict: Verdict
    ledger: tuple[LedgerEntry, ...] = ()
    findings: tuple[Finding, ...] = ()
    not_assessed: tuple[NotAssessed, ...] = ()
    clear: tuple[str, ...] = ()
    quality: tuple[Quality, ...] = ()
    run: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    memory: Mapping[str, Any] | None = None
    comm: Mapping[str, Any] | None = None
    views: Mapping[str, Any] = field(default_factory=dict)

    def ledger_of(self, rank: int | None) -> tuple[LedgerEntry, ...]:
        """Return where a step goes on a rank; over all of them for None, or where its own is not known."""
        own: Mapping[str, int] | None = self.run.get("ledgers", {}).get(str(rank))
        if not own:
            return self.ledger
        whole = sum(own.values())
        return tuple(
            LedgerEntry(cause, CAUSES[cause].bottleneck, ns, ns / whole)
            for cause, ns in sorted(own.items(), key=lambda item: -item[1])
            if cause in CAUSES
        )

    def applies(self, lack: NotAssessed) -> bool:
        """Return whether a rule that could not look could ever look at this job.

        Without an accelerator nothing records one, and one process has no collectives: such rules are no gap.
        """
        beyond = set() if self.run.get("on_device") or self.run.get("devices") else set(_NEEDS_DEVICE)
        if self.comm is None and not self._several_ranks:
            beyond |= _NEEDS_RANKS
        if self.run.get("on_device"):
            beyond.add("cpu_work")
        lost = any(issue.id == "device-data-missing" for issue in self.quality)
        return lost or not beyond & set(lack.missing)

    @property
    def gains_overlap(self) -> bool:
        """Return whether findings promise more than a step, or a class, takes: the same time is in several of them."""
        promised: dict[Bottleneck | None, float] = defaultdict(float)
        takes: dict[Bottleneck | None, float] = defaultdict(float)
        several = Counter(finding.bottleneck for finding in self.findings if finding.gain.high)
        for finding in self.findings:
            promised[finding.bottleneck] += finding.gain.high
        for entry in self.ledger:
            waits = entry.cause == "comm_wait"
            takes[Bottleneck.COMMUNICATION if waits else entry.bottleneck] += entry.share
        crowded = any(count > 1 and promised[one] > takes[one] for one, count in several.items())
        return crowded or sum(finding.gain.high for finding in self.findings) > 1

    def usual_step(self, lang: str) -> str:
        """Return how the table of a step and the step that the verdict speaks of differ; nothing where they do not."""
        usual_ns, whole_ns = self.verdict.summary.params.get("step_ns"), self.run.get("step_ns")
        if not isinstance(usual_ns, int) or not isinstance(whole_ns, int):
            return ""
        key = "ui.usual_step" if whole_ns > usual_ns else "ui.usual_step.longer"
        told = say(lang, key, {"usual_ns": usual_ns, "left_out_ns": whole_ns - usual_ns})
        return told if abs(whole_ns - usual_ns) > whole_ns // 200 else ""

    def to_record(self, lang: str) -> list[str]:
        """Return what to record so that an answer too uncertain to give becomes one, what most rules lack first."""
        if self.verdict.summary.id != "verdict.undetermined.unsure":
            return []
        lacks = Counter(what for lack in self.not_assessed if self.applies(lack) for what in lack.missing)
        lacks.setdefault("longer", 0)  # more steps make any answer surer, and it says how to mark them
        return list(dict.fromkeys(self.how_to_record(what, lang) for what, _ in lacks.most_common() if what in _SURER))

    def how_to_record(self, what: str, lang: str) -> str:
        """Return what to do so that the next recording has something; in the words of `uncork run` for its own."""
        return say(lang, self.record_key(what))

    def record_key(self, what: str) -> str:
        """Return the catalogue's key of what `how_to_record` says."""
        return self._of_run(f"record.{what}" + ".several" * (what == "collectives" and self._several_ranks))

    @property
    def _several_ranks(self) -> bool:
        """Return whether the job has more than one rank."""
        return max(len(self.run.get("ranks", ())), self.run.get("world_size") or 1) > 1

    def how_to_mend(self, issue: Quality, lang: str) -> str:
        """Return what to do about what limits the recording; in the words of `uncork run` for its own."""
        return say(lang, self._of_run(f"quality.{issue.id}.fix"), issue.params)

    def _of_run(self, key: str) -> str:
        """Return the key of what is said of a recording by `uncork run`: of what it noted, of many steps, of any."""
        if self.run.get("format") != "run":
            return key
        seen = ("many", "run") if (self.run.get("steps_seen") or 0) >= MANY_STEPS else ("run",)
        closer = (f"{key}.{one}" for one in (*self.run.get("notes", ()), *seen))
        return next((one for one in closer if one in catalogue("en")), key)

    @property
    def nothing_found(self) -> str:
        """Return the catalogue's key of what is said where no rule found anything."""
        if not self.clear:
            return "ui.no_rule_looked"
        return "ui.cannot_tell" if self.verdict.bottleneck is Bottleneck.UNDETERMINED else "ui.no_findings"


MANY_STEPS = 100  # `uncork run` has had its long windows by then, or finds them too dear (`uncork.capture.plan`)
_NEEDS_DEVICE = frozenset({"device", "device_model", "runtime", "snapshot", "history"})
_SURER = frozenset({"complete", "device", "functions", "host", "loader", "longer", "ranks", "shapes", "stacks"})
"""What a verdict is made of, so that with more of it one is surer; the other lacks keep single rules from looking."""
_NEEDS_RANKS = frozenset({"collectives", "ranks", "sizes"})


def to_json(report: Report, lang: str = "en") -> Json:
    """Return a report as plain values, its texts in one language."""
    return {
        "schema": SCHEMA,
        "uncork": __version__,
        "lang": lang,
        "verdict": _verdict_json(report.verdict, lang),
        "ledger": [
            {**asdict(entry), "bottleneck": entry.bottleneck and entry.bottleneck.value} for entry in report.ledger
        ],
        "findings": [_finding_json(finding, lang) for finding in report.findings],
        "not_assessed": [
            {
                "rule": lack.rule,
                "missing": list(lack.missing),
                "applies": report.applies(lack),
                "how_to_record": " ".join(report.how_to_record(what, lang) for what in lack.missing),
            }
            for lack in report.not_assessed
        ],
        "clear": list(report.clear),
        "quality": [
            {
                "id": issue.id,
                "severity": issue.severity,
                "message": say(lang, f"quality.{issue.id}", issue.params),
                "fix": report.how_to_mend(issue, lang),
                "share_affected": issue.share_affected,
                "params": dict(issue.params),
            }
            for issue in report.quality
        ],
        "run": dict(report.run),
        "tables": {name: [dict(row) for row in rows] for name, rows in report.tables.items()},
        "memory": report.memory and dict(report.memory),
        "comm": report.comm and dict(report.comm),
    }


def _verdict_json(verdict: Verdict, lang: str) -> Json:
    return {
        "bottleneck": verdict.bottleneck.value,
        "confidence": round(verdict.confidence, 3),
        "share": verdict.share,
        "summary": spell(verdict.summary, lang),
        "contributing": [one.value for one in verdict.contributing],
        "late_ranks": list(verdict.late_ranks),
        "would_be_wrong_if": [spell(one, lang) for one in verdict.would_be_wrong_if],
        "evidence": [
            {"class": one.bottleneck.value, **asdict(one.evidence), "holds": one.evidence.holds}
            for one in verdict.evidence
        ],
        "disagreements": [spell(one, lang) for one in verdict.disagreements],
        "messages": {
            "summary": asdict(verdict.summary),
            "would_be_wrong_if": [asdict(one) for one in verdict.would_be_wrong_if],
            "disagreements": [asdict(one) for one in verdict.disagreements],
        },
    }


_TEMPLATES = frozenset({"text", "detail", "snippet", "check"})


def finding_texts(finding: Finding, lang: str) -> Json:
    """Return what a finding's page says about it: name, title, because, advice."""
    rule = rules().get(finding.rule)
    if rule is None or not rule.has_page:
        return {"name": finding.rule, "title": finding.rule, "because": "", "advice": [], "worth": ""}
    manual = page(rule.folder, rule.id, lang)
    params = {"recording": "RECORDING", "which": "", **named(finding.params, lang)}
    chosen = [manual.advice[one] for one in finding.advice or tuple(manual.advice) if one in manual.advice]
    return {
        "name": manual.name,
        "title": of_the_time(fill(manual.title, params), params, lang),
        "worth": spoken(finding.params, lang),
        "because": fill(manual.because, params) + _behind(finding.params.get("behind"), lang),
        "advice": [
            {
                name: own_words(fill(text, params), params.get("loader_of")) if name in _TEMPLATES else text
                for name, text in asdict(advice).items()
            }
            for advice in chosen
        ],
    }


def _behind(cause: object, lang: str) -> str:
    """Return what the finding behind another one says (`uncork.rules.behind_late`); nothing where none is."""
    if not isinstance(cause, Mapping) or not isinstance(params := cause.get("params"), Mapping):
        return ""
    title = spell(Message(f"rule.{cause.get('rule')}.title", params), lang)
    return say(lang, "finding.behind", {"title": title, "excess_ns": cause.get("excess_ns")})


def _finding_json(finding: Finding, lang: str) -> Json:
    texts = finding_texts(finding, lang)
    return {
        "rule": finding.rule,
        "name": texts["name"],
        "class": finding.bottleneck.value,
        "title": texts["title"],
        "cost_ns_per_step": finding.cost_ns_per_step,
        "share": finding.share,
        "gain": asdict(finding.gain),
        "confidence": round(finding.confidence, 3),
        "location": asdict(finding.location),
        "evidence": [{**asdict(one), "holds": one.holds} for one in finding.evidence],
        "because": texts["because"],
        "worth": texts["worth"],
        "advice": texts["advice"],
        "params": dict(finding.params),
    }


def spell(message: Message, lang: str) -> str:
    """Return a message as text: of the catalogue, or (``rule.<id>.title``) the title on a rule's page."""
    _, _, rest = message.id.partition("rule.")
    params = {"which": "", **named(message.params, lang)}
    rule = rules().get(rest.removesuffix(".title")) if rest.endswith(".title") else None
    if rule is not None and rule.has_page:
        return of_the_time(fill(page(rule.folder, rule.id, lang).title, params), params, lang)
    return of_the_time(say(lang, message.id, params), params, lang)


def dumps(report: Report, lang: str = "en") -> str:
    """Return a report as JSON text, numpy scalars as plain numbers."""
    return json.dumps(to_json(report, lang), ensure_ascii=False, indent=1, default=_plain, allow_nan=False) + "\n"


def _plain(value: object) -> object:
    item = getattr(value, "item", None)
    if item is not None:
        return item()
    raise TypeError(f"{type(value).__name__} has no place in a report")


def loads(text: bytes, path: object) -> Report:
    """Return the report that JSON text holds, each field as the schema says.

    Args:
        text: The JSON.
        path: Where it comes from, for the one line that refuses it.

    Raises:
        UnreadableError: The text is no JSON, or of a newer schema, or a field is missing or of another type.
    """
    try:
        data = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as fault:
        raise UnreadableError("report_damaged", path=path, reason=fault) from None
    if isinstance(data, dict) and data.get("schema") != SCHEMA:
        raise UnreadableError("report_schema", path=path, found=str(data.get("schema")), wanted=SCHEMA)
    schema = json.loads(Path(__file__).with_name("report.schema.json").read_text("utf-8"))
    for field_path, found in misfits(data, schema, schema):
        if not found:
            raise UnreadableError("report_incomplete", path=path, field=field_path)
        shown = found if len(found) <= _MOST_SHOWN else f"{found[:_MOST_SHOWN]}…"
        raise UnreadableError("report_misfit", path=path, field=field_path or "JSON", found=shown)
    return from_json(data)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def from_json(data: Json) -> Report:
    """Return the report that a JSON document holds; texts come back from their ids, so any language can be shown."""
    return Report(
        verdict=_verdict_from(data["verdict"]),
        ledger=tuple(
            _made(LedgerEntry, {**entry, "bottleneck": entry["bottleneck"] and Bottleneck(entry["bottleneck"])})
            for entry in data["ledger"]
        ),
        findings=tuple(_finding_from(finding) for finding in data["findings"]),
        not_assessed=tuple(NotAssessed(lack["rule"], tuple(lack["missing"])) for lack in data["not_assessed"]),
        clear=tuple(data["clear"]),
        quality=tuple(_made(Quality, issue) for issue in data["quality"]),
        run=data["run"],
        tables=data["tables"],
        memory=data["memory"],
        comm=data["comm"],
    )


def _made(kind: type[T], data: Json) -> T:
    """Return a record of what its kind knows; later versions may tell more."""
    return kind(**{one.name: data[one.name] for one in fields(kind) if one.name in data})  # type: ignore[arg-type]


def _verdict_from(data: Json) -> Verdict:
    return Verdict(
        bottleneck=Bottleneck(data["bottleneck"]),
        confidence=data["confidence"],
        share=data["share"],
        summary=_made(Message, data["messages"]["summary"]),
        contributing=tuple(Bottleneck(one) for one in data["contributing"]),
        late_ranks=tuple(data["late_ranks"]),
        would_be_wrong_if=tuple(_made(Message, one) for one in data["messages"]["would_be_wrong_if"]),
        evidence=tuple(
            ClassEvidence(Bottleneck(one["class"]), _made(Evidence, one)) for one in data.get("evidence", ())
        ),
        disagreements=tuple(_made(Message, one) for one in data["messages"].get("disagreements", ())),
    )


def _finding_from(data: Json) -> Finding:
    return Finding(
        rule=data["rule"],
        bottleneck=Bottleneck(data["class"]),
        cost_ns_per_step=data["cost_ns_per_step"],
        share=data["share"],
        gain=_made(Gain, data["gain"]),
        confidence=data["confidence"],
        location=_made(Location, data["location"]),
        evidence=tuple(_made(Evidence, one) for one in data["evidence"]),
        advice=tuple(one["id"] for one in data["advice"]),
        params=data["params"],
    )
