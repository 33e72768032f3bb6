"""StackSampler: where Python is, a hundred times a second, from a thread beside the one it watches."""

import _thread
import sys
import sysconfig
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

from uncork.capture.files import write_json

PERIOD_S = 0.01
"""Time between samples: 100 Hz cost nothing measurable (capture study, section 6)."""
MOMENT_S = 0.005
"""Time between samples that are kept with their time: in a window that records stacks, which costs far more."""
MOST_MOMENTS = 20_000
WRITE_FIRST, WRITE_EVERY = 20, 200
"""Samples of a worker before its first write, and at most between two later ones: it may be killed at any time, and a
persistent one is, at the end of a script."""
DEEPEST = 200
OUR_FOLDER = str(Path(__file__).parent)
_STDLIB = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_INSTALLED = ("site-packages", "dist-packages")


class StackSampler:
    """Counts the innermost frames of the user's own code on one thread, or keeps when each was seen."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, int, str]] = Counter()
        self.moments: list[tuple[int, tuple[str, int, str]]] = []
        self.active = True
        self._keeps_moments = False
        self._turn = 0  # no event: a handler that raises, or ends the program, inside of one would leave its lock taken
        self._running = 0
        self._watched: int | None = None
        self._path: Path | None = None

    def run(self, on: bool, *, moments: bool = False) -> None:
        """Sample from now on, or pause; the thread that calls is the one that is watched.

        Args:
            on: Whether to sample.
            moments: Keep each sample with its time instead of counting it.
        """
        self._keeps_moments = moments
        if not on:
            self.stop()
        elif not self._running or self._watched != threading.get_ident():
            self._turn += 1
            self._running = self._turn
            self._watched = threading.get_ident()
            _thread.start_new_thread(self._loop, (self._turn,))

    def stop(self) -> None:
        """End the thread."""
        self._running = 0

    def write_often_to(self, path: Path) -> None:
        """Write the counts to a file soon, and then every few seconds, for a process that may be killed."""
        self._path = path

    def write(self, path: Path, where: str) -> None:
        """Write the counts, most frequent first, and the moments beside them."""
        moments = list(self.moments)  # the thread may go on to take them
        if moments:
            number = {site: place for place, site in enumerate(dict.fromkeys(site for _, site in moments))}
            rows_of = [(time_ns, number[site]) for time_ns, site in moments]
            write_json(path.with_name("moments.json"), {"sites": list(number), "rows": rows_of})
        if not self.counts:
            return
        rows = [
            {"where": where, "file": file, "line": line, "function": function, "count": count}
            for (file, line, function), count in self.counts.most_common(500)
        ]
        write_json(path, rows)

    def _loop(self, turn: int) -> None:
        """Sample until told to stop; never raises, whatever the interpreter is doing."""
        taken, due = 0, WRITE_FIRST
        try:
            while self._running == turn:
                time.sleep(MOMENT_S if self._keeps_moments else PERIOD_S)
                if self._running == turn and self.active:
                    self._take()
                    taken += 1
                    if self._path is not None and taken >= due:
                        due += min(taken, WRITE_EVERY)
                        self.write(self._path, "worker")
        except Exception:
            self._running = 0

    def _take(self) -> None:
        frame = sys._current_frames().get(self._watched or 0)
        found = innermost(frame)
        if found is None:
            return
        if not self._keeps_moments:
            self.counts[found] += 1
        elif len(self.moments) < MOST_MOMENTS:
            self.moments.append((time.time_ns(), found))


def innermost(frame: FrameType | None) -> tuple[str, int, str] | None:
    """Return the innermost frame of the user's own code, else of an installed library that is not torch's."""
    library = None
    for _ in range(DEEPEST):
        if frame is None:
            break
        file = frame.f_code.co_filename
        if file.startswith(OUR_FOLDER):
            if frame.f_code.co_name == "worker_loop":
                break  # below lies the stack of the process that was forked
        elif file.startswith("<"):
            pass
        elif any(folder in file for folder in _INSTALLED):
            if library is None and "/torch/" not in file and "/numpy/" not in file:
                library = frame
        elif not file.startswith(_STDLIB):
            return file, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back
    if library is None:
        return None
    return library.f_code.co_filename, library.f_lineno, library.f_code.co_name
