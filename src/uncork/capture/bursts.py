"""Bursts: updates that come several at a time after other work, as in reinforcement learning, make one step together.

Between two bursts the program plays, searches or validates. Were each update a step, most windows would see none of
that work, and the answer would be about the rest.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice, takewhile

from uncork.capture.core_time import queued_ns
from uncork.capture.windows import FILES, Step

TURNS, LEAST_STEPS = 4, 32
"""Bursts, and updates in them, that have to be alike."""
LONGEST = 64
"""Updates of a burst at most: a window holds whole steps."""
FAR_LONGER = 4
"""The step that begins a burst takes this many times the median …"""
WORTH_SHARE = 0.2
"""… and this share of the whole turn: less would change no answer."""
QUEUED_SHARE = WORTH_SHARE / 2
"""A thread that waited longer than this for a core may have waited so at the begin of each burst."""
LOOKED_AT_EVERY, LATER_EVERY, LATER = 8, 64, 256
"""Steps between two looks, at first and after so many steps: one takes 100 µs, more than a step of few operators."""


def is_due(steps_seen: int) -> bool:
    """Return whether to look for bursts after this step."""
    return steps_seen % (LOOKED_AT_EVERY if steps_seen < LATER else LATER_EVERY) == 0


class Bursts:
    """Looks for bursts among the latest steps.

    A busy machine lets a program run for some milliseconds and wait for some more, and so makes every 17th step of a
    plain loop long (at load 7 four looks of a hundred took that for bursts). So the thread's own work tells; the clock
    only where the thread did not wait for a core.

    Args:
        queued: Tells how long this thread has waited for a core, or None where nothing counts it.
    """

    def __init__(self, queued: Callable[[], int | None] = queued_ns) -> None:
        self._queued = queued
        self._looks: deque[tuple[int, int | None]] = deque(maxlen=TURNS * LONGEST // LOOKED_AT_EVERY + 1)

    def look(self, steps: Sequence[Step], most: int = LONGEST) -> tuple[int, int]:
        """Return what `burst_of` does, of the latest steps that no profiler made longer.

        Args:
            steps: The steps up to now.
            most: Updates that a burst may have.
        """
        latest = list(islice(takewhile(lambda row: row[1] not in FILES, reversed(steps)), TURNS * LONGEST))[::-1]
        self._looks.append((latest[-1][0] if latest else 0, self._queued()))
        found = burst_of([dur_ns if cpu_ns is None else min(dur_ns, cpu_ns) for *_, dur_ns, cpu_ns in latest], most)
        if found[0]:
            return found
        found = burst_of([row[3] for row in latest], most)
        turns = latest[-max(TURNS * found[0], LEAST_STEPS) :]
        return found if found[0] and self._had_cores(turns) else (0, 0)

    def _had_cores(self, steps: Sequence[Step]) -> bool:
        """Return whether the thread is known to have had a core whenever it wanted one."""
        before = next((queued for number, queued in reversed(self._looks) if number < steps[0][0]), None)
        now = self._looks[-1][1]
        if before is None or now is None:
            return False
        return now - before <= QUEUED_SHARE * sum(row[3] for row in steps)


def burst_of(step_ns: Sequence[int], most: int = LONGEST) -> tuple[int, int]:
    """Return (updates of a burst, how many of the running one are over), or (0, 0) where updates come evenly.

    Args:
        step_ns: The latest durations from update to update, the latest last.
        most: Updates that a burst may have.
    """
    taken = step_ns[::-1]  # the latest first: a burst's length counts from there
    usual = sorted(taken)[len(taken) // 2] if taken else 0
    places = [place for place, one in enumerate(taken) if one >= FAR_LONGER * usual]
    far_longer = set(places)
    if len(far_longer) < TURNS:
        return 0, 0
    for length in range(2, min(most, len(taken) // TURNS) + 1):
        turns = max(TURNS, -(-LEAST_STEPS // length))
        for last in places if turns * length <= len(taken) else ():
            begins = range(last, turns * length, length)
            if last >= length or not far_longer.issuperset(begins):
                continue
            floor = min(taken[place] for place in begins)
            alike = sum(one >= floor for one in taken[: turns * length]) == turns
            if alike and floor >= WORTH_SHARE * (floor + usual * (length - 1)):
                return length, (last + 1) % length
    return 0, 0
