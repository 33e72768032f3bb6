"""stage-waits: stages of a pipeline wait for each other to send or to take; which, for whom, and for how long."""

import numpy as np

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.messages import Messages
from uncork.measure.stages import Stages, pipelines
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import sure
from uncork.units import format_quantity

LEAST_SHARE = 0.1
"""Bubbles are (stages - 1) / (micro-batches + stages - 1) of a step: a tenth is a pipeline in good order."""
WON_SHARE = 0.75
"""Four times as many micro-batches: a quarter of the start and the end of a step is left."""
HALF = 0.5
"""Layers are moved whole, and micro-batches lose some speed: half of the better change is the least it brings."""


@rule()
def stage_waits(messages: Ranks[Messages], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return how long ranks wait for the other side of their messages, mean over a pipeline."""
    found = pipelines(messages, [len(one.step_ns) for one in ledgers])
    if not found:
        return None
    stages = max(found, key=lambda one: float(one.waited_ns.mean()))
    own = Ranks([ledgers[place] for place in stages.places], [ledgers.numbers[place] for place in stages.places])
    step_ns = float(np.mean([one.mean_step_ns for one in own]))
    waited_ns = min(float(stages.waited_ns.mean()), step_ns)
    if waited_ns < LEAST_SHARE * step_ns or not step_ns:
        return None
    work_ns = np.array([one.mean_step_ns - one.mean_ns("comm", "comm_wait") for one in own], np.float64)
    slow = int(work_ns.argmax())
    # A pipeline takes all stages' work on one micro-batch, and the slowest one's on each other (GPipe, section 2).
    uneven = float(work_ns.max() - work_ns.mean()) * (1 - 1 / stages.messages) / step_ns
    start = WON_SHARE * float(work_ns.sum() - work_ns.max()) / stages.messages / step_ns
    share = waited_ns / step_ns
    by_pair = _by_pair(stages, own)
    return Cost(
        ns_per_step=round(waited_ns),
        gain=Gain(min(HALF * max(uneven, start), share), min(uneven + start, share)),
        confidence=sure(own[slow], 0.85),
        location=Location(rank=own.numbers[slow], op="send_recv"),
        evidence=(
            Evidence("stage_wait_share", share, "share", LEAST_SHARE),
            Evidence("even_stages_wait_share", stages.least_share, "share"),
            Evidence("slow_stage_work_ratio", float(work_ns.max() / max(work_ns.mean(), 1.0)), "ratio"),
            Evidence("stage_messages", stages.messages, "count"),
        ),
        advice=("balance-stages", "micro-batches") if uneven > start else ("micro-batches", "balance-stages"),
        params={
            "waits": ", ".join(by_pair),
            "stages": len(own),
            "messages": stages.messages,
            "even_share": stages.least_share,
            "slow": str(own.numbers[slow]),
            "slow_ns": round(float(work_ns.max())),
            "mean_ns": round(float(work_ns.mean())),
        },
    )


def _by_pair(stages: Stages, own: Ranks[StepLedger]) -> list[str]:
    """Return who waits for whom for which share of its step, the longest waits first, at most four."""
    steps_ns = np.array([max(one.mean_step_ns, 1) for one in own])
    shares = stages.wait_ns / steps_ns[:, None]
    order = np.argsort(-shares, axis=None, kind="stable")[:4]
    pairs = [divmod(int(place), len(own)) for place in order if shares.flat[place] > 0]
    return [f"{own.numbers[i]} → {own.numbers[j]}: {format_quantity('share', float(shares[i, j]))}" for i, j in pairs]
