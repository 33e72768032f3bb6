"""dense-table-gradient: the gradient and the update of a whole table, for the few rows that a step uses."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.dense_tables import FEW_ROWS, DenseTables
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

WON_SHARES = (0.5, 0.95)
"""What is left goes over the rows used: a tenth of the table at most, and calls (measured on the CPU: 0.89, 0.91)."""


@rule()
def dense_table_gradient(tables: Ranks[DenseTables], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of the operators that go over whole tables."""
    cost = charge(ledgers, [one.cost_ns for one in tables])
    table = tables[cost.place]
    if not cost.notable or table.largest is None:
        return None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * WON_SHARES[0], cost.share * WON_SHARES[1]),
        confidence=sure(ledgers[cost.place], 0.85),
        location=table.largest.location(cost.rank),
        evidence=(
            Evidence("whole_table_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("table_rows", table.table_rows, "count", FEW_ROWS * table.used),
            Evidence("table_rows_used", table.used, "count"),
        ),
        params={"rows": table.table_rows, "used": table.used, "where": table.largest.where},
    )
