"""Record: run the program as a child, watch it from outside, and leave a whole run folder however it ends."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from uncork import __version__
from uncork.capture import settings
from uncork.capture.arming import register
from uncork.capture.ending import note_for
from uncork.capture.files import OWNER, fault_of, lead, told, write_json
from uncork.capture.inside import ENTERED, TORCH_FOUND
from uncork.capture.job import Job, job_of, wait_for_ranks
from uncork.capture.launch import command_for, environment_for, refuse_unwritable
from uncork.capture.options import CaptureOptions
from uncork.capture.packing import pack
from uncork.capture.samples import HostSampler
from uncork.capture.signals import Relay
from uncork.errors import UsageError
from uncork.locale import default_language, say
from uncork.recording import RunFolder
from uncork.records import dataclass

GRACE_S = 10.0
"""Time a program has after each request to end, before the next, stronger one."""
ENOUGH_STEPS = 12
"""Steps of one thread that the first windows take, up to the one with stacks (`uncork.capture.plan`)."""


@dataclass(frozen=True)
class CaptureResult:
    """What became of the program.

    Args:
        folder: The run folder.
        exit_code: The program's exit code as a shell shows it (128 + n for signal n).
        signal: The signal that ended it, or None.
        problem: Id of what prevents an analysis (``not-let-in torch-not-imported torch-too-old disk-full recorder-fault
            handler-raised user-profiler threads-end too-short no-steps``), a key ``note.<id>`` of the catalogue, or
            empty.
        leads: This process reports; other ranks' processes of a launcher stay silent.
        stopped_by_us: The program was ended by a limit that the user asked for.
        where: Place and name of the fault of ours that prevents an analysis, or empty.
    """

    folder: Path
    exit_code: int
    signal: int | None = None
    problem: str = ""
    leads: bool = True
    stopped_by_us: bool = False
    where: str = ""


def record(
    argv: list[str], *, module: bool, into: Path, options: CaptureOptions, lang: str | None = None
) -> CaptureResult:
    """Run a program and record it; its standard streams, signals and exit code stay its own.

    Args:
        argv: The program and its arguments.
        module: The program is a module, as in ``python -m``.
        into: The run folder, made if need be; one that holds files is refused, since they could be anyone's.
        options: What to record.
        lang: Language of what is said meanwhile; the locale's by default.
    """
    command = command_for(argv, module=module)
    folder = into.resolve()
    language = lang or default_language()
    job = job_of(argv)
    _prepare(folder, job)
    about = _about(argv, module=module)
    if job.rank == 0 or job.leads_host:
        _begin(folder, about)
    note = _arm(folder, language) if options.arm else None
    try:
        code, pid, stopped = _watch(command, folder, options, language, samples=job.leads_host)
    finally:
        if note is not None:
            note.unlink(missing_ok=True)
    if job.rank == 0 and job.launched:
        wait_for_ranks(folder, job.world)
    with contextlib.suppress(OSError):  # a full disk costs the recording, not the program's exit code
        if not job.launched:
            lead(folder, pid)
        pack(folder, [job.rank] if job.launched else None)
    fault, where = fault_of(folder)
    problem = _problem(folder, job, fault)
    about |= {
        "ended_ns": time.time_ns(),
        "exit_code": 128 - code if code < 0 else code,
        "signal": -code if code < 0 else None,
        "stopped_by_us": stopped,
        "problem": problem,
    }
    with contextlib.suppress(OSError):
        if told(folder).get("pid") == os.getpid():  # of ranks that share a folder, the last to begin it
            write_json(folder / RunFolder.RECORDING, about)
    shown = 0 if stopped else about["exit_code"]
    ended_by = None if stopped else about["signal"]
    where = where if problem == fault else ""
    return CaptureResult(into, shown, ended_by, problem, job.rank == 0, stopped, where)


def _about(argv: list[str], *, module: bool) -> dict[str, Any]:
    """Return what is known of a run before it begins."""
    return {
        "format": 1,
        "uncork": __version__,
        "command": (["-m"] if module else []) + argv,
        "folder": str(Path.cwd()),
        "started_ns": time.time_ns(),
        "pid": os.getpid(),
        "exit_code": None,
        "host": settings.host(),
    }


def _begin(folder: Path, about: dict[str, Any]) -> None:
    """Write what is known before the program starts; where that fails, it is not started."""
    try:
        write_json(folder / RunFolder.RECORDING, about)
    except OSError as fault:
        raise UsageError("run_folder_unwritable", path=folder, reason=fault.strerror) from fault


def _arm(folder: Path, lang: str) -> Path:
    """Say how to start the recording, and note where this run lies; return the note."""
    note = register(os.getpid(), folder)
    sys.stderr.write(say(lang, "note.armed", {"pid": str(os.getpid())}) + "\n")
    sys.stderr.flush()
    return note


def end_as(result: CaptureResult) -> None:
    """End this process as the program ended, by the same signal where it was one; never returns."""
    sys.stdout.flush()
    sys.stderr.flush()
    if result.signal is not None:
        with contextlib.suppress(Exception):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(Exception):
            signal.signal(result.signal, signal.SIG_DFL)
        os.kill(os.getpid(), result.signal)
    sys.exit(result.exit_code)


def _prepare(folder: Path, job: Job) -> None:
    """Make the folder; no file of another's is touched: checkpoints may lie in a ``rank0`` too.

    A launcher starts each rank anew after a failure, in the folder they share: there a rank replaces its own.
    """
    home = folder / f"rank{job.rank}" if job.launched else folder
    refuse_unwritable(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = home.exists() and any(home.iterdir())
    except OSError as fault:
        raise UsageError("run_folder_impossible", path=folder, reason=fault.strerror) from fault
    if taken and not (home != folder and (home / OWNER).is_file()):
        raise UsageError("run_folder_taken", path=home)
    if taken:
        shutil.rmtree(home, ignore_errors=True)


def _watch(
    command: list[str], folder: Path, options: CaptureOptions, lang: str, *, samples: bool
) -> tuple[int, int, bool]:
    """Run the command to its end; return its code (negative for a signal), its id, and whether our limit ended it."""
    with Relay() as relay:
        # Open files are handed on, as a shell hands on those of `<(command)`; Python opens none of ours for children.
        try:
            child = subprocess.Popen(command, env=environment_for(folder, options), close_fds=False)  # noqa: S603  # theirs
        except OSError as fault:  # no program for this machine, or its first line names none
            raise UsageError("cannot_start", path=command[0], reason=fault.strerror) from fault
        relay.attach(child.pid)
        sampler: HostSampler | None = None
        if samples:
            with contextlib.suppress(Exception):
                sampler = HostSampler(folder / RunFolder.SAMPLES, child.pid)
        limit, notice = Limit(options.seconds, note_for(child.pid, folder)), Notice(folder, lang)
        while child.poll() is None:
            notice.look()
            relay.wait(min(sampler.wait_s() if sampler else 0.5, limit.wait_s()))
            limit.press(child)
            if sampler and not sampler.wait_s():
                sampler.take()
        if sampler:
            sampler.close()
        limit.end()
    return child.returncode, child.pid, limit.pressed > 0


class Notice:
    """Tells people at a terminal that all is recorded while a long program goes on; pipes and logs get nothing.

    Args:
        folder: The run folder.
        lang: Language.
    """

    PATIENCE_S = 10.0

    def __init__(self, folder: Path, lang: str) -> None:
        self._folder, self._lang = folder, lang
        self._due_s: float | None = None
        self._told = not sys.stderr.isatty()

    def look(self) -> None:
        """Say so once, some time after the recording was complete: short programs end before."""
        if self._told or not (self._folder / "rank0" / "complete").exists():
            return
        self._due_s = self._due_s or time.monotonic() + self.PATIENCE_S
        if time.monotonic() >= self._due_s:
            self._told = True
            sys.stderr.write("\n" + say(self._lang, "note.complete", {"folder": str(self._folder)}) + "\n")
            sys.stderr.flush()


class Limit:
    """Ends a program that runs longer than asked: as Ctrl-C would, then more firmly.

    Args:
        seconds: The limit, or None.
        note: What asks the program to end where it ignores Ctrl-C.
    """

    SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGKILL") if hasattr(signal, name))

    def __init__(self, seconds: float | None, note: Path) -> None:
        self.pressed = 0
        self._note = note
        self._at = time.monotonic() + seconds if seconds is not None else None

    def wait_s(self) -> float:
        """Return the time until the next signal is due."""
        return 60.0 if self._at is None else max(0.0, self._at - time.monotonic())

    def press(self, child: subprocess.Popen[bytes]) -> None:
        """Send the signal that is due, if one is."""
        if self._at is not None and time.monotonic() >= self._at and self.pressed < len(self.SIGNALS):
            with contextlib.suppress(OSError):
                self._note.touch()
            with contextlib.suppress(ValueError):  # Windows sends one process no Ctrl-C: there the note alone asks
                child.send_signal(self.SIGNALS[self.pressed])
            self.pressed += 1
            self._at = time.monotonic() + GRACE_S

    def end(self) -> None:
        """Take back what was asked for."""
        if self.pressed:
            with contextlib.suppress(OSError):
                self._note.unlink(missing_ok=True)


def _problem(folder: Path, job: Job, fault: str) -> str:
    """Return the id of what prevents an analysis, or nothing; a fault of ours that came first is one."""
    try:
        found = json.loads((folder / TORCH_FOUND).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return fault or ("torch-not-imported" if (folder / ENTERED).exists() else "not-let-in")
    if not found.get("usable"):
        return "torch-too-old"
    # A launcher that runs below us may have started no rank 0 on this host.
    homes = [folder / f"rank{job.rank}"] if job.launched else RunFolder(folder).ranks()
    names = (RunFolder.LIGHT, RunFolder.DEEP, RunFolder.FUNCTIONS)
    if any((home / name).is_file() for home in homes for name in names):
        return ""
    if fault:
        return fault
    each = [told(home) for home in homes]
    if any(one.get("user_profiler") for one in each):
        return "user-profiler"
    beside = max((max(one.get("threads", {}).values(), default=0) for one in each), default=0)
    seen = "too-short" if any(one.get("steps_seen") for one in each) else "no-steps"
    return "threads-end" if beside >= ENOUGH_STEPS else seen
