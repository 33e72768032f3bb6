"""CaptureOptions: what `uncork run` was asked to record; and the way it reaches the watched program."""

import json
import os
import time
from dataclasses import asdict
from pathlib import Path

from uncork.records import dataclass

ENVIRONMENT = "UNCORK_CAPTURE"
"""Environment variable that carries `Orders` into every process of the run."""

LOOK_S = 0.1
GO = "go"
"""File of the run folder whose presence starts an armed recording."""


@dataclass(frozen=True)
class CaptureOptions:
    """What to record.

    Args:
        skip: Steps to leave out before the first window; None lets the recorder choose.
        steps: End the program after this many steps.
        seconds: Interrupt the program after this time, as Ctrl-C would.
        then_exit: End the program as soon as every window is recorded.
        stacks: Record Python stacks in the deep window.
        shapes: Record shapes in the deep window.
        memory: Record allocations in the deep window.
        deep: Record a deep window at all.
        functions: Record a cProfile window.
        arm: Wait for ``uncork trigger PID`` before the first window.
    """

    skip: int | None = None
    steps: int | None = None
    seconds: float | None = None
    then_exit: bool = False
    stacks: bool = True
    shapes: bool = True
    memory: bool = True
    deep: bool = True
    functions: bool = True
    arm: bool = False


@dataclass(frozen=True)
class Orders:
    """What every process of a run is told.

    Args:
        folder: The run folder.
        package: Folder of the `uncork` package, so that any interpreter can import the same one.
        options: What to record.
    """

    folder: str
    package: str
    options: CaptureOptions

    def to_json(self) -> str:
        """Return the orders as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_environment(cls) -> "Orders":
        """Return the orders this process was started with."""
        told = json.loads(os.environ[ENVIRONMENT])
        return cls(told["folder"], told["package"], CaptureOptions(**told["options"]))


def package_folder() -> Path:
    """Return the folder of the `uncork` package."""
    return Path(__file__).resolve().parent.parent


class Trigger:
    """Says whether the first window may begin: at once, or once an armed recording was triggered.

    Args:
        orders: Whether and where to wait for it.
    """

    def __init__(self, orders: Orders) -> None:
        self._waits = orders.options.arm
        self._go = os.path.join(orders.folder, GO)
        self._next_look_s = 0.0

    def __call__(self) -> bool:
        """Return whether to begin; a step of microseconds looks at the folder rarely, for a look is a system call."""
        now_s = time.monotonic()
        if self._waits and now_s >= self._next_look_s:
            self._next_look_s = now_s + LOOK_S
            self._waits = not os.path.exists(self._go)
        return not self._waits
