"""inference-shards-gathered-per-token: sharded weights are put together anew for every step of a forward-only run."""

import numpy as np

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.collectives import Collectives
from uncork.measure.step_ledger import StepLedger
from uncork.measure.wrappers import Wrappers
from uncork.rules.rule import rule

LARGE_BYTES = 4 << 20
"""A layer's weights; tensor-parallel inference gathers activations of some KB, and logits once per step."""
MANY_PER_STEP = 4
LEAST_SHARE = 0.05


@rule()
def inference_shards_gathered_per_token(
    wrappers: Ranks[Wrappers], collectives: Ranks[Collectives], ledger: Ranks[StepLedger]
) -> Cost | None:
    """Return the exposed time of large gathers where nothing is trained, on the rank where it is least."""
    if any(one.backward or one.optimizer_steps for one in wrappers):
        return None
    if not any((one.bytes > 0).any() for one in collectives):
        raise MissingEvidence("sizes")
    gathers = [_gathers(one) for one in collectives]
    steps = [max(len(one.step_ns), 1) for one in ledger]
    times = [
        int(one.exposed_ns[mine].sum()) / count for one, mine, count in zip(collectives, gathers, steps, strict=True)
    ]
    place = int(np.argmin(times))
    mine, step_ns = collectives[place], ledger[place].mean_step_ns
    count = int(gathers[place].sum()) / steps[place]
    if count < MANY_PER_STEP or not step_ns or times[place] < LEAST_SHARE * step_ns:
        return None
    share = times[place] / step_ns
    size = int(mine.bytes[gathers[place]].sum()) // steps[place]
    return Cost(
        ns_per_step=round(times[place]),
        gain=Gain(0.5 * share, share),
        confidence=0.75,
        location=Location(op="all_gather"),
        evidence=(
            Evidence("gathered_share", share, "share", LEAST_SHARE),
            Evidence("gathers_per_step", count, "count", MANY_PER_STEP),
            Evidence("comm_bytes_per_step", size, "bytes"),
        ),
        params={"gathers": round(count), "size_bytes": size},
    )


def _gathers(one: Collectives) -> np.typing.NDArray[np.bool_]:
    named = np.array([name == "all_gather" for name in one.names], bool)[one.name]
    large: np.typing.NDArray[np.bool_] = named & (one.bytes >= LARGE_BYTES) & (one.step >= 0)
    return large
