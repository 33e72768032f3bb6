"""Unheld: modules whose parameters get gradients that no optimiser holds and that change nothing."""

import weakref
from collections.abc import Iterable
from typing import Any

from uncork.capture.apart import is_plain

MOST_NAMES = 200
"""Modules that are named, outermost first: those inside them need no name."""
VALUES = 64
"""Values of a parameter that are looked at: whoever applies a gradient by hand changes nearly all of them."""
STEPS_APART = 8
"""Steps between two looks at a parameter: whoever gathers gradients over several steps has applied them by then."""
FULL_BYTES = 4
"""Size of a value in single precision."""


class Unheld:
    """Looks at parameters right after updates, several times while a program runs.

    A parameter counts once it was seen before, is in no optimiser, has a gradient, and is as it was. Versions tell what
    was changed in place, values what was changed through ``.data``, or by an optimiser with masters of its own.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[Any, int, int, Any]] = {}
        self._first_step: int | None = None
        self._step = 0
        self._copies = False

    def look(self, named: Iterable[tuple[str, Any]], optimizers: Iterable[Any], step: int) -> list[str] | None:
        """Return the paths of the modules in question, None while the first look at one is too near.

        Args:
            named: Every module with its path; several may share one.
            optimizers: The program's optimisers.
            step: Steps the program has made.
        """
        pairs = list(named)
        self._step = step
        self._first_step = step if self._first_step is None else self._first_step
        held = {id(one) for optimizer in optimizers for group in optimizer.param_groups for one in group["params"]}
        # Of a parameter in 16 bits an optimiser may hold a copy in 32, whose small changes do not show for long.
        self._copies = bool(held - {id(one) for _, module in pairs for one in module.parameters(recurse=False)})
        found: set[int] = set()
        own = {id(module): self._own(module, held) for _, module in pairs}
        for _, module in pairs:
            inside = list(module.modules())
            told = [own[id(one)] if id(one) in own else self._own(one, held) for one in inside]
            if True in told and False not in told:
                found.update(map(id, inside))
        return _outermost(pairs, found) if not self._seen or self.is_due(step) else None

    def is_due(self, step: int) -> bool:
        """Return whether a second look would tell more than the first one."""
        return bool(self._seen) and self._first_step is not None and step - self._first_step >= STEPS_APART

    def _own(self, module: Any, held: set[int]) -> bool | None:
        """Return whether a module's own parameters are all in question; None where it trains none."""
        wanted = [one for one in module.parameters(recurse=False) if one.requires_grad]
        if any(id(one) in held for one in wanted):
            return False
        told = [self._is_same(one) for one in wanted if one.grad is not None and is_plain(_local(one))]
        return all(told) if told else None

    def _is_same(self, parameter: Any) -> bool:
        """Return whether a parameter was seen some steps ago and never changed since."""
        known = self._seen.get(id(parameter))
        now = _values(parameter)
        if known is None or known[0]() is not parameter:
            self._seen[id(parameter)] = (weakref.ref(parameter), self._step, parameter._version, now)
            return False
        _, step, version, before = known
        is_old = self._step - step >= STEPS_APART and parameter._version == version
        is_plain = now.element_size() >= FULL_BYTES or not self._copies
        return bool(is_old and is_plain and now.shape == before.shape and (now == before).all())


def _local(parameter: Any) -> Any:
    """Return a parameter, or this rank's part of one that is sharded over ranks."""
    return getattr(parameter, "_local_tensor", parameter)


def _values(parameter: Any) -> Any:
    """Return copies of some values of a parameter, spread over it."""
    flat = _local(parameter).detach().reshape(-1)
    return flat[:: max(flat.numel() // VALUES, 1)].clone()


def _outermost(pairs: Iterable[tuple[str, Any]], found: set[int]) -> list[str]:
    """Return the paths all of whose modules were found, without those below another of them."""
    told: dict[str, bool] = {}
    for path, module in pairs:
        told[path] = told.get(path, True) and id(module) in found
    kept: set[str] = set()
    for path in sorted(path for path, is_found in told.items() if is_found):
        parts = path.split(".")
        if not any(".".join(parts[:end]) in kept for end in range(1, len(parts))):
            kept.add(path)
    return sorted(kept)[:MOST_NAMES]
