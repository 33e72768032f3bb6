"""MemoryHistory: keeps the allocator's history on CUDA devices, and writes a snapshot when memory runs out."""

import contextlib
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SNAPSHOT = "snapshot.pickle"
"""`uncork.recording.RunFolder.SNAPSHOT`: here nothing is imported that lies outside `capture`."""
MOST_ENTRIES = 50_000
"""Torch keeps the last ones: some steps of a large model. A snapshot of 27,000 has 4 MB (measured on a real one)."""
MOST_SNAPSHOTS = 3
"""A program that tries smaller and smaller batches fails often: the last of the first few is kept."""

HOST_FAILED = "DefaultCPUAllocator: "
"""How torch names its allocator for the host when that got no memory (``c10/core/impl/alloc_cpu.cpp``)."""


class MemoryHistory:
    """The history of one process.

    Args:
        guard: Does something of ours so that no fault of it can reach the program.
    """

    def __init__(self, guard: Callable[[Callable[[], object]], None]) -> None:
        self.begun = False
        self.written = 0
        self._guard = guard

    @staticmethod
    def host_failed() -> bool:
        """Return whether the program ends because the host had no memory: Python keeps what nobody caught."""
        error = getattr(sys, "last_exc", getattr(sys, "last_value", None))
        return isinstance(error, MemoryError) or (type(error) is RuntimeError and HOST_FAILED in str(error))

    def begin(self, torch: Any, home: Callable[[], Path]) -> None:
        """Switch the history on once the program uses CUDA; before that it would make a context of its own.

        Stacks hold Python frames only: torch's C++ unwinder has ended programs (pytorch/torchtitan#2991). A history
        that the program keeps itself stays as it is. The observer is called before the exception is thrown, when the
        allocator has given back what was idle and has let go of its lock (``CUDACachingAllocator::malloc``).
        """
        if self.begun or torch is None or not torch.cuda.is_initialized():
            return
        self.begun = True
        observe = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        if observe is None:
            return
        if not _keeps_history(torch):
            torch.cuda.memory._record_memory_history(stacks="python", max_entries=MOST_ENTRIES)

        def ran_out(*_: object) -> None:
            self._guard(lambda: self._write(torch, home()))

        observe(ran_out)

    def _write(self, torch: Any, home: Path) -> None:
        """Write the snapshot beside its name first: the program may be ended at any moment."""
        if self.written >= MOST_SNAPSHOTS:
            return
        self.written += 1
        target = home / SNAPSHOT
        partial = target.with_suffix(".part")
        try:
            with partial.open("wb") as file:
                pickle.dump(torch.cuda.memory._snapshot(), file, protocol=4)
            partial.replace(target)
        finally:
            with contextlib.suppress(OSError):
                partial.unlink()


def _keeps_history(torch: Any) -> bool:
    """Return whether the program switched the history on before us."""
    asked = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    return bool(asked and asked())
