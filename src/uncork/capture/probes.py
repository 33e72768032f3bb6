"""The ways to observe a stretch of steps: nothing at all, torch's profiler, cProfile; each start a new object.

Only torch's lower profiler class is used: ``torch.profiler.profile`` imports the whole compiler stack on its first
start (a second of CPU time), and its ``stop`` builds Python events nobody reads.
"""

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from uncork.capture.apart import is_capturing
from uncork.capture.left_open import LeftOpen
from uncork.capture.lost_names import LostNames
from uncork.capture.standard import standard
from uncork.capture.versions import (
    HeldBack,
    Quiet,
    let_collectives_end,
    quiet_kineto,
    quiet_warnings,
    why_no_stacks,
    without_python_events,
)

BYTES_PER_EVENT_LIGHT, BYTES_PER_EVENT_DEEP = 290, 615
"""Size of one operator in the exported JSON, measured (capture study, section 6)."""
ENDING_BYTES = 64


class Unavailable(Exception):  # noqa: N818  # not an error: the window is left out and the report says why
    """The window cannot be recorded now.

    Args:
        note: Id of the reason, a key ``note.<id>`` of the catalogue.
    """

    def __init__(self, note: str) -> None:
        super().__init__(note)
        self.note = note


class Probe:
    """No observation: the baseline."""

    marks = False
    goes_without = ""
    """Id of the note about what could not be asked for, known once it was started."""

    def start(self) -> None:
        """Begin to observe, on the thread whose steps are observed."""

    def stop(self, path: Path) -> dict[str, int]:
        """End the observation, write what was seen, and return figures about it."""
        del path
        return {}

    def discard(self) -> None:
        """End the observation and write nothing."""


class BaselineProbe(Probe):
    """No observation, but what the system counts of the whole process anyway, read at either end."""

    def start(self) -> None:
        """Note where the counts stand."""
        self._before = _counts()

    def stop(self, path: Path) -> dict[str, int]:
        """Return how far the counts have gone; nothing where they could not be read before."""
        del path
        return {name: value - self._before[name] for name, value in _counts().items() if name in self._before}


