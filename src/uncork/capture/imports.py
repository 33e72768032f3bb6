"""AfterImport: calls us when the program has imported a module; we never import it first."""

import sys
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class AfterImport:
    """A finder at the front of the path that finds nothing itself, and runs a callback after the real import."""

    def __init__(self) -> None:
        self.begun_ns: dict[str, int] = {}
        """When the import of a module that was waited for began, since the epoch."""
        self._waiting: dict[str, list[Callable[[ModuleType], None]]] = {}

    def when(self, name: str, then: Callable[[ModuleType], None]) -> None:
        """Call `then` with the module: now if it is there, else when the program has imported it."""
        module = sys.modules.get(name)
        if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
            then(module)
            return
        self._waiting.setdefault(name, []).append(then)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the real spec with its loader made to call back; None for every other module."""
        waiting = self._waiting.pop(name, None)
        if waiting is None:
            return None
        self.begun_ns[name] = time.time_ns()
        spec = self._real(name, path, target)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            self._waiting[name] = waiting  # not found now (the program may handle that); it may come later
            return spec
        loader: Any = spec.loader
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            loader.exec_module = run
            run(module)
            for then in waiting:
                then(module)

        loader.exec_module = exec_module
        return spec

    def _real(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            if finder is self:
                continue
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None:
                return spec
        return None
