"""What one stage of making items costs: the wait for data, times the stage's share of the loading."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.loader import LoaderWait
from uncork.measure.loader_code import LoaderCode, Part
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.rules.worth import NOTABLE_SHARE, charge, charge_causes, sure

LEAST_STAGE_SHARE = 0.25
"""A stage below a quarter of the loading is not what makes it slow."""
STAGES = ("read", "decode", "augment", "to_tensor")
"""Each has a rule of its own."""
ITEM_WON_SHARE = 0.95
"""Arrays instead of rows, or a result that is kept, leave a twentieth (measured: rows of pandas turned into tensors
once, a step of 6.9 ms that loads for 6.4 became one of 0.5)."""
HANDOVER_NS = 300_000
"""What it takes the main process at least to receive a batch from a worker: two small tensors took 0.35 to 0.6 ms of
its CPU time on two busy cores. Batches of tensors in memory are made in less."""
BATCHED_WON_SHARE = 0.8
"""What is won of the wait at best where whole batches are taken instead of items: 64 small rows took 29 µs instead of
139, 8 of them 15 instead of 27. Of pictures copying takes the time, and nothing is won."""


def received_share(wait: LoaderWait, ledger: StepLedger) -> float:
    """Return the share of a step that receiving its batches from workers would take."""
    step_ns = ledger.mean_step_ns * len(ledger.step_ns)
    return HANDOVER_NS * wait.calls / step_ns if step_ns else 0.0


def own_loading(
    machine: Machine, waiting_share: float, won: float, worth: float, *, in_memory: bool, named: bool
) -> tuple[tuple[str, ...], Gain]:
    """Return (what to change where the main process loads, the best first, what it is worth).

    Nothing is advised where all there is to say another finding says.

    Args:
        machine: Where it runs.
        waiting_share: Share of the step that waits for data.
        won: Share of it that workers win.
        worth: Share of it that a cheaper item wins.
        in_memory: Nothing but PyTorch makes the items.
        named: What the costliest function does has a finding of its own, with its worth: only workers are left to say.
    """
    workers = ("workers",) if won > 0 and machine.cores != 1 else ()
    if in_memory and not won:
        return ("whole-batches",), Gain(0.0, waiting_share * BATCHED_WON_SHARE)
    if named and machine.cores != 1:
        return workers, Gain(won / 2, won)
    high = max(won, worth)
    # Beside a short step workers hide little.
    advice = ("cheaper-items", *workers, "cache") if worth > won else (*workers, "cheaper-items", "cache")
    return advice, Gain(high / 2, high)


def cheaper_item(code: LoaderCode | None, waiting_share: float) -> tuple[Part | None, float]:
    """Return the user's function that costs the loading most, whatever it does, and what it is worth at best.

    Args:
        code: The loading by function, where it is known.
        waiting_share: Share of the step that waits for data.
    """
    own = code.top() if code else None
    return own, waiting_share * own.share * ITEM_WON_SHARE if own else 0.0


def named_by_stage(code: LoaderCode | None, waiting_share: float) -> bool:
    """Return whether the user's function that costs the loading most is named by the rule of what it does there.

    Then another finding need not say again that it should be made cheaper.

    Args:
        code: The loading by function, where it is known.
        waiting_share: Share of the step that waits for data.
    """
    top = code.top() if code else None
    if code is None or top is None:
        return False
    said = [code.top(stage) for stage in STAGES if _large(code.share(stage), waiting_share)]
    return any(one and (one.file, one.function) == (top.file, top.function) for one in said)


def _large(stage_share: float, waiting_share: float) -> bool:
    return stage_share >= LEAST_STAGE_SHARE and stage_share * waiting_share >= NOTABLE_SHARE


def stage_cost(
    stage: str,
    codes: Ranks[LoaderCode] | None,
    ledgers: Ranks[StepLedger],
    stages: Ranks[LoaderStages] | None,
    *,
    won: float,
    confidence: float,
) -> Cost | None:
    """Return what a stage costs where the step waits for data and the stage is a large part of making it.

    Args:
        stage: One that `uncork.measure.loader_words.stage_of` returns.
        codes: The loading by function; may only lack where no step waits for data.
        ledgers: Where the steps' time went.
        stages: The recorder's times: a wait that is not for making batches is not the items' fault.
        won: Share of the stage's time that can be won at best.
        confidence: Of the finding, before what lowers it.
    """
    if not charge_causes(ledgers, "data_loading").notable:
        return None
    if codes is None:
        raise MissingEvidence("stacks")
    shares = [code.share(stage) for code in codes]
    making = [one.making_share for one in stages] if stages else [1.0] * len(codes)
    cost = charge(
        ledgers,
        [
            ledger.mean_ns("data_loading") * share * made
            for ledger, share, made in zip(ledgers, shares, making, strict=True)
        ],
    )
    share = shares[cost.place]
    if not cost.notable or share < LEAST_STAGE_SHARE:
        return None
    code, ledger = codes[cost.place], ledgers[cost.place]
    top = code.top(stage)
    location = replace(top.location, rank=cost.rank) if top else Location(rank=cost.rank, op="DataLoader.__next__")
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * won / 2, cost.share * won),
        confidence=sure(ledger, confidence),
        location=location,
        evidence=(
            Evidence("loader_wait_share", ledger.share("data_loading"), "share", NOTABLE_SHARE),
            Evidence("loader_stage_share", share, "share", LEAST_STAGE_SHARE),
        ),
        params={"stage_share": share, **_told(top)},
    )


def _told(top: Part | None) -> dict[str, object]:
    """Return where most of a stage is, and in which call."""
    return {"where": top.where, "call": top.call} if top else {"where": "DataLoader.__next__", "call": ""}
