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
    if recorder is not None and recorder.is_ours():
        recorder.guard(lambda: recorder.take(recorder.finder.mark()))


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

    Under ``uncork run`` there is a recording already: it goes on, and `folder` is its.

    Args:
        folder: The run folder; a new one under ``uncork-runs`` by default. The ranks of a launcher share one.
        options: What to record.

    Attributes:
        is_own: No ``uncork run`` records this process already.
        leads: This process is the first rank.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, options: CaptureOptions | None = None) -> None:
        self.folder = Path(folder) if folder is not None else _new_folder()
        self.is_own = self.leads = True
        self._options = options or CaptureOptions()
        self._about: dict[str, Any] = {}

    def __enter__(self) -> Self:
        """Begin to record the steps that follow."""
        outside = inside.recorded_from_outside()
        self.is_own = outside is None
        if outside is not None:
            self.folder = Path(outside)
            return self
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder = self.folder.resolve()
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
        return self

    def __exit__(self, *_: object) -> None:
        """End the recording and complete the run folder."""
        from uncork.capture.packing import pack

        if not self.is_own:
            return
        inside.end_here()
        rank, world = _rank()
        self.leads = rank == 0
        if self.leads and world > 1:
            wait_for_ranks(self.folder, world)
        pack(self.folder, [rank] if world > 1 else None)
        if self.leads:
            write_json(self.folder / "recording.json", {**self._about, "ended_ns": time.time_ns()})


def _rank() -> tuple[int, int]:
    torch = sys.modules.get("torch")
    return settings.rank(torch) if inside.recorder is None else inside.recorder.journal.place(torch)


def _new_folder() -> Path:
    """Return a folder name that is not taken, except by other ranks of a launcher's job."""
    job = this_job()
    base = Path("uncork-runs") / f"record-{job.name or time.strftime('%Y%m%d-%H%M%S')}"
    return not_taken(base, f"rank{job.rank}" if job.launched else "")


def record(folder: str | os.PathLike[str] | None = None, **options: Any) -> Session:
    """Return a recording to be used in a ``with`` statement; options as in `CaptureOptions`.

    Args:
        folder: Where to keep it; a new folder under ``uncork-runs`` by default.
        **options: Fields of `CaptureOptions`.
    """
    return Session(folder, replace(CaptureOptions(), **options))
