"""Plan: which windows come in which order, and how long each may be.

Each window bounds the next: the light one counts the operators of a step and cProfile its Python calls, and both
decide how many steps a deep window may hold and whether it may record stacks.
"""

from dataclasses import replace

from uncork.capture.options import CaptureOptions
from uncork.records import dataclass

EVENTS_MOST_DEEP = 100_000
"""Events a deep window may hold: 1.4 s for stop and export, 60 MB of JSON, 500 MB of memory (14 us, 615 B, 5 kB)."""
EVENTS_MOST_STEP = 150_000
"""Events of one step that a deep window still bears, since less than a step it cannot hold."""
EVENTS_MOST_LIGHT = 250_000
"""Events a light window may hold: 1.1 s for stop and export, 70 MB of JSON, 430 MB (4.3 us, 290 B, 1.7 kB each)."""
FORWARDS_MOST_DEEP = 20
"""Forwards in a long deep window: generation by hand shows by the lengths of one after another whether it keeps keys
and values (`uncork.measure.growing_inputs` asks for 16)."""
EVENTS_ENOUGH, EVENTS_ENOUGH_ONE = 8_000, 32_000
"""Events after which a first light window has seen enough at the end of a step, and at that of its only one, which
shows nothing that repeats: 35 and 140 ms for stop and export."""
COLLECTED_LIGHT, COLLECTED_DEEP = 230, 480
"""Bytes that torch's profiler keeps per event while it collects (measured with 2.3, 2.13 and 2.15: 440 to 485 in a deep
window without Python calls)."""
SECOND_PASS_LEAST, SECOND_PASS_AFTER_NS = 40, 60_000_000_000
"""Steps before the second pass, or time where steps are long: caches, allocators and workers have settled by then."""
SECOND_PASS_SHARE = 0.03
"""Share of the loop's time that stopping and writing the windows of a later pass may cost."""
SECOND_PASS_STEP = 100
"""Step at which all ranks of a job begin the second pass."""
LONG_STEP_NS = 1_000_000_000
QUICK_STEP_NS, QUICK_STEP_EVENTS = 50_000_000, 5_000
"""A step that takes less, and of which a deep window holds fewer events, is cheap: a third pass holds more of them."""
TINY_EVENTS, TINY_PER_NS = 3_000, 1e-3
"""A step with more events than this, and faster ones, is of operators so tiny that torch's work on the shapes of their
inputs, at the end of a deep window, takes as long as seven such steps: a first one goes without."""
TRACES = ("light", "deep")
"""Windows with torch's profiler."""
LAST_FOR_ALL = 2
"""The last pass for steps of every kind."""


@dataclass(frozen=True)
class Stage:
    """One window of the plan.

    Args:
        name: Window name, or ``settle`` for steps after a window's stop that nobody measures.
        most: Steps it lasts at most.
        least: Steps it lasts at least.
        target_ns: Time after which it ends once it has `least` steps.
        number: Pass it belongs to: the first is short, so that a job of twenty steps is seen whole; the second replaces
            its windows with longer ones; the third holds more of steps that are quick.
    """

    name: str
    most: int
    least: int
    target_ns: int
    number: int = 1


def stages(options: CaptureOptions, *, loader_depth: int, aligned: bool) -> list[Stage]:
    """Return the plan in order.

    Args:
        options: What was asked for.
        loader_depth: Batches that DataLoader workers may hold ready: after a stop that many steps look data-fast.
        aligned: Several ranks run in step, so every length is a count of steps and none a time.
    """
    settle = min(loader_depth, 32) + 1
    skip = options.skip
    warm = Stage("warmup", 3, 1, 2 * LONG_STEP_NS) if skip is None else Stage("warmup", skip, skip, 0)
    first = [
        warm,
        Stage("baseline", 4, 2, 2 * LONG_STEP_NS),
        Stage("light", 3, 2, 2 * LONG_STEP_NS),
        Stage("functions", 2, 1, LONG_STEP_NS),
        Stage("deep", 1, 1, 0),
        Stage("settle", settle, 1, 4 * LONG_STEP_NS),
        Stage("baseline2", 4, 1, 2 * LONG_STEP_NS),
    ]
    second = [
        Stage("settle", settle, 1, 4 * LONG_STEP_NS, 2),
        Stage("baseline", 20, 3, 4 * LONG_STEP_NS, 2),
        Stage("light", 10, 3, 4 * LONG_STEP_NS, 2),
        Stage("functions", 10, 2, 2 * LONG_STEP_NS, 2),
        Stage("deep", 2, 1, 2 * LONG_STEP_NS, 2),
        Stage("settle", settle, 1, 4 * LONG_STEP_NS, 2),
        Stage("baseline2", 20, 3, 4 * LONG_STEP_NS, 2),
    ]
    third = [Stage("light", 30, 10, LONG_STEP_NS, 3), Stage("deep", 8, 2, LONG_STEP_NS, 3)]
    wanted = [stage for stage in first + second + third if _asked(stage.name, options)]
    if not aligned:
        return wanted
    # Whether steps are quick is a matter of time, so each rank would answer for itself.
    return [replace(stage, least=stage.most, target_ns=0) for stage in wanted if stage.number <= LAST_FOR_ALL]


def fit(stage: Stage, events_per_step: float) -> Stage:
    """Return the stage shortened so that its trace stays within bounds, given the operators of a step."""
    if events_per_step <= 0 or stage.name not in TRACES:
        return stage
    bound = EVENTS_MOST_DEEP if stage.name == "deep" else EVENTS_MOST_LIGHT
    most = max(1, min(stage.most, int(bound / events_per_step)))
    return replace(stage, most=most, least=min(stage.least, most))


def _asked(name: str, options: CaptureOptions) -> bool:
    return (name != "deep" or options.deep) and (name != "functions" or options.functions)
