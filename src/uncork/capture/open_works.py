"""OpenWorks: whether messages of gloo are under way where steps end; no trace may be recorded of such a job.

A thread of gloo's tells torch's profiler of their end. Where that comes after a trace, it is written into memory that
the profiler gave back, and the rank dies of it, as it does under torch's own profiler. So the steps before the first
trace are watched. Collectives of devices end for the profiler once they are queued.
"""

import contextlib
import functools
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

METHODS = [
    "send",
    "recv",
    "recv_anysource",
    "allreduce",
    "allreduce_coalesced",
    "broadcast",
    "reduce",
    "barrier",
    "allgather",
    "_allgather_base",
    "gather",
    "scatter",
    "reduce_scatter",
    "_reduce_scatter_base",
    "alltoall",
    "alltoall_base",
]
"""Of a process group: what makes a work."""
WORKS_MOST = 1000


class OpenWorks:
    """Looks at the works of gloo's process groups, from `begin` to `end`."""

    def __init__(self) -> None:
        self.seen = False
        self._works: deque[weakref.ref[Any]] = deque(maxlen=WORKS_MOST)
        self._kept: dict[str, Any] = {}
        self._group: Any = None

    def begin(self, torch: Any) -> None:
        """Begin to look, if this is a job over gloo and nobody looks yet."""
        distributed = getattr(torch, "distributed", None)
        if self._kept or distributed is None or not (distributed.is_available() and distributed.is_initialized()):
            return
        if "gloo" in str(distributed.get_backend()):
            self._group = distributed.ProcessGroup
            self._kept = {name: vars(self._group)[name] for name in METHODS if name in vars(self._group)}
            for name, method in self._kept.items():
                setattr(self._group, name, self._noting(method))

    def look(self) -> None:
        """Note whether a work is under way; called where a step has ended."""
        while self._works:
            work = self._works.popleft()()
            self.seen = self.seen or (work is not None and not work.is_completed())

    def end(self) -> None:
        """Put torch's own methods back; harmless if that was done."""
        kept, self._kept = self._kept, {}
        for name, method in kept.items():
            setattr(self._group, name, method)
        self._works.clear()

    def _noting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        works = self._works

        @functools.wraps(method)
        def noted(*args: Any, **kwargs: Any) -> Any:
            work = method(*args, **kwargs)
            with contextlib.suppress(TypeError):  # a stand-in may be no object that can be referred to weakly
                works.append(weakref.ref(work))
            return work

        return noted
