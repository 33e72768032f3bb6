"""Cycle: which updates of which optimisers make one step, learnt from their order alone."""

import itertools
from collections import Counter

HISTORY = 256
"""Updates remembered while learning: long enough for a critic that is trained a hundred times per generator."""
PATIENCE = 3
"""Broken patterns after which the order counts as irregular."""
WITHDRAWN_MOST = 32
"""Steps cut so far that a new optimiser may still turn into parts of one; later it starts a pattern of its own."""
RECHOSEN_AFTER = 32
"""Updates after which an irregular order's pace is looked at again: a first choice rests on few."""
LOOKED_AT_EVERY = 8
"""Updates without the one that paces after which it is asked whether that one is still in use."""
GONE_AFTER = 3
"""Periods of its own without an update after which an optimiser is gone: a first phase is over."""
RARE_SHARE = 0.1
"""An optimiser with fewer of the updates than this cannot pace the loop (it may have run once, in a warm-up)."""


class Cycle:
    """Learns the period of the updates: ``D G D G`` closes at each G, ``D D D D D G`` at each sixth.

    The first update closes a step of its own; when a second optimiser appears before any window began, the steps cut
    so far turn out to be parts of one, which `withdrawn` says.
    """

    def __init__(self) -> None:
        self.history: list[int] = []
        self.known: set[int] = set()
        self.pattern: list[int] = []
        self.current: list[int] = []
        self.broken = 0
        self.anchor: int | None = None
        self.withdrawn = 0
        self._closed = self._since_choice = 0

    def add(self, key: int, *, begins: bool = False) -> bool:
        """Return whether this update closes a step.

        Args:
            key: The optimiser's.
            begins: It was built after updates of all others: steps of its own, and no part of theirs.
        """
        self.withdrawn = 0
        self.history.append(key)
        del self.history[:-HISTORY]
        if key not in self.known:
            return self._learn_from(key, begins=begins)
        self.current.append(key)
        if self.anchor is not None:
            self._since_choice += 1
            lost = key != self.anchor and self._since_choice % LOOKED_AT_EVERY == 0 and self._is_gone(self.anchor)
            if lost or self._since_choice >= RECHOSEN_AFTER:
                self.anchor = self._choose_anchor()
            closes = key == self.anchor
        elif self.current == self.pattern:
            closes = True
        elif self.pattern[: len(self.current)] == self.current:
            closes = False
        else:
            closes = self._mend()
        if closes:
            self.current = []
            self._closed += 1
        return closes

    def _learn_from(self, key: int, *, begins: bool) -> bool:
        """Take in an optimiser that was not seen before: what came since the last relearning is one period."""
        self.known.add(key)
        is_part = not begins and self._closed <= WITHDRAWN_MOST
        self.pattern = self.pattern * self._closed + self.current + [key] if is_part else [key]
        self.withdrawn = self._closed if is_part else 0
        self.current, self._closed, self.anchor, self.broken = [], 1, None, 0
        return True

    def _mend(self) -> bool:
        """Return whether the period that explains the latest updates ends here; give up on irregular orders."""
        self.broken += 1
        if self.broken > PATIENCE:
            self.anchor = self._choose_anchor()
            return self.current[-1] == self.anchor
        tail = self.history
        for period in range(1, len(tail) // 2 + 1):
            if tail[-period:] == tail[-2 * period : -period] and set(tail[-period:]) == self.known:
                self.pattern = tail[-period:]
                return True
        return False

    def _choose_anchor(self) -> int:
        """Return the optimiser that paces an irregular order: the rarest that is no exception."""
        self._since_choice = 0
        counts = Counter(self.history)
        alive = [key for key in counts if not self._is_gone(key)]
        updates = sum(counts[key] for key in alive)
        pacing = [key for key in alive if counts[key] >= RARE_SHARE * updates]
        return min(pacing, key=lambda key: (counts[key], self.history.index(key)))

    def _is_gone(self, key: int) -> bool:
        """Return whether an optimiser has not been used for far longer than it ever paused."""
        places = [place for place, one in enumerate(self.history) if one == key]
        if len(places) < 2:
            return not places
        period = max(after - before for before, after in itertools.pairwise(places))
        return len(self.history) - 1 - places[-1] > GONE_AFTER * period + LOOKED_AT_EVERY
