"""Journal: what a process tells of its recording, written so that a kill at any moment leaves a whole file."""

import sys
import traceback
from collections import deque
from pathlib import Path
from typing import Any

from uncork.capture import settings
from uncork.capture.cells import cells
from uncork.capture.files import claim, note_fault, write_json
from uncork.capture.garbage import Garbage
from uncork.capture.holdings import Sizes, holdings
from uncork.capture.options import Orders, package_folder
from uncork.capture.unheld import Unheld
from uncork.capture.windows import Step

STEPS_KEPT = 4096
"""Steps whose times are kept for steps.json, the latest: each pass of windows is far shorter."""

FIRST_TIMED = 2
"""The first step with a known begin, where a step is told by its end only: it begins as the first one ends."""

MOST_COUNTS = 8
"""Counts of what modules hold: each takes milliseconds (2.4 ms for a GPT of four blocks, capture study, section 9)."""


class Journal:
    """Notes, faults, facts and steps of one process, and the folder they are written to.

    Args:
        orders: Where the run folder is.
    """

    def __init__(self, orders: Orders) -> None:
        self.notes: list[str] = []
        self.faults: list[str] = []
        self.seen: dict[str, Any] = {"optimizers": []}
        self.steps: deque[Step] = deque(maxlen=STEPS_KEPT)
        self.moved: deque[int] = deque(maxlen=STEPS_KEPT)
        self.garbage = Garbage()
        self.startup: dict[str, int] = {}
        self.folder: Path | None = None
        self._orders = orders
        self._facts: dict[str, Any] = {}
        self._holdings: dict[str, Sizes] = {}
        self._unheld = Unheld()
        self.gradients_unheld: list[str] | None = None
        self._counts = 0
        self._place = (0, 1)

    def note(self, what: str) -> None:
        """Remember the id of something that went wrong or was left out."""
        if what not in self.notes:
            self.notes.append(what)

    def fault(self) -> None:
        """Remember the fault that is being handled."""
        self.faults.append(traceback.format_exc(limit=8))
        self.note(note_fault(self._orders.folder))

    def move(self, step: int) -> None:
        """Remember that before a step the program did other work; before each other one only we had our turn."""
        if not self.moved or self.moved[-1] != step:
            self.moved.append(step)

    def count(self, named: list[tuple[str, Any]], step: int) -> None:
        """Count what each module holds; after the last update of a step all gradients and state are there.

        Args:
            named: Every module with its path.
            step: Steps the program has made.
        """
        if self._counts < MOST_COUNTS:
            self._counts += 1
            optimizers = [one for reference in self.seen["optimizers"] if (one := reference()) is not None]
            self._holdings = holdings(dict(named), optimizers)
            self.gradients_unheld = self._unheld.look(named, optimizers, step)

    def is_due(self, step: int) -> bool:
        """Return whether parameters that no optimiser holds wait for a second look."""
        return self.gradients_unheld is None and self._counts < MOST_COUNTS and self._unheld.is_due(step)

    def home(self, torch: Any) -> Path:
        """Return this process's folder, claiming it when it is first needed."""
        if self.folder is None:
            self.folder = claim(Path(self._orders.folder), settings.rank(torch)[0])
        return self.folder

    def place(self, torch: Any) -> tuple[int, int]:
        """Return the rank and the number of ranks; at the end the program may have left its process group already."""
        self._place = max(self._place, settings.rank(torch), key=lambda place: place[1])
        return self._place

    def remove(self, torch: Any, names: list[str]) -> None:
        """Remove files that no longer belong to what is recorded."""
        for name in names:
            (self.home(torch) / name).unlink(missing_ok=True)

    def write(self, torch: Any, state: dict[str, Any], *, fresh: bool) -> None:
        """Write recording.json and steps.json.

        Args:
            torch: The program's torch.
            state: Where the recording stands.
            fresh: Read the facts of the live objects again.
        """
        home = self.home(torch)
        theirs = sys.modules.get("uncork")
        if theirs is not None and getattr(theirs, "__file__", None) != str(package_folder() / "__init__.py"):
            self.note("own-uncork")
        number, world = self.place(torch)
        if not self._facts or fresh:
            found = settings.facts(torch, self.seen, sys.modules)
            found["settings"] = {**self._facts.get("settings", {}), **found["settings"]}  # the objects may be gone now
            self._facts = found
        if self.gradients_unheld is not None:
            self._facts["settings"]["gradients_unheld"] = self.gradients_unheld
        about = {
            "format": 1,
            "rank": number,
            "world_size": world,
            **state,
            "user_profiler": "user-profiler" in self.notes,
            "notes": self.notes,
            "faults": self.faults,
            **self._facts,
            "modules": self._holdings,
            "garbage": self.garbage.to_json(),
            "startup": self._startup(),
            "cells": cells(),
        }
        write_json(home / "recording.json", about, indent=1 if state["ended"] else None)
        steps = {
            "columns": ["step", "window", "start_ns", "dur_ns", "cpu_ns"],
            "rows": list(self.steps),
            "moved": list(self.moved),
        }
        write_json(home / "steps.json", steps, indent=None)

    def _startup(self) -> dict[str, int]:
        """Return when the program began, had torch, and made its first step, whose begin some loops do not show."""
        number, _, begun_ns, dur_ns, _ = self.steps[0] if self.steps else (0, "", 0, 0, None)
        if "step_ended_ns" in self.startup:
            return self.startup
        if number == 1:
            self.startup |= {"step_ns": begun_ns, "step_ended_ns": begun_ns + dur_ns}
        elif number == FIRST_TIMED:
            self.startup["step_ended_ns"] = begun_ns
        return self.startup
