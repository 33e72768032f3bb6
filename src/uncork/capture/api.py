"""What a program may call itself: `step`, `region`, and `record` for notebooks; none of them needs ``uncork run``."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from typing_extensions import Self

from uncork import __version__
from uncork.capture import inside, settings
from uncork.capture.files import not_taken, write_json
from uncork.capture.job import this_job, wait_for_ranks
from uncork.capture.options import CaptureOptions, Orders, package_folder


def step() -> None:
    """Mark the end of a step, where the loop has a shape of its own; without a recorder it does nothing."""
    recorder = inside.recorder
    if recorder is not None:
        recorder.guard(lambda: recorder.take(recorder.finder.mark()) if recorder.threads.hears("marks") else None)


@contextlib.contextmanager
def region(name: str) -> Iterator[None]:
    """Name a part of the program: the name appears in traces, ours and those of torch's own profiler.

    Args:
        name: The name.
    """
    if "torch" not in sys.modules:
        yield
        return
    from torch.autograd.profiler import record_function

    with record_function(name):
        yield


S = TypeVar("S", bound="Session")


class Session:
    """A recording made inside this process, as ``with uncork.record() as run:``.

    Under ``uncork run``, and inside another ``with uncork.record()``, there is a recording already: it goes on, and
    `folder` is its.

    Args:
        folder: The run folder; a new one under ``uncork-runs`` by default. Ranks share one, if they joined their group
            before or a launcher started them; other processes need to be given one to share.
        options: What to record.

    Attributes:
        is_own: Nothing recorded this process already.
        leads: This process is the first rank.
    """

    _running: "tuple[int, Path] | None" = None
    """The process that a recording of its own runs in, and the folder."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, options: CaptureOptions | None = None) -> None:
        own, self._is_shared = _new_folder() if folder is None else (folder, True)
        self.folder = Path(own)
        self.is_own = self.leads = True
        self._options = options or CaptureOptions()
        self._about: dict[str, Any] = {}

    def __enter__(self) -> Self:
        """Begin to record the steps that follow."""
        running = Session._running
        around = running[1] if running and running[0] == os.getpid() else inside.recorded_from_outside()
        self.is_own = around is None
        if around is not None:
            self.folder = Path(around)
            return self
        from uncork.capture.launch import refuse_unwritable

        self.folder = self.folder.resolve()
        refuse_unwritable(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._about = {
            "format": 1,
            "uncork": __version__,
            "command": [part for part in sys.argv if part],
            "started_ns": time.time_ns(),
            "exit_code": None,
            "host": settings.host(),
        }
        if _rank()[0] == 0:
            write_json(self.folder / "recording.json", self._about)
        inside.begin_here(Orders(str(self.folder), str(package_folder()), self._options))
        Session._running = (os.getpid(), self.folder)
        return self

    def __exit__(self, *_: object) -> None:
        """End the recording and complete the run folder."""
        from uncork.capture.packing import pack

        if not self.is_own:
            return
        Session._running = None
        inside.end_here()
        rank, world = _rank()
        self.leads = rank == 0
        if self.leads and world > 1 and self._is_shared:
            wait_for_ranks(self.folder, world)
        pack(self.folder, [rank] if world > 1 else None)
        if self.leads:
            write_json(self.folder / "recording.json", {**self._about, "ended_ns": time.time_ns()})


def _rank() -> tuple[int, int]:
    torch = sys.modules.get("torch")
    return settings.rank(torch) if inside.recorder is None else inside.recorder.journal.place(torch)


def _new_folder() -> tuple[Path, bool]:
    """Return a folder name that is not taken, except by other ranks of the job, and whether they share it."""
    job, (rank, world) = this_job(), _rank()
    # Ranks that a program started itself have their parent in common, as those of a launcher have.
    name = job.name or (str(os.getppid()) if world > 1 else "")
    base = Path("uncork-runs") / f"record-{name or time.strftime('%Y%m%d-%H%M%S')}"
    return not_taken(base, f"rank{rank}" if name else ""), bool(name)


def record(folder: str | os.PathLike[str] | None = None, **options: Any) -> Session:
    """Return a recording to be used in a ``with`` statement; options as in `CaptureOptions`.

    Args:
        folder: Where to keep it; a new folder under ``uncork-runs`` by default.
        **options: Fields of `CaptureOptions`.
    """
    return Session(folder, replace(CaptureOptions(), **options))
