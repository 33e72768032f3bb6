"""The host's own pace: time in which nothing works because operators are still being called."""

from collections.abc import Sequence

from uncork.measure import Ranks
from uncork.measure.host_pieces import where
from uncork.measure.loops import Loops
from uncork.measure.machine import Machine
from uncork.measure.python_gaps import PythonGaps
from uncork.measure.step_ledger import FRAME_CAUSES, StepLedger
from uncork.measure.whereabouts import Calls
from uncork.rules.worth import NOTABLE_SHARE
from uncork.units import format_share

COMPILES_FROM = (2, 0)
"""The first torch with ``torch.compile``."""
LOOPED = 24
"""Calls of one operator on one line and in one module, from which on they are a loop over pieces: models written out
without modules for their parts repeat a line up to a dozen times."""
LEAST_TAKES = 50
"""PyTorch's own pattern matcher speaks of a loop from 10 repetitions on; going through some heads or layers is fine."""
LEAST_MODEL_CALLS = 10
"""… but not calling the model for each piece: then its repetitions are enough."""
MOST_OPS_PER_TAKE = 30
"""With more operators around each, the place is a whole program and not a loop."""
_EXPOSED = ("dispatch", "sync", "py_short", "py_stack")
TOLD_SHARE = 0.1
"""A place that calls fewer of the operators is not named."""
GRAPHS = ("cuda", "hip")
"""Devices whose work can be captured as a graph."""


def pace_ns(ledger: StepLedger) -> int:
    """Return the time per step that goes into calling operators: the device waits, or no kernel runs on the CPU."""
    return ledger.mean_ns("dispatch", "py_short") if ledger.on_device else ledger.mean_ns("tiny", "py_short")


def python_ns(ledger: StepLedger, gaps: PythonGaps) -> float:
    """Return the time per step of the program's own Python, which stands in short gaps too where much is called."""
    return gaps.part_ns("", ledger.mean_ns("py_short", *FRAME_CAUSES, "unexplained"), ledger.mean_step_ns)


def calls_ns(ledgers: Ranks[StepLedger], gaps: Ranks[PythonGaps] | None) -> list[int]:
    """Return the pace of each rank without the program's own Python between the calls, where frames tell of it."""
    if gaps is None:
        return [pace_ns(ledger) for ledger in ledgers]
    found = []
    for ledger, gap in zip(ledgers, gaps, strict=True):
        between = max(int(python_ns(ledger, gap)) - ledger.mean_ns(*FRAME_CAUSES, "unexplained"), 0)
        found.append(pace_ns(ledger) - min(between, ledger.mean_ns("py_short")))
    return found


def least_takes(loops: Loops) -> int:
    """Return how many pieces a place must take per step to be a loop over a tensor."""
    return LEAST_MODEL_CALLS if loops.model_ops else LEAST_TAKES


def loop_ns(loops: Loops, ledger: StepLedger) -> float:
    """Return the host time per step of a loop over a tensor, as far as nothing else hides it; 0 where there is none."""
    if not loops.known_place or loops.takes < max(least_takes(loops), loops.ops / MOST_OPS_PER_TAKE):
        return 0.0
    exposed_ns = ledger.mean_ns(*_EXPOSED) if ledger.on_device else ledger.mean_step_ns
    # What calling costs goes with the calls: the time of functions of autograd's, and the short gaps between.
    calling_ns = max(loops.host_ns, ledger.mean_ns("tiny", "dispatch") * loops.ops_share)
    return min(calling_ns + ledger.mean_ns("py_short") * loops.ops_share, exposed_ns)


def without_loop(calls_ns: float, loops: Loops, ledger: StepLedger) -> float:
    """Return the time of calling operators without those of a loop over a tensor that is worth a finding of its own."""
    told = loop_ns(loops, ledger) >= NOTABLE_SHARE * ledger.mean_step_ns
    return calls_ns * (1 - loops.ops_share) if told else calls_ns


def compiles(machine: Machine) -> bool:
    """Return whether the machine's torch can compile, as far as is known."""
    return machine.torch is None or machine.torch >= COMPILES_FROM


def pace_advice(machine: Machine, *, compiled: bool, turns: float) -> tuple[str, ...]:
    """Return the ids of the advice against a slow host that apply to a machine and a program, best first.

    Graphs are not among it: cuda-graph-candidate knows whether the steps can be one.
    """
    advice = ["compile"] if compiles(machine) and not compiled else []
    if machine.modelless or turns >= LOOPED:
        # Code of one's own around single tensors: the loop is what to change, and there is no batch to enlarge.
        return ("vectorise", *advice)
    return (*advice, "larger-work", "vectorise")


def callers_told(callers: Sequence[Calls]) -> str:
    """Return the places that call most operators, with their shares of all calls, on one line."""
    return ", ".join(f"{where(one.location)} {format_share(one.share)}" for one in callers if one.share >= TOLD_SHARE)
