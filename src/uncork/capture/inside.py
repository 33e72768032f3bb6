"""Begin: what happens in each Python process of the program before its first line runs."""

import atexit
import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Iterator
from types import CodeType
from typing import Any

from uncork.capture.ending import obey
from uncork.capture.imports import AfterImport
from uncork.capture.options import ENVIRONMENT, Orders

OUR_FILES = os.path.dirname(os.path.abspath(__file__)) + os.sep
BORDERS = ("guard", "_torch_is_there", "_finish", "_name")
"""Functions of ours below which what fails is a fault of ours."""
STANDARD = (os.path.dirname(os.__file__) + os.sep, "<frozen ")
"""How the files of Python's own modules begin; what is installed may lie below them."""
ENTERED = "entered"
"""Empty file of the run folder: a Python process of the program has let the recorder in."""
TORCH_FOUND = "torch.json"
"""File of the run folder that says which torch the program imported."""

OURS = sys.modules["uncork"]
"""Our package: later its name may be a module of the program's own."""

recorder: Any = None
"""This process's `uncork.capture.recorder.Recorder`, once the program has imported torch."""
_finished = False
_after: AfterImport | None = None
_here: list[bool] = []
_outside: str | None = None
_begun_ns: int | None = None


def begin() -> None:
    """Wait for the program's own import of torch; nothing else is touched before."""
    global _outside, _begun_ns  # noqa: PLW0603  # asked by recordings that the program wants to begin itself
    _begun_ns = time.time_ns()
    orders = Orders.from_environment()
    _outside = orders.folder
    with contextlib.suppress(OSError):
        os.close(os.open(os.path.join(orders.folder, ENTERED), os.O_WRONLY | os.O_CREAT, 0o644))
    if orders.options.seconds is not None:
        obey(orders.folder)
    after = AfterImport()
    after.when("torch", lambda torch: _torch_is_there(torch, orders, after))


def recorded_from_outside() -> str | None:
    """Return the run folder of the ``uncork run`` that records this process, or None."""
    return _outside


def is_kept_from_children() -> bool:
    """Return whether the program has taken away what lets the recorder into the processes it starts."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return _outside is not None and (ENVIRONMENT not in os.environ or os.path.join(OUR_FILES, "inject") not in paths)


def begin_here(orders: Orders) -> None:
    """Record in this process from now on, as a notebook does."""
    global _after  # noqa: PLW0603  # the hooks are installed once per process
    if recorder is not None:
        recorder.orders = orders
        alive = [one for one in recorder.journal.seen["optimizers"] if one() is not None]
        recorder.begin_anew()
        recorder.journal.seen["optimizers"] = alive
        recorder.finder.optimizers = len(alive)
        return
    _here.append(True)
    _after = AfterImport()
    after = _after
    after.when("torch", lambda torch: _torch_is_there(torch, orders, after))


def end_here() -> None:
    """End the recording that `begin_here` began; the hooks stay, and pass everything through."""
    if recorder is not None and _here:
        try:
            recorder.finish()
        except Exception:
            recorder.break_down()
        recorder.broken = True
        recorder.journal.garbage.end()


def silence() -> None:
    """Stop recording steps in this process: it is a worker of the loader."""
    if recorder is not None:
        recorder.broken = True


@contextlib.contextmanager
def _our_name() -> Iterator[None]:
    """Have the name ``uncork`` mean our package while parts of it are imported, so that no other is run for it."""
    theirs = sys.modules.get("uncork")
    sys.modules["uncork"] = OURS
    try:
        yield
    finally:
        if theirs is None:
            del sys.modules["uncork"]
        else:
            sys.modules["uncork"] = theirs


def _torch_is_there(torch: Any, orders: Orders, after: AfterImport) -> None:
    """Install the hooks in a torch that is new enough; any fault leaves the program as it was."""
    global recorder  # noqa: PLW0603  # one per process, looked up by the hooks of workers and by the public calls
    mine: Any = None
    try:
        with _our_name():
            from uncork.capture import hooks, loader_hooks
            from uncork.capture.files import write_json
            from uncork.capture.recorder import Recorder
            from uncork.capture.timed import TimedWindows
            from uncork.capture.versions import is_usable

        found = os.path.join(orders.folder, TORCH_FOUND)
        usable = is_usable(torch)
        if not os.path.exists(found):
            from pathlib import Path

            write_json(Path(found), {"version": str(torch.__version__), "usable": usable})
        if not usable:
            return
        mine = Recorder(orders)
        if _begun_ns is not None and "torch" in after.begun_ns:
            begun_ns = {"python_ns": _begun_ns, "torch_ns": after.begun_ns["torch"]}
            mine.journal.startup = {**begun_ns, "torch_ended_ns": time.time_ns()}
        hooks.install(torch, mine, after, is_late=bool(_here))
        after.when("torch.utils.data.dataloader", lambda module: mine.guard(lambda: loader_hooks.install(module, mine)))
        recorder = mine
        TimedWindows(mine).start()
        _watch_the_end()
    except Exception as fault:
        _tell(orders, mine, fault)


def _tell(orders: Orders, mine: Any, fault: Exception) -> None:
    """Leave word of a fault that keeps us from recording; hooks that are set already pass everything through."""
    with contextlib.suppress(Exception):
        if mine is not None:
            mine.break_down()
        else:
            with _our_name():
                from uncork.capture.files import note_fault
            note_fault(orders.folder)
    if os.environ.get("UNCORK_DEBUG"):
        sys.stderr.write(f"uncork: not recording in process {os.getpid()}: {fault!r}\n")


def _watch_the_end() -> None:
    """Write what is open when the process ends by itself; a kill is the supervisor's part."""
    atexit.register(_finish)
    leave = os._exit

    def _exit(status: int) -> None:
        _finish()
        leave(status)

    os._exit = _exit  # type: ignore[assignment]
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forked)
    show = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        show(kind, error, without_our_frames(error, trace))

    if show is sys.__excepthook__:
        sys.excepthook = excepthook
    show_in_thread = threading.excepthook

    def thread_excepthook(told: Any) -> None:
        if told.exc_value is not None:
            without_our_frames(told.exc_value, told.exc_traceback)
        show_in_thread(told)

    threading.excepthook = thread_excepthook
    _tell_no_frame_of_ours()