class TraceProbe(Probe):
    """torch's profiler: operators, module regions and steps; with `deep` also stacks, shapes and memory.

    Args:
        torch: The program's torch.
        regions: Called with True and False where the module regions begin and end.
        stacks: Record Python frames.
        shapes: Record the shapes of inputs.
        memory: Record allocations.
    """

    marks = True
    was_used = False
    """This process, or one that it was forked from, has recorded a trace."""
    left_open = LeftOpen()
    lost_names = LostNames()

    def __init__(
        self,
        torch: Any,
        regions: Callable[[bool], None],
        *,
        stacks: bool = False,
        shapes: bool = False,
        memory: bool = False,
    ) -> None:
        self._torch, self._regions = torch, regions
        self._asked = {"with_stack": stacks, "record_shapes": shapes, "profile_memory": memory}
        self._profile: Any = None
        self._quiet: list[Quiet] = []
        self._running = False
        self._tracer: Any = None

    def start(self) -> None:
        """Begin to record on this thread."""
        from torch.autograd import profiler

        if profiler._is_profiler_enabled:
            raise Unavailable("user-profiler")
        is_free = sys.getprofile() is None and names_are_text(sys._getframe())
        if self._asked["with_stack"]:
            self.goes_without = why_no_stacks(self._torch)
            self._asked["with_stack"] = is_free and not self.goes_without
        self._profile = profiler.profile(use_device=_device(self._torch), use_kineto=True, **self._asked)
        config = without_python_events(self._torch, stacks=self._asked["with_stack"])
        # Set here, since the constructor refuses it beside stacks, for the sake of its events.
        if config is not None and not self.lost_names.are_expected(sys._getframe()):
            self._profile.experimental_config = config
        if self._asked["profile_memory"] or calls_others():
            self._quiet.append(quiet_warnings(self._torch))
        held_back = None if TraceProbe.was_used else HeldBack()
        TraceProbe.was_used = True
        try:
            self._profile._prepare_trace()
        finally:
            if held_back is not None:
                held_back.end()
        self._quiet.append(quiet_kineto(self._torch))
        self._running = True
        self._profile._start_trace()
        self._tracer = sys.getprofile()
        for key in ("with_stack", "record_shapes", "profile_memory"):
            if self._asked[key]:
                self._torch.autograd._add_metadata_json(key, "1")
        distributed = _distributed_info(self._torch)
        if distributed:
            self._torch.autograd._add_metadata_json("distributedInfo", distributed)
        self._regions(True)

    def stop(self, path: Path) -> dict[str, int]:
        """Stop on the same thread and write the trace as plain JSON (the supervisor packs it)."""
        part = path.with_name(f".{path.name}")
        try:
            size = self._write(part, path.with_name(f"{path.name.split('.')[0]}.names.json"))
        except BaseException:  # a Ctrl-C, say: what was open at the end is in no file then
            self.left_open.add_all(self._torch)
            raise
        part.replace(path)
        deep = any(self._asked.values())
        return {"trace_bytes": size, "events": size // (BYTES_PER_EVENT_DEEP if deep else BYTES_PER_EVENT_LIGHT)}

    def _write(self, trace: Path, names: Path) -> int:
        """Stop and write a trace, and the names that it has lost; return its size in bytes."""
        try:
            results = self._disable()
            results.save(os.fsencode(trace))  # a bare C locale has no text for every path
        finally:
            self._speak()
        size = whole_size(trace)
        self.lost_names.write(results, trace, names)
        self.left_open.add(trace, self._torch)
        return size

    def discard(self) -> None:
        """Stop and write nothing; harmless if it is stopped already."""
        try:
            if self._running:
                self._disable()
                self.left_open.add_all(self._torch)
        finally:
            self._speak()

    @classmethod
    def let_forked_end(cls) -> None:
        """Let a forked child end: Kineto, once used, waits at exit for its own thread, which only the parent has.

        C calls first at exit what was registered last: the child writes what C has buffered, and is gone before Kineto
        can wait. Only glibc has ``on_exit``; torch's builds for Linux need it.
        """
        libc = ctypes.CDLL(None)
        if cls.was_used and hasattr(libc, "on_exit"):
            libc.on_exit(libc._exit, None)
            libc.__cxa_atexit(libc.fflush, None, None)

    def _speak(self) -> None:
        """Let torch's libraries say what they would without us."""
        while self._quiet:
            self._quiet.pop().end()

    def _disable(self) -> Any:
        """Return the raw results; builds no Python events."""
        from torch.autograd import _disable_profiler, profiler

        self._regions(False)
        # Torch warns of regions that are still open, as they are where a window ends inside a step.
        self._quiet.append(quiet_warnings(self._torch))
        theirs = sys.getprofile()
        try:
            self._wait()
        finally:  # also where the device has failed, or a Ctrl-C fell into the wait
            self._running = False
            try:
                results = _disable_profiler()
            finally:
                if theirs is not self._tracer:
                    give_back(theirs)
                profiler._run_on_profiler_stop()
        return results

    def _wait(self) -> None:
        """Wait for what the trace is to hold still, and for what would write into it after its end."""
        device = _device(self._torch)
        if device is not None and not is_capturing(self._torch):  # the program's graph, which a wait would spoil
            getattr(self._torch, device).synchronize()
        let_collectives_end(self._torch)


class FunctionsProbe(Probe):
    """cProfile on the training thread: calls and times of every Python function.

    A profiler of the program's own that begins meanwhile takes its place: what was counted until then is thrown away.
    """

    def __init__(self) -> None:
        self._profile: Any = None
        self._claim: Any = None

    def start(self) -> None:
        """Begin to count; steps aside where the program has a profiler or a debugger of its own."""
        if sys.getprofile() is not None or sys.gettrace() is not None:
            raise Unavailable("user-cprofile")
        try:
            cProfile = standard("cProfile", "profile", "optparse")  # noqa: N806  # the module's own name
        except ImportError as hidden:
            raise Unavailable("profile-hidden") from hidden
        if sys.version_info >= (3, 12):
            self._claim = sys.monitoring.use_tool_id
        self._profile = cProfile.Profile()
        try:
            self._profile.enable()
        except ValueError as taken:  # Python 3.12+: another tool holds the profiler's slot
            raise Unavailable("user-cprofile") from taken
        self._free_when_claimed()

    def stop(self, path: Path) -> dict[str, int]:
        """Stop and write a pstats file; none if the program's profiler took over."""
        profile = self._profile
        if not self._end():
            path.unlink(missing_ok=True)  # an earlier window's, whose steps no longer count
            return {}
        profile.create_stats()
        part = path.with_name(f".{path.name}")
        profile.dump_stats(str(part))
        part.replace(path)
        return {"functions": len(profile.stats), "calls": sum(row[1] for row in profile.stats.values())}

    def discard(self) -> None:
        """Stop and write nothing; harmless if it is stopped already."""
        self._end()

    def _end(self) -> bool:
        """Return whether ours counted to the end; a profiler that took its place stays on."""
        profile = self._profile
        if profile is None:
            return False
        if sys.version_info >= (3, 12):
            sys.monitoring.use_tool_id = self._claim
            profile.disable()
            self._profile = None
            return True
        theirs = sys.getprofile()
        profile.disable()
        self._profile = None  # not before: a Ctrl-C may fall in between
        if theirs is profile:
            return True
        give_back(theirs)
        return False

    def _free_when_claimed(self) -> None:
        """Leave the one slot that Python 3.12+ has for profilers to whoever asks: a second one would be an error."""
        if sys.version_info < (3, 12):
            return
        monitoring, claim = sys.monitoring, self._claim

        def use_tool_id(tool_id: int, name: str) -> None:
            if tool_id == monitoring.PROFILER_ID:
                self._end()
            claim(tool_id, name)

        monitoring.use_tool_id = use_tool_id


def calls_others() -> bool:
    """Return whether the program calls functions of other processes: torch warns, once, that it profiles no callee."""
    is_set = getattr(sys.modules.get("torch.distributed.rpc.api"), "_is_current_rpc_agent_set", None)
    return is_set is not None and bool(is_set())


def names_are_text(frame: FrameType | None) -> bool:
    """Return whether each file on a stack has a name in UTF-8: at another one torch's tracer fails half begun."""
    while frame is not None:
        try:
            frame.f_code.co_filename.encode()
        except UnicodeEncodeError:
            return False
        frame = frame.f_back
    return True


def give_back(theirs: Any) -> None:
    """Let a profiler of the program's own go on that ours, when it ended, has turned off."""
    if hasattr(theirs, "enable"):  # cProfile
        theirs.enable()
    elif theirs is not None:
        sys.setprofile(theirs)


def _counts() -> dict[str, int]:
    """Return pages that had to be given to this process, its CPU time and its memory; nothing where none is counted."""
    try:
        resource = standard("resource")
        used = resource.getrusage(resource.RUSAGE_SELF)
        with open("/proc/self/statm", "rb") as file:
            resident_pages = int(file.read().split()[1])
    except (ImportError, OSError):
        return {}
    system_ns = int(used.ru_stime * 1e9)
    return {
        "faults": used.ru_minflt,
        "system_ns": system_ns,
        "cpu_ns": int(used.ru_utime * 1e9) + system_ns,
        "growth_pages": resident_pages,
    }


def whole_size(path: Path) -> int:
    """Return the size of a JSON file; torch does not say that it could not write it to its end."""
    part = path.with_name(f"{path.name}.tmp")  # what newer ones write first, and leave where the disk is full
    if path.exists():
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - ENDING_BYTES, 0))
            if file.read().rstrip().endswith(b"}"):
                return size
    if path.parent.is_dir():
        path.unlink(missing_ok=True)
        part.unlink(missing_ok=True)
    raise OSError(errno.ENOSPC, "a trace could not be written to its end", str(path))


def _device(torch: Any) -> str | None:
    """Return the kind of accelerator that the profiler can watch and the program has started, or None."""
    for kind in ("cuda", "xpu"):
        module = getattr(torch, kind, None)
        # Asking first whether it is initialised keeps us from being the one who touches the driver before a fork.
        if module is not None and module.is_initialized() and module.is_available():
            return kind
    return None


def _distributed_info(torch: Any) -> str:
    """Return rank and world size as the profiler would write them, or nothing for a single process."""
    import json

    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return ""
    found = {
        "backend": str(distributed.get_backend()),
        "rank": distributed.get_rank(),
        "world_size": distributed.get_world_size(),
    }
    return json.dumps(found)
