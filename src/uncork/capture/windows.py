"""Window: one stretch of steps that was observed in one way, and the file it leaves."""

from dataclasses import dataclass, field

from uncork.capture.core_time import CoreTime
from uncork.capture.plan import Stage

FILES = {"light": "light.trace.json", "deep": "deep.trace.json", "functions": "functions.pstats"}
"""Window → file in the rank's folder; the supervisor packs the traces to ``.gz`` at the end."""
Step = tuple[int, str, int, int, int | None]
"""Number, window, begin and duration of a step, and the CPU time of its thread; None where that ran on after it."""


@dataclass
class Window:
    """One stretch of steps observed in one way.

    Args:
        stage: Its place in the plan.
        first_step: Number of its first step.
        start_ns: Start since the epoch.
        step_ns: Durations of its steps.
        facts: What the probe says about it.
        cores: Counts who has the cores meanwhile; None where nobody asks.
    """

    stage: Stage
    first_step: int
    start_ns: int
    step_ns: list[int] = field(default_factory=list)
    facts: dict[str, int] = field(default_factory=dict)
    cores: CoreTime | None = None

    def is_over(self) -> bool:
        """Return whether the window has seen enough."""
        done = len(self.step_ns)
        return done >= self.stage.most or (done >= self.stage.least and sum(self.step_ns) >= self.stage.target_ns)

    def to_json(self) -> dict[str, object]:
        """Return the window as recording.json holds it."""
        return {
            "name": self.stage.name,
            "pass": self.stage.number,
            "first_step": self.first_step,
            "start_ns": self.start_ns,
            "step_ns": self.step_ns,
            **self.facts,
        }
