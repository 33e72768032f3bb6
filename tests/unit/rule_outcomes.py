"""What one rule says about a sketch or about a recording, without the rest of the pipeline."""

from collections.abc import Sequence
from pathlib import Path

from uncork import readers
from uncork.findings import Finding, NotAssessed
from uncork.measure import measure
from uncork.measure.step_ledger import StepLedger
from uncork.recording import Recording
from uncork.rules import rules
from uncork.testing import sketch


def outcome(rule_id: str, recordings: Sequence[Recording]) -> list[Finding] | NotAssessed:
    """Return what a rule says about the ranks of one job."""
    measured = [measure(recording) for recording in recordings]
    ledgers = [one[StepLedger] for one in measured if isinstance(one[StepLedger], StepLedger)]
    step_ns = int(sum(ledger.mean_step_ns for ledger in ledgers) / len(ledgers)) if ledgers else 0
    return rules()[rule_id].check(measured, list(range(len(measured))), step_ns)


def found(rule_id: str, text: str) -> Finding:
    """Return the only finding of a rule in a sketch."""
    result = outcome(rule_id, sketch(text))
    assert isinstance(result, list), result
    (finding,) = result
    return finding


def clear(rule_id: str, text: str) -> bool:
    """Return whether a rule looked at a sketch and found nothing."""
    return outcome(rule_id, sketch(text)) == []


def found_in(rule_id: str, *paths: Path) -> Finding:
    """Return the only finding of a rule in recordings that exist."""
    result = outcome(rule_id, [recording for path in paths for recording in readers.read(path)])
    assert isinstance(result, list), result
    (finding,) = result
    return finding
