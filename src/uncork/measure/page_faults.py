"""PageFaults: memory that each step asks the system for anew, though the process does not grow."""

import shlex

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.machine import Machine
from uncork.recording import Window
from uncork.records import dataclass

PAGE_BYTES = 4096
"""What one fault gives at least; larger pages make fewer faults, so their memory is underestimated."""
FAULT_NS_MOST = 4_000
"""What is put down to one fault at most: twice the 2.0 us that fresh pages took one by one on a virtual machine (Linux
6.18, 2026); the rest of the system's time goes to other calls."""
CPU_NS_LEAST = 50_000_000
"""Many kernels tell the system's share by looking 250 times a second: below a dozen looks it says nothing."""
SETTLED_SHARE = 0.5
"""Faults that fall below this part of what they were: the allocator keeps what it gave back before, since memory that
profilers freed lies in its heap below blocks that live on (glibc gives back its end alone)."""


@dataclass(frozen=True)
class PageFaults(Measurement):
    """Page faults of a process in its first steps after the warm-up that no profiler watched.

    Args:
        faults: Per step, without those by which the process grew.
        system_share: CPU time of the system in them, of all CPU time; what a later window still has is left out
            where the faults fell by then.
        later_faults: Per step in the last window without a profiler, after those with one; None without such.
        plain: glibc allocates, and nothing was set that says what it keeps.
        workers: Workers of the DataLoader, whose batches fault where memory is shared.
        command: The program as it was started, for a shell.
    """

    faults: float
    system_share: float
    later_faults: float | None
    plain: bool
    workers: int
    command: str

    @classmethod
    def of(cls, rank: Rank) -> "PageFaults":
        """Return the faults of a rank that computes on the CPU; only `uncork run` on Linux counts them."""
        if rank.made(Machine).device != "cpu":
            raise MissingEvidence("cpu_work")
        run = rank.recording.run
        first = run.first_baseline if run else None
        if run is None or first is None or first.paging is None or not first.step_ns:
            raise MissingEvidence("page_faults")
        if first.paging.cpu_ns < CPU_NS_LEAST:
            raise MissingEvidence("page_faults_long")
        later = next((one for one in reversed(run.windows) if one.name == "baseline2" and one.paging), None)
        before = _faults(first)
        after = _faults(later) if later else None
        share = _system_share(first)
        if later is not None and after is not None and after < SETTLED_SHARE * before:
            share = max(share - _system_share(later), 0.0)
        workers = run.settings.get("num_workers")
        return cls(
            faults=before,
            system_share=share,
            later_faults=after,
            plain=str(run.settings.get("libc", "")).startswith("glibc") and run.settings.get("malloc") == [],
            workers=workers if isinstance(workers, int) else 0,
            command=_spelt(run.command),
        )

    @property
    def given_back_bytes(self) -> int:
        """Return the memory that each step gives back and asks for anew, at least."""
        return round(self.faults) * PAGE_BYTES

    @property
    def settled(self) -> bool:
        """Return whether the faults went once the allocator had seen larger blocks: then they were its own."""
        return self.later_faults is not None and self.later_faults < SETTLED_SHARE * self.faults


def _faults(window: Window) -> float:
    """Return the faults of each step that brought no growth."""
    if window.paging is None or not window.step_ns:
        return 0.0
    grown = max(window.paging.growth_pages, 0)
    return max(window.paging.faults - grown, 0) / len(window.step_ns)


def _system_share(window: Window) -> float:
    """Return the system's share of the CPU time, no more than the faults can have taken."""
    paging = window.paging
    if paging is None or not paging.cpu_ns:
        return 0.0
    of_faults_ns = _faults(window) * len(window.step_ns) * FAULT_NS_MOST
    return min(paging.system_ns, of_faults_ns, paging.cpu_ns) / paging.cpu_ns


def _spelt(command: tuple[str, ...]) -> str:
    """Return a command for a shell, with Python in front of a script; empty for none, or one that spans lines."""
    line = shlex.join(command)
    if not command or not line.isprintable():
        return ""
    return f"python {line}" if command[0] == "-m" or command[0].endswith(".py") else line
