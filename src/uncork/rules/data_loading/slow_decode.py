"""slow-decode: the step waits for data, and decoding is a large part of making it."""

from dataclasses import replace

from uncork.findings import Cost
from uncork.measure import Ranks
from uncork.measure.loader_code import LoaderCode
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.step_ledger import StepLedger
from uncork.rules.loading import stage_cost
from uncork.rules.rule import rule

ADVICE = {"text": ("whole-batch",), "pictures": ("smaller", "faster-decoder"), "packed": ("faster-parser",)}
"""What helps by what is decoded, besides doing it once; where no name tells, all of it."""


@rule()
def slow_decode(
    codes: Ranks[LoaderCode] | None, ledgers: Ranks[StepLedger], stages: Ranks[LoaderStages] | None
) -> Cost | None:
    """Return what decoding costs while the step waits."""
    cost = stage_cost("decode", codes, ledgers, stages, won=0.9, confidence=0.8)
    kinds = {kind for code in codes or () for kind in code.decoded}
    kinds = kinds - {"packed"} or kinds or set(ADVICE)  # something is unpacked in most programs
    return cost and replace(cost, advice=("cache", *(one for kind in ADVICE if kind in kinds for one in ADVICE[kind])))
