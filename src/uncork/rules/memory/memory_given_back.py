"""memory-given-back: on the CPU each step gives memory back to the system, and the next asks for it anew."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.page_faults import PageFaults
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

LEAST_FAULTS = 250
"""One MiB per step in pages of 4 KiB. Three programs made 0 to 50 faults a step with the advice taken, and 310 to
82,000 without (convolutions, a transformer, chains of operators on 1 to 40 MB)."""
TRIM_LEAST_BYTES, TRIM_MOST_BYTES = 256 << 20, (1 << 31) - 1
"""What malloc is to keep: enough for twice what a step gives back; `mallopt` takes no more than an int."""
KEPT = 2
LEAST_GAIN = 0.5
"""Half: the system's share is told by samples where the kernel counts so."""


@rule()
def memory_given_back(faults: Ranks[PageFaults], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the system's time for pages that the step before had already."""
    waits = [one.system_share * ledger.mean_step_ns for one, ledger in zip(faults, ledgers, strict=True)]
    cost = charge(ledgers, waits)
    one = faults[cost.place]
    if not cost.notable or one.faults <= LEAST_FAULTS:
        return None
    if not one.plain:
        raise MissingEvidence("plain_malloc")
    if one.workers and not one.settled:
        raise MissingEvidence("own_faults")
    later = () if one.later_faults is None else (Evidence("page_faults_later", one.later_faults, "count"),)
    trim_bytes = max(TRIM_LEAST_BYTES, 1 << (KEPT * one.given_back_bytes - 1).bit_length())
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(LEAST_GAIN * cost.share, cost.share),
        confidence=sure(ledgers[cost.place], 0.85 if one.settled else 0.6),
        location=Location(rank=cost.rank),
        evidence=(
            Evidence("page_faults_per_step", one.faults, "count", LEAST_FAULTS),
            Evidence("fault_share", cost.share, "share", NOTABLE_SHARE),
            *later,
        ),
        params={
            "faults": round(one.faults),
            "given_back_bytes": one.given_back_bytes,
            "trim": str(trim_bytes),
            "trim_in_program": str(min(trim_bytes, TRIM_MOST_BYTES)),
            "command": one.command or "python train.py",
            "proof": "@malloc.settled" if one.settled else "@malloc.unsettled",
        },
    )
