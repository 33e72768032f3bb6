"""Bursts: updates that come several at a time after other work, as in reinforcement learning, make one step together.

Between two bursts the program plays, searches or validates. Were each update a step, most windows would see none of
that work, and the answer would be about the rest.
"""

from collections.abc import Sequence
from itertools import islice, takewhile

from uncork.capture.windows import FILES, Step

TURNS, LEAST_STEPS = 4, 32
"""Bursts, and updates in them, that have to be alike."""
WAITING = 2
"""So many times as many where only the clock tells them: a busy machine lets a program run for a few milliseconds and
wait for some more, and so makes every 17th step of a plain loop long (4 of 100 looks at load 7; of 3,800, none at 8
turns and 64 updates)."""
LONGEST = 64
"""Updates of a burst at most: a window holds whole steps."""
FAR_LONGER = 4
"""The step that begins a burst takes this many times the median …"""
WORTH_SHARE = 0.2
"""… and this share of the whole turn: less would change no answer."""
LOOKED_AT_EVERY = 8
"""Steps between two looks: one takes a fraction of a millisecond."""


def burst_in(steps: Sequence[Step], most: int = LONGEST) -> tuple[int, int]:
    """Return what `burst_of` does, of the latest steps that no profiler made longer.

    Args:
        steps: All of them.
        most: Updates that a burst may have.
    """
    latest = list(islice(takewhile(lambda row: row[1] not in FILES, reversed(steps)), WAITING * TURNS * LONGEST))[::-1]
    working = burst_of([dur_ns if cpu_ns is None else min(dur_ns, cpu_ns) for *_, dur_ns, cpu_ns in latest], most)
    return working if working[0] else burst_of([row[3] for row in latest], most, WAITING)


def burst_of(step_ns: Sequence[int], most: int = LONGEST, times: int = 1) -> tuple[int, int]:
    """Return (updates of a burst, how many of the running one are over), or (0, 0) where updates come evenly.

    Args:
        step_ns: The latest durations from update to update, the latest last.
        most: Updates that a burst may have.
        times: How many times as many bursts have to be alike.
    """
    taken = step_ns[::-1]  # the latest first: a burst's length counts from there
    usual = sorted(taken)[len(taken) // 2] if taken else 0
    far_longer = {place for place, one in enumerate(taken) if one >= FAR_LONGER * usual}
    for length in range(2, min(most, len(taken) // (times * TURNS)) + 1):
        turns = times * max(TURNS, -(-LEAST_STEPS // length))
        for last in range(length if turns * length <= len(taken) else 0):
            begins = range(last, turns * length, length)
            if not far_longer.issuperset(begins):
                continue
            floor = min(taken[place] for place in begins)
            alike = sum(one >= floor for one in taken[: turns * length]) == turns
            if alike and floor >= WORTH_SHARE * (floor + usual * (length - 1)):
                return length, (last + 1) % length
    return 0, 0
