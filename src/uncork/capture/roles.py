"""Roles: which optimiser does the work of one that is gone, as each fold and each task may build its own."""

import itertools
import weakref
from typing import Any

from uncork.records import dataclass

MOST_OPTIMIZERS = 1024
"""Optimisers remembered: some programs have one per parameter, others build one per task for ever."""


@dataclass(frozen=False, eq=False)
class Role:
    """What one optimiser is in the program's loop.

    Args:
        key: The same for an optimiser and for its successor.
        generation: How often optimisers had been built after updates by others.
        optimizer: The optimiser while it lives.
        kind: Its class and number of parameters, known once its generation updates them.
    """

    key: int
    generation: int
    optimizer: "weakref.ref[Any]"
    kind: tuple[str, int] | None = None


class Roles:
    """Tells optimisers apart by what they do and not by where they lie: a new one may lie where an old one lay."""

    def __init__(self) -> None:
        self._roles: dict[int, Role] = {}
        self._gone: list[Role] = []
        self._keys = itertools.count(1)
        self._newest = self._updating = self._begun = 0
        self._updated = False

    def built(self, optimizer: Any) -> bool:
        """Return whether an optimiser is new: torch also sets one up again that loads its state."""
        former = self._roles.get(id(optimizer))
        if former is not None and former.optimizer() is optimizer:
            return False
        if self._updated:
            self._newest, self._updated = self._newest + 1, False
        if former is not None:
            self._gone.append(self._roles.pop(id(optimizer)))
            del self._gone[:-MOST_OPTIMIZERS]
        self._roles[id(optimizer)] = Role(next(self._keys), self._newest, weakref.ref(optimizer))
        if len(self._roles) > MOST_OPTIMIZERS:
            del self._roles[next(iter(self._roles))]
        return True

    def of(self, optimizer: Any) -> tuple[int, bool]:
        """Return an optimiser's key at an update, and whether it begins another training than all before it."""
        self._updated = True
        role = self._roles.get(id(optimizer))
        if role is None:
            return id(optimizer), False
        begins = role.kind is None and not self._succeed(role.generation) and role.generation > self._updating
        if begins:
            self._begun = role.generation
        self._updating = max(role.generation, self._updating)
        return role.key, begins

    def _succeed(self, generation: int) -> bool:
        """Return whether each optimiser of a generation has the kind of one that is gone, whose key it then has."""
        alive = [(place, one, one.optimizer()) for place, one in self._roles.items()]
        self._gone += [one for _, one, optimizer in alive if optimizer is None]
        del self._gone[:-MOST_OPTIMIZERS]
        self._roles = {place: one for place, one, optimizer in alive if optimizer is not None}
        left, heirs, alone = [one for one in self._gone if one.generation >= self._begun], [], False
        for _, role, optimizer in alive:
            if optimizer is None or role.generation != generation:
                continue
            role.kind = (type(optimizer).__qualname__, sum(len(group["params"]) for group in optimizer.param_groups))
            former = next((one for one in left if one.kind == role.kind), None)
            if former is None:
                alone = True
                continue
            left.remove(former)
            heirs.append((role, former.key))
        if alone:
            return False
        for role, key in heirs:
            role.key = key
        self._gone = left
        return True
