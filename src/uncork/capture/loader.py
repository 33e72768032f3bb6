"""The stages of torch's DataLoader, timed in the main process and inside its workers, whatever starts them."""

import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from uncork.capture.core_time import queued_ns
from uncork.capture.spans import SpanWriter
from uncork.capture.stacks import StackSampler

clock = time.perf_counter_ns


class TimedDataset:
    """A map dataset as its fetcher sees it: each item timed, everything else handed through."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.slowest_ns = self.slowest_begun_ns = self.slowest_index = 0

    def __getitem__(self, index: Any) -> Any:
        """Return the dataset's item."""
        begun_ns = clock()
        item = self._dataset[index]
        took_ns = clock() - begun_ns
        if took_ns > self.slowest_ns:
            self.slowest_ns, self.slowest_begun_ns = took_ns, begun_ns
            self.slowest_index = index if isinstance(index, int) else -1
        return item

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the dataset."""
        return getattr(self._dataset, name)


def time_fetchers(fetch_module: Any, writer: Callable[[], SpanWriter | None], guard: Callable[..., object]) -> None:
    """Patch both fetchers: spans ``fetch`` (a batch's items; value: how many), ``item_max`` and ``collate`` (bytes)."""
    for fetcher in (fetch_module._MapDatasetFetcher, fetch_module._IterableDatasetFetcher):
        _time_fetcher(fetcher, writer, guard)


def _time_fetcher(fetcher: Any, writer: Callable[[], SpanWriter | None], guard: Callable[..., object]) -> None:
    original = fetcher.fetch

    @functools.wraps(original)
    def fetch(self: Any, index: Any) -> Any:
        spans = writer()
        if spans is None or not spans.on:
            return original(self, index)
        guard(lambda: FetchTimes.of(self).begin())
        begun_ns = clock()
        data = original(self, index)
        guard(lambda: FetchTimes.of(self).end(spans, begun_ns, data, index))
        return data

    fetcher.fetch = fetch


class FetchTimes:
    """The parts of one fetcher's work, timed through stand-ins for its dataset and its collate function.

    Args:
        fetcher: The fetcher, whose two attributes are replaced.
    """

    def __init__(self, fetcher: Any) -> None:
        self._batched = bool(fetcher.auto_collation)
        self._collated = (0, 0)
        self._items: TimedDataset | None = None
        self._collate = fetcher.collate_fn
        fetcher.collate_fn = self.collate
        by_item = self._batched and not hasattr(fetcher, "dataset_iter") and hasattr(fetcher.dataset, "__getitem__")
        if by_item and not getattr(fetcher.dataset, "__getitems__", None):
            fetcher.dataset = self._items = TimedDataset(fetcher.dataset)

    @classmethod
    def of(cls, fetcher: Any) -> "FetchTimes":
        """Return the times of a fetcher, which carries them."""
        found = getattr(fetcher, "_uncork", None)
        if found is None:
            found = fetcher._uncork = cls(fetcher)
        return found

    def collate(self, items: Any) -> Any:
        """Return the batch as the program's own function makes it."""
        begun_ns = clock()
        batch = self._collate(items)
        self._collated = (begun_ns, clock())
        return batch

    def begin(self) -> None:
        """Forget the slowest item of the batch before."""
        if self._items is not None:
            self._items.slowest_ns = 0

    def end(self, spans: SpanWriter, begun_ns: int, data: Any, index: Any) -> None:
        """Write the spans of one batch."""
        ended_ns, (collating_ns, collated_ns) = clock(), self._collated
        collated = collating_ns >= begun_ns
        count = len(index) if self._batched and hasattr(index, "__len__") else 1
        spans.add("fetch", begun_ns, collating_ns if collated else ended_ns, count)
        if collated:
            spans.add("collate", collating_ns, collated_ns, batch_bytes(data))
        items = self._items
        if items is not None and items.slowest_ns:
            begun_ns = items.slowest_begun_ns
            spans.add("item_max", begun_ns, begun_ns + items.slowest_ns, items.slowest_index)


def batch_bytes(data: Any, depth: int = 0) -> int:
    """Return the size of the tensors in a batch, looking a few containers deep."""
    if hasattr(data, "element_size"):
        return int(data.numel() * data.element_size())
    if depth < 3 and isinstance(data, dict):
        return sum(batch_bytes(value, depth + 1) for value in data.values())
    if depth < 3 and isinstance(data, (list, tuple)):
        return sum(batch_bytes(value, depth + 1) for value in data[:64])
    return 0


def time_pickler(
    method: str, stage: str, writer: Callable[[], SpanWriter | None], guard: Callable[..., object]
) -> None:
    """Patch one direction of the pickler that multiprocessing queues use: the span's value is the bytes pickled."""
    from multiprocessing.reduction import ForkingPickler

    original = getattr(ForkingPickler, method)

    def timed(*args: Any, **kwargs: Any) -> Any:
        spans = writer()
        if spans is None or not spans.on:
            return original(*args, **kwargs)
        begun_ns = clock()
        result = original(*args, **kwargs)
        size = args[0] if stage == "deserialise" else result
        guard(lambda: spans.add(stage, begun_ns, clock(), len(size)))
        return result

    setattr(ForkingPickler, method, staticmethod(timed))


class WorkerHome:
    """The folder of the rank that started a worker.

    Args:
        folder: Path of it.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def home(self) -> Path:
        """Return the folder."""
        return self._folder


original_loop: list[Callable[..., Any]] = []
"""torch's own worker loop, kept where a forked worker finds it: the name in torch's module leads to ours."""


def worker_loop(folder: str, *args: Any, **kwargs: Any) -> Any:
    """Run torch's worker loop with its stages timed and its Python sampled.

    Lies at module level, so that spawned and forkserver workers find it by name.
    """
    finish = None
    try:
        finish = _watch_worker(folder, worker=_worker_id(args))
    except Exception:
        finish = None  # the worker runs unwatched
    if not original_loop:
        from torch.utils.data._utils.worker import _worker_loop

        original_loop.append(_worker_loop)
    try:
        return original_loop[0](*args, **kwargs)
    finally:
        if finish is not None:
            finish()


def _worker_id(args: tuple[Any, ...]) -> int:
    """Return the worker's number: the eleventh argument of torch's loop, from 1.13 to today."""
    return int(args[10]) if len(args) > 10 and isinstance(args[10], int) else 0


def _watch_worker(folder: str, worker: int) -> Callable[[], None]:
    """Patch this worker process; return what to do at its end."""
    from torch.utils.data import _utils

    from uncork.capture import inside

    inside.silence()
    spans = SpanWriter(WorkerHome(folder), worker)
    sampler = StackSampler()
    path = Path(folder) / f"stacks.{os.getpid()}.json"
    last = [0]

    def guard(what: Callable[[], object]) -> None:
        try:
            what()
        except Exception:
            spans.on = False

    guard(_clean_reports)
    time_fetchers(_utils.fetch, lambda: spans, guard)
    time_pickler("dumps", "serialise", lambda: spans, guard)
    for fetcher in (_utils.fetch._MapDatasetFetcher, _utils.fetch._IterableDatasetFetcher):
        _note_idle(fetcher, spans, sampler, guard, last)
    sampler.active = False
    if not (Path(folder) / "complete").exists():
        sampler.write_often_to(path)
        sampler.run(True)

    def finish() -> None:
        guard(sampler.stop)
        guard(spans.end)
        guard(lambda: sampler.write(path, "worker"))

    return finish


def _clean_reports() -> None:
    """Leave our frames out of the text that a worker's error carries to the main process."""
    from torch._utils import ExceptionWrapper

    from uncork.capture.inside import without_our_frames

    wrapper: Any = ExceptionWrapper
    original = wrapper.__init__

    @functools.wraps(original)
    def __init__(self: Any, exc_info: Any = None, where: str = "in background") -> None:  # noqa: N807
        told = exc_info or sys.exc_info()
        if told[1] is not None:
            without_our_frames(told[1], told[2])
        original(self, told, where)

    wrapper.__init__ = __init__


def _note_idle(
    fetcher: Any, spans: SpanWriter, sampler: StackSampler, guard: Callable[..., object], last: list[int]
) -> None:
    """Wrap a worker's fetch once more: span ``idle`` between two fetches, and samples only inside one.

    Span ``ran`` is how much of it had a core; its value how long it was ready and none was free, -1 where not counted.
    """
    timed = fetcher.fetch

    def core_time() -> tuple[int, int | None]:
        return time.process_time_ns(), queued_ns()

    def note_ran(begun_ns: int, before: tuple[int, int | None]) -> None:
        (ran_ns, queued), (ran_before_ns, queued_before) = core_time(), before
        waited_ns = -1 if queued is None or queued_before is None else queued - queued_before
        spans.add("ran", begun_ns, begun_ns + ran_ns - ran_before_ns, waited_ns)

    def fetch(self: Any, index: Any) -> Any:
        begun_ns = clock()
        if last[0]:
            guard(lambda: spans.add("idle", last[0], begun_ns))
        sampler.active = True
        before = core_time() if spans.on else None
        try:
            return timed(self, index)
        finally:
            sampler.active = False
            last[0] = clock()
            if before is not None and spans.on:
                guard(lambda: note_ran(begun_ns, before))

    fetcher.fetch = fetch


class InGet(threading.local):
    """Whether this thread is taking a batch from the workers' queue."""

    value = False
