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

from uncork.capture import inside
from uncork.capture.files import write_json
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

    Args:
        folder: The run folder; a new one under ``uncork-runs`` by default.
        options: What to record.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, options: CaptureOptions | None = None) -> None:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        self.folder = Path(folder) if folder is not None else Path("uncork-runs") / f"record-{stamp}"
        self._options = options or CaptureOptions()
        self._begun_ns = 0

    def __enter__(self) -> Self:
        """Begin to record the steps that follow."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder = self.folder.resolve()
        self._begun_ns = time.time_ns()
        inside.begin_here(Orders(str(self.folder), str(package_folder()), self._options))
        return self

    def __exit__(self, *_: object) -> None:
        """End the recording and complete the run folder."""
        from uncork.capture.packing import pack
        from uncork.capture.settings import host

        inside.end_here()
        pack(self.folder)
        write_json(
            self.folder / "recording.json",
            {
                "format": 1,
                "command": [part for part in sys.argv if part],
                "started_ns": self._begun_ns,
                "ended_ns": time.time_ns(),
                "exit_code": None,
                "host": host(),
            },
        )


def record(folder: str | os.PathLike[str] | None = None, **options: Any) -> Session:
    """Return a recording to be used in a ``with`` statement; options as in `CaptureOptions`.

    Args:
        folder: Where to keep it; a new folder under ``uncork-runs`` by default.
        **options: Fields of `CaptureOptions`.
    """
    return Session(folder, replace(CaptureOptions(), **options))
