"""over-peak: an operator seems faster than its device can be, so a figure of uncork's is wrong."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.operators import OperatorTable
from uncork.roofline import OVER_PEAK_SHARE
from uncork.rules.rule import rule


@rule()
def over_peak(tables: Ranks[OperatorTable]) -> Cost | None:
    """Return the operator that exceeds the peak by most; it costs nothing."""
    if not any(table.peaks for table in tables):
        raise MissingEvidence("device_model")
    if not any(table.shapes for table in tables):
        raise MissingEvidence("shapes")
    rows = [row for table in tables for row in table.operators if row.over_peak]
    if not rows:
        return None
    worst = max(rows, key=lambda row: row.roofline_share or 0.0)
    share = worst.roofline_share or 0.0
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=1.0,
        location=worst.location(),
        evidence=(Evidence("roofline_share", share, "share", OVER_PEAK_SHARE),),
        params={"op": worst.name, "peak_share": share, "count": len(rows), "precision": worst.precision},
    )
