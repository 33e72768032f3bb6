"""What uncork finds: causes with their cost, place, evidence and advice; and what it could not look at."""

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from uncork.records import dataclass


class Bottleneck(str, Enum):
    """The seven verdicts; the first five are also the classes of findings."""

    COMPUTE = "compute"
    MEMORY = "memory"
    DATA_LOADING = "data_loading"
    COMMUNICATION = "communication"
    FRAMEWORK = "framework"
    NONE = "none"
    UNDETERMINED = "undetermined"


CLASSES = (
    Bottleneck.COMPUTE,
    Bottleneck.MEMORY,
    Bottleneck.DATA_LOADING,
    Bottleneck.COMMUNICATION,
    Bottleneck.FRAMEWORK,
)


@dataclass(frozen=True)
class Message:
    """A text of the catalogue before it has a language.

    Args:
        id: Key of the catalogue.
        params: Values for its placeholders; numbers are spelt by the unit their name ends in.
    """

    id: str
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Location:
    """Where a cost arises; each part None where the recording cannot show it.

    Args:
        rank: Rank of the process, None when all alike.
        module: Module path (``encoder.layers.3.attn``).
        file: Source file of the user's line.
        line: Line in it (the first line of the function where `exact` knowledge is missing).
        function: Function around it.
        op: Operator or kernel.
    """

    rank: int | None = None
    module: str | None = None
    file: str | None = None
    line: int | None = None
    function: str | None = None
    op: str | None = None


@dataclass(frozen=True)
class Evidence:
    """One measured value held against a threshold.

    Args:
        metric: Key of the catalogue (``metric.<metric>``), and the field's term.
        value: What was measured.
        unit: ``ns bytes flop share count flop_per_s bytes_per_s ratio``.
        threshold: What it is held against, or None for a plain figure.
        relation: ``>``, ``<`` or ``=``: how it must stand to the threshold to speak for the finding.
    """

    metric: str
    value: float
    unit: str
    threshold: float | None = None
    relation: str = ">"

    @property
    def unit_name(self) -> str:
        """Return a name that ends in the unit, as `uncork.units.format_quantity` takes it."""
        return f"value_{self.unit}"

    @property
    def holds(self) -> bool | None:
        """Return whether the value stands to the threshold as `relation` says; None without a threshold."""
        if self.threshold is None:
            return None
        if self.relation == ">":
            return self.value > self.threshold
        if self.relation == "<":
            return self.value < self.threshold
        return self.value == self.threshold


@dataclass(frozen=True)
class Gain:
    """What the advice is worth, as shares of the step time: a range."""

    low: float
    high: float


@dataclass(frozen=True)
class Cost:
    """What a rule returns: how much a cause costs, where, and why we think so.

    Args:
        ns_per_step: Time per step that goes to the cause; 0 for head-room findings.
        gain: What could be given back.
        confidence: 0–1.
        location: Where.
        evidence: Measured values and thresholds.
        advice: Ids of the page's advice that apply here, best first; empty means all, in the page's order.
        params: Values for the page's placeholders, besides ``cost_ns`` and ``share``.
    """

    ns_per_step: int
    gain: Gain
    confidence: float
    location: Location = field(default_factory=Location)
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[str, ...] = ()
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """A cause of lost time or memory.

    Texts (title, because, advice) live on the rule's pages and are filled with `params` when shown.

    Args:
        rule: Id of the rule (``starved``).
        bottleneck: Its class.
        cost_ns_per_step: Time per step that goes to this cause; 0 for head-room findings.
        share: `cost_ns_per_step` over the step time.
        gain: What could be given back.
        confidence: 0–1.
        location: Where.
        evidence: Measured values and thresholds.
        advice: Ids of the page's advice that apply here, best first; empty means all, in the page's order.
        params: Values for the page's placeholders.
    """

    rule: str
    bottleneck: Bottleneck
    cost_ns_per_step: int
    share: float
    gain: Gain
    confidence: float
    location: Location = field(default_factory=Location)
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[str, ...] = ()
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class NotAssessed:
    """A rule that could not look.

    Args:
        rule: Id of the rule.
        missing: What was missing, ids of the catalogue (``missing.<id>`` says what and ``record.<id>`` how to
            record it next time): ``device shapes stacks modules memory steps loader functions ranks snapshot …``.
    """

    rule: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Quality:
    """Something about the recording that limits what may be concluded.

    Args:
        id: Stable id (``device-data-missing``); the catalogue has ``quality.<id>`` and ``quality.<id>.fix``.
        severity: ``info``, ``warning`` (lowers the confidence) or ``blocking`` (forbids a verdict).
        share_affected: Share of the window or of the events concerned, or None.
        params: Values for the message's placeholders.
    """

    id: str
    severity: str = "warning"
    share_affected: float | None = None
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class ClassEvidence:
    """A measured value that speaks for or against a class.

    Args:
        bottleneck: The class.
        evidence: Value and threshold.
    """

    bottleneck: Bottleneck
    evidence: Evidence


@dataclass(frozen=True)
class Verdict:
    """The answer in one sentence, and how sure it is.

    Args:
        bottleneck: The class, or ``none``, or ``undetermined``.
        confidence: 0–1; of the verdicts given with 0.8 or more, at least 95 in 100 are to be right.
        share: Share of the step that could be won back from this class.
        summary: The sentence.
        contributing: Other classes worth naming, largest first.
        late_ranks: Ranks the others wait for.
        would_be_wrong_if: What would overturn it.
        evidence: The source articles' thresholds, class by class (`uncork.reading_rules`).
        disagreements: What seems to speak for another class (thresholds, a larger cause or finding), and why not.
    """

    bottleneck: Bottleneck
    confidence: float
    share: float
    summary: Message
    contributing: tuple[Bottleneck, ...] = ()
    late_ranks: tuple[int, ...] = ()
    would_be_wrong_if: tuple[Message, ...] = ()
    evidence: tuple[ClassEvidence, ...] = ()
    disagreements: tuple[Message, ...] = ()
