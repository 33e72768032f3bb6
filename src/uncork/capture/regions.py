"""Regions: names that hooks add to a trace while a window is open: module paths and step numbers."""

import contextlib
import threading
import weakref
from typing import Any, ClassVar

from uncork.capture.budget import Watch

PREFIX = "nn.Module: "


class Regions:
    """Attribute paths of modules, looked up by identity.

    `on` while a trace is recorded; `looking` while outermost calls matter: the model is not known yet, or forwards may
    be steps. Both are plain attributes because every module call of the program asks them. `thread` is the one that is
    traced. `inside` are the regions of the process that are open, those that a trace has left open among them.
    """

    inside: ClassVar[set[Any]] = set()

    def __init__(self) -> None:
        self.on = False
        self.thread = 0
        self.watch: Watch | None = None
        self.forget()

    def forget(self) -> None:
        """Know no module: another thread has another model."""
        self.looking = True
        self._names: dict[int, tuple[Any, str]] = {}
        self._first: Any = None

    def switch(self, on: bool) -> None:
        """Begin or end naming, on the thread that is traced."""
        self.thread = threading.get_ident()
        self.on = on

    def unwatch(self) -> None:
        """Note that the window is over."""
        watch, self.watch = self.watch, None
        if watch is not None:
            watch.end()

    def name(self, module: Any) -> str:
        """Return the region's name of a module: its path below the outermost module that was called."""
        if self.watch is not None:
            self.watch.called()
        known = self._names.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        self._learn(module)
        known = self._names.get(id(module))
        return known[1] if known else PREFIX + type(module).__name__

    def named(self) -> list[tuple[str, Any]]:
        """Return the modules that have a name and are alive, with their paths."""
        alive = [(name.removeprefix(PREFIX), module()) for module, name in self._names.values()]
        return [(name, module) for name, module in alive if module is not None]

    def _learn(self, root: Any) -> None:
        """Walk an unknown module once: the walk of an outermost module names everything below it.

        Paths below a second root (a discriminator, say) carry its class, so that no two modules share a name; once the
        first is gone (each fold builds its own), the next takes its place. Numbers, as the parts of a Sequential have,
        say nothing alone: they carry the class below the first root too, and the second is told from it.
        """
        inside = list(root.named_modules())
        first = self._first() if self._first is not None else None
        around = first is not None and any(module is first for _, module in inside)  # a part was met alone before
        kind = type(root).__name__
        second = first is not None and not around
        if second:
            kind += "_2" * (type(first).__name__ == kind)
        else:
            self._first = weakref.ref(root)
        for path, module in inside:
            known = self._names.get(id(module))
            if around or known is None or known[0]() is not module:
                own = f"{kind}.{path}" if path and (second or path[0].isdigit()) else path or kind
                self._names[id(module)] = (weakref.ref(module), PREFIX + own)


class StepMarks:
    """``ProfilerStep#N`` in the trace, one per step, as torch's own schedule would write them."""

    def __init__(self) -> None:
        self.struck: list[str] = []
        self._open: Any = None
        self._name = ""
        self._number = 0

    def open(self) -> None:
        """Begin the mark of a step; no number is used twice."""
        from torch.autograd.profiler import record_function

        self._number += 1
        self._name = f"ProfilerStep#{self._number}"
        self._open = record_function(self._name)
        self._open.__enter__()

    def close(self) -> None:
        """End the mark that is open."""
        mark, self._open = self._open, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def strike(self) -> None:
        """End the open mark and remember that it was no step, so that its name is taken out of the trace."""
        if self._open is not None:
            with contextlib.suppress(Exception):
                self.close()
            self.struck.append(self._name)
