"""Bursts: updates that come several at a time after other work, as in reinforcement learning, make one step together.

Between two bursts the program plays, searches or validates. Were each update a step, most windows would see none of
that work, and the answer would be about the rest.
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile

from uncork.capture.windows import FILES

TURNS, LEAST_STEPS = 4, 32
"""Bursts, and updates in them, that have to be alike: what a busy machine takes from the program now and then falls
elsewhere each time."""
LONGEST = 64
"""Updates of a burst at most: a window holds whole steps."""
FAR_LONGER = 4
"""The step that begins a burst takes this many times the median …"""
WORTH_SHARE = 0.2
"""… and this share of the whole turn: less would change no answer."""
LOOKED_AT_EVERY = 8
"""Steps between two looks: one takes a fraction of a millisecond."""


def unobserved(steps: Sequence[tuple[int, str, int, int]]) -> list[int]:
    """Return the durations of the latest steps that no profiler made longer, the latest last.

    Args:
        steps: Number, window, start and duration of each.
    """
    latest = takewhile(lambda row: row[1] not in FILES, reversed(steps))
    return [dur_ns for (_, _, _, dur_ns), _ in zip(latest, range(TURNS * LONGEST), strict=False)][::-1]


def burst_of(step_ns: Iterable[int], most: int = LONGEST) -> tuple[int, int]:
    """Return (updates of a burst, how many of the running one are over), or (0, 0) where updates come evenly.

    Args:
        step_ns: The latest durations from update to update, the latest last.
        most: Updates that a burst may have.
    """
    taken = list(step_ns)[::-1]  # the latest first: a burst's length counts from there
    usual = sorted(taken)[len(taken) // 2] if taken else 0
    far_longer = {place for place, one in enumerate(taken) if one >= FAR_LONGER * usual}
    for length in range(2, min(most, len(taken) // TURNS) + 1):
        turns = max(TURNS, -(-LEAST_STEPS // length))
        for last in range(length if turns * length <= len(taken) else 0):
            begins = range(last, turns * length, length)
            if not far_longer.issuperset(begins):
                continue
            floor = min(taken[place] for place in begins)
            alike = sum(one >= floor for one in taken[: turns * length]) == turns
            if alike and floor >= WORTH_SHARE * (floor + usual * (length - 1)):
                return length, (last + 1) % length
    return 0, 0
