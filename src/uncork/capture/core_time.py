"""CoreTime: who had the machine's cores during a window, as the system counts it; read at either end only."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from uncork.capture.standard import standard

COUNTED = ("baseline", "light", "baseline2")
"""Windows of whose steps durations are told."""
OWN_QUEUE = "/proc/thread-self/schedstat"
OWN_GROUP = "/proc/self/cgroup"
GROUPS = Path("/sys/fs/cgroup")


class CoreTime:
    """What this thread, this process, its children and the whole machine had of the cores since it was made."""

    def __init__(self) -> None:
        self._before = counts()

    def facts(self) -> dict[str, int]:
        """Return how far each count has gone; on another thread, or where one could not be read, without it."""
        now = counts()
        here = now.get("thread") == self._before.get("thread")
        names = now.keys() & self._before.keys() - {"thread"} - (set() if here else {"thread_ns", "queued_ns"})
        return {name: now[name] - self._before[name] for name in sorted(names)}


def counts() -> dict[str, int]:
    """Return where the counts stand; what this system does not count is left out."""
    readers: tuple[Callable[[], dict[str, int]], ...] = (_clocks, _queued, _children, _machine, _throttled)
    found: dict[str, int] = {}
    for read in readers:
        try:
            found |= read()
        except (OSError, ValueError, IndexError, ImportError, AttributeError):
            continue
    return found


def _clocks() -> dict[str, int]:
    """Return the wall clock, and the CPU time of this thread and of the process with all its threads."""
    return {
        "span_ns": time.perf_counter_ns(),
        "thread": standard("_thread").get_ident(),
        "thread_ns": time.thread_time_ns(),
        "process_ns": time.process_time_ns(),
    }


def queued_ns() -> int | None:
    """Return how long this thread was ready to run and no core was free for it; None where nothing counts it."""
    try:
        with open(OWN_QUEUE, "rb") as file:
            _, queued, turns = map(int, file.read().split())
    except (OSError, ValueError):
        return None
    return queued if turns else None  # all three are 0 where the kernel does not count them (sched-stats.rst)


def _queued() -> dict[str, int]:
    queued = queued_ns()
    return {} if queued is None else {"queued_ns": queued}


def _children() -> dict[str, int]:
    """Return the CPU time of this process's children, the workers among them: of those that live, and that ended."""
    used = standard("resource").getrusage(standard("resource").RUSAGE_CHILDREN)
    ended_ns = int((used.ru_utime + used.ru_stime) * 1e9)
    return {"children_ns": ended_ns + sum(map(_lived_ns, _living()))}


def _living() -> Iterator[int]:
    """Yield the ids of children that multiprocessing has started; asking it by its own call would end some."""
    module = sys.modules.get("multiprocessing.process")
    for child in tuple(getattr(module, "_children", ())):
        if isinstance(pid := getattr(child, "pid", None), int):
            yield pid


def _lived_ns(pid: int) -> int:
    """Return the CPU time of a process and of what it has waited for; 0 for one that has just ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # the name before may hold anything
    except OSError:
        return 0
    return sum(map(int, fields[11:15])) * (1_000_000_000 // os.sysconf("SC_CLK_TCK"))


def _machine() -> dict[str, int]:
    """Return the time that all cores of the machine worked, for whomever."""
    with open("/proc/stat", "rb") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return {"machine_ns": (user + nice + system + irq + softirq + steal) * tick_ns}


def _throttled() -> dict[str, int]:
    """Return how long the process's control group was stopped for having used up its quota, over all cores."""
    for place, name, unit_ns in _groups():
        try:
            with (place / "cpu.stat").open(encoding="ascii") as file:
                told = dict(line.split() for line in file)
        except OSError:
            continue
        if name in told:
            return {"throttled_ns": int(told[name]) * unit_ns}
    return {}


def _groups() -> Iterator[tuple[Path, str, int]]:
    """Yield where the group's counts may lie: its own folder, else (in a container) the one that is all it sees."""
    with open(OWN_GROUP, encoding="utf-8", errors="replace") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    for _, kinds, path in lines:
        inside = path.lstrip("/")
        if not kinds:
            yield from ((GROUPS / inside, "throttled_usec", 1000), (GROUPS, "throttled_usec", 1000))
        elif "cpu" in kinds.split(","):
            for folder in (kinds, "cpu"):
                yield from ((GROUPS / folder / inside, "throttled_time", 1), (GROUPS / folder, "throttled_time", 1))
