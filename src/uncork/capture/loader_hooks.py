"""The patches on the DataLoader in the process that trains: fetches as step boundaries, and the hand-over timed."""

import functools
import os
import sys
import threading
from typing import Any

from uncork.capture import inside
from uncork.capture.loader import InGet, clock, original_loop, time_fetchers, time_pickler, worker_loop
from uncork.capture.packages import framework
from uncork.capture.recorder import Recorder
from uncork.capture.settings import of_loader
from uncork.capture.spans import SpanWriter


def install(module: Any, recorder: Recorder) -> None:
    """Patch ``torch.utils.data.dataloader``."""
    from torch.utils.data import _utils

    in_get = InGet()

    def writer() -> SpanWriter | None:
        return None if recorder.broken or recorder.pid != os.getpid() else recorder.spans

    def writer_in_get() -> SpanWriter | None:
        return writer() if in_get.value else None

    time_fetchers(_utils.fetch, writer, recorder.guard)
    time_pickler("loads", "deserialise", writer_in_get, recorder.guard)
    _hook_made(module._BaseDataLoaderIter, recorder)
    _hook_next(module._BaseDataLoaderIter, recorder)
    _hook_start(module._MultiProcessingDataLoaderIter, _utils.worker, recorder)
    _hook_wait(module._MultiProcessingDataLoaderIter, recorder, in_get)
    _hook_pin(_utils.pin_memory, recorder)


def _hook_made(iterator: Any, recorder: Recorder) -> None:
    """Remember the loader of each iterator, also of those that a framework makes and keeps by itself.

    What ``__init__`` warns of names the line that called it: it stays the program's.
    """

    def __new__(cls: type, loader: Any = None, *_args: Any, **_more: Any) -> Any:  # noqa: N807
        made: Any = object.__new__(cls)
        if loader is not None and not recorder.complete:
            recorder.guard(lambda: note(made, loader))
        return made

    def note(made: Any, loader: Any) -> None:
        made._uncork_loader = {**of_loader(loader), "loader_of": framework(sys._getframe())}
        _iterated(made, recorder)

    iterator.__new__ = staticmethod(__new__)


def _iterated(iterator: Any, recorder: Recorder) -> None:
    """Remember the loader whose settings the report shows: the one iterated last while steps are recorded."""
    told, seen = getattr(iterator, "_uncork_loader", None), recorder.journal.seen
    if told is not None and not recorder.complete:
        seen["loader_now"] = told
        seen.setdefault("loader", told)


def _hook_next(iterator: Any, recorder: Recorder) -> None:
    """Patch ``__next__``: its entry may be a step's boundary; its span's value is the batches that lay ready."""
    original = iterator.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:  # noqa: N807
        if recorder.broken:
            return original(self)
        recorder.guard(lambda: entered(self))
        if not recorder.spans.on:
            return original(self)
        ready = batches_ready(self)
        begun_ns = clock()
        try:
            return original(self)
        finally:
            recorder.guard(lambda: recorder.spans.add("next", begun_ns, clock(), ready))

    def entered(iterator: Any) -> None:
        # While no thread is known yet the main one's batches count; others fetch ahead for it.
        is_loop = threading.get_ident() in (recorder.thread, threading.main_thread().ident)
        if is_loop:
            _iterated(iterator, recorder)
        if is_loop and recorder.finder.rule != "mark" and recorder.is_ours():
            recorder.take(recorder.finder.fetch())

    iterator.__next__ = __next__


def batches_ready(iterator: Any) -> int:
    """Return how many batches the workers hold ready for the main process, -1 where that cannot be said."""
    try:
        held_back = sum(1 for task in iterator._task_info.values() if len(task) == 2)
        return int(iterator._data_queue.qsize()) + held_back
    except Exception:
        return -1


def _hook_start(iterator: Any, worker_module: Any, recorder: Recorder) -> None:
    """Patch the start of workers: they run our loop around torch's, and starting them is the span ``startup``."""
    original, loop = iterator.__init__, worker_module._worker_loop
    original_loop[:] = [loop]

    @functools.wraps(original)
    def __init__(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        if recorder.broken or recorder.pid != os.getpid():
            original(self, loader, *args, **kwargs)
            return
        recorder.guard(prepare)
        begun_ns = clock()
        try:
            original(self, loader, *args, **kwargs)
        finally:
            worker_module._worker_loop = loop
            recorder.guard(lambda: recorder.spans.add("startup", begun_ns, clock(), loader.num_workers))

    def prepare() -> None:
        if inside.is_kept_from_children():
            return  # a spawned worker could not import our loop
        recorder.spans.flush()
        worker_module._worker_loop = functools.partial(worker_loop, str(recorder.home()))

    iterator.__init__ = __init__


def _hook_wait(iterator: Any, recorder: Recorder, in_get: InGet) -> None:
    """Patch the wait for the workers' queue: span ``wait``, which holds ``deserialise``."""
    original = iterator._try_get_data

    @functools.wraps(original)
    def _try_get_data(self: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.broken or not recorder.spans.on:
            return original(self, *args, **kwargs)
        begun_ns = clock()
        in_get.value = True
        try:
            return original(self, *args, **kwargs)
        finally:
            in_get.value = False
            recorder.guard(lambda: recorder.spans.add("wait", begun_ns, clock()))

    iterator._try_get_data = _try_get_data


def _hook_pin(pin_module: Any, recorder: Recorder) -> None:
    """Patch the copy into pinned memory, in whichever thread it runs; it calls itself for nested batches."""
    original = pin_module.pin_memory
    depth = threading.local()

    @functools.wraps(original)
    def pin_memory(data: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.broken or not recorder.spans.on or getattr(depth, "inside", False):
            return original(data, *args, **kwargs)
        begun_ns = clock()
        depth.inside = True
        try:
            return original(data, *args, **kwargs)
        finally:
            depth.inside = False
            recorder.guard(lambda: recorder.spans.add("pin", begun_ns, clock()))

    pin_module.pin_memory = pin_memory
