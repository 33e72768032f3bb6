"""What the main thread does without a device: whose the gaps between calls are."""

import pytest

from uncork.ledger import partition
from uncork.testing import sketch
from uncork.timeline import Timeline

MS = 1_000_000


@pytest.mark.parametrize(
    ("once", "end_ms", "optimizer_ms"),
    [
        ("", 6, 4 * 2),  # 1 ms is longer than the gaps of other Python
        ("", 9, 4 * 5),  # 4 ms are as long as a stall, but come in each step
        # In one step of four: another program had the core.
        ("main 14ms..19ms Optimizer.step#SGD.step", 5, 4 * 1),
    ],
)
def test_gaps_within_an_update_are_the_optimizers(once: str, end_ms: int, optimizer_ms: int) -> None:
    """A hundred tiny calls of 10 µs, then a gap within the update: nothing but the optimizer's Python runs there."""
    calls = "main 4ms..4.01ms x100 every 0.01ms aten::add_"
    update = f"main 4ms..{end_ms}ms Optimizer.step#SGD.step"
    (recording,) = sketch(f"{once}\nsteps 4 x 10ms\n  main 0ms..4ms aten::addmm\n  {update}\n  {calls}")
    ledger = partition(Timeline(recording))
    assert ledger.ns[ledger.causes.index("optimizer")].sum() == optimizer_ms * MS
