"""The host's own pace: time in which nothing works because operators are still being called."""

from uncork.measure import Ranks
from uncork.measure.machine import Machine
from uncork.measure.python_gaps import PythonGaps
from uncork.measure.step_ledger import FRAME_CAUSES, StepLedger

COMPILES_FROM = (2, 0)
"""The first torch with ``torch.compile``."""
LOOPED = 24
"""Calls of one operator on one line and in one module, from which on they are a loop over pieces: models written out
without modules for their parts repeat a line up to a dozen times."""
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