def without_our_frames(error: BaseException, trace: Any) -> Any:
    """Return a traceback as it would be without us, and mend those of the errors it came from."""
    links = _links(trace)
    kept = [links[place] for place in _places([one.tb_frame.f_code for one in links])]
    for one, following in zip(kept, [*kept[1:], None], strict=True):
        one.tb_next = following
    cleaned = kept[0] if kept else trace
    if error.__traceback__ is not None:
        error.__traceback__ = cleaned
    for origin in (error.__cause__, error.__context__):
        if origin is not None and origin.__traceback__ is not None:
            without_our_frames(origin, origin.__traceback__)
    return cleaned


def _places(codes: list[CodeType]) -> list[int]:
    """Return where in a stack, outermost first, the program's own frames are.

    What ran below a guard of ours was ours, files of Python's library and of torch included (Ctrl-C, or a signal that
    the program handles, fell into it); the handler is the program's.
    """
    kept, is_below = [], False
    for place, code in enumerate(codes):
        if code.co_filename.startswith(OUR_FILES):
            is_below = is_below or code.co_name in BORDERS
        elif not (is_below and _is_library(code.co_filename)):
            kept.append(place)
    return kept


def _is_library(file: str) -> bool:
    """Return whether a file is Python's or torch's."""
    folder, _, installed = file.partition("-packages" + os.sep)
    return installed.startswith("torch" + os.sep) if installed else folder.startswith(STANDARD)


def _tell_no_frame_of_ours() -> None:
    """Keep our frames out of the stacks and tracebacks that the program prints or logs."""
    import traceback  # not before the program runs: torch has imported it

    summary: Any = traceback.StackSummary
    name = "_extract_from_extended_frame_gen"  # what all of `traceback` goes through, since Python 3.11
    name = name if hasattr(summary, name) else "extract"
    original = getattr(summary, name).__func__

    def extract(kind: Any, frames: Any, **options: Any) -> Any:
        return original(kind, iter(theirs_of(list(frames))), **options)

    of_class: Any = functools.wraps(original)(extract)
    setattr(summary, name, classmethod(of_class))


def theirs_of(frames: list[Any]) -> list[Any]:
    """Return the frames of a stack, outermost first, without ours above others; a fault of our own is told whole."""
    codes = [frame.f_code for frame, *_ in frames]
    kept = _places(codes)
    are_ours = [code.co_filename.startswith(OUR_FILES) for code in codes]
    border = next((place for place, code in enumerate(codes) if are_ours[place] and code.co_name in BORDERS), None)
    if border is None:
        last = max(kept, default=-1)
        return [frames[place] for place in kept] + frames[last + 1 :]
    return [frames[place] for place in kept] if kept and kept[0] < border else frames[border:]


def _links(trace: Any) -> list[Any]:
    links = []
    while trace is not None:
        links.append(trace)
        trace = trace.tb_next
    return links


def _finish() -> None:
    global _finished  # noqa: PLW0603  # atexit and os._exit may both come here
    if _finished or recorder is None:
        return
    _finished = True
    try:
        if recorder.memory.host_failed():
            recorder.journal.note("host-memory-failed")
        recorder.finish()
    except Exception:
        recorder.break_down()
    except BaseException:  # Ctrl-C, say: without us the program would be past it
        with contextlib.suppress(BaseException):
            recorder.write(ended=True)


def _forked() -> None:
    global _finished  # noqa: PLW0603  # the child ends on its own
    _finished = False
    if recorder is not None:
        try:
            recorder.after_fork()
        except Exception:
            recorder.broken = True
