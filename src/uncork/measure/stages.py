"""Stages of a pipeline: the n-th message from one rank to another is the n-th that the other takes; who waited.

A message passes when one rank sends it and the other takes it: the one that is there first waits. Clocks of two ranks
are compared only as far as the messages themselves allow: none arrives before it was sent, in either direction, which
bounds how far one clock can be ahead of the other. Waits are the shortest within these bounds. Axes: ranks × ranks.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from uncork.intervals import Intervals, intersect, intervals, subtract, total_ns, union
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.matching import first_alike
from uncork.measure.messages import Messages
from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]
_Rows = tuple[IntArray, IntArray]
"""Messages on the rank that sends them and on the one that takes them, side by side."""


@dataclass(frozen=True, eq=False)
class _Waits:
    """Waits of one rank for another, on its own clock.

    Args:
        taking: When it waits for what it takes.
        sending: When it waits until the other takes what it sends.
        taken: Messages that it took.
    """

    taking: Intervals
    sending: Intervals
    taken: int


@dataclass(frozen=True, eq=False)
class Stages:
    """Ranks that exchange messages in both directions: a pipeline.

    Args:
        places: Places of its ranks among all, in order.
        wait_ns: How long each waits for each other one, mean per step, int64 (ranks, ranks).
        waited_ns: The same for whomever; waits for two at once count once, int64 (ranks,).
        messages: How many a stage takes from one other per step, at most.
    """

    places: tuple[int, ...]
    wait_ns: IntArray
    waited_ns: IntArray
    messages: int

    @property
    def least_share(self) -> float:
        """Return the share of the step that stages of equal work wait: (p - 1) / (m + p - 1).

        GPipe (arXiv 1811.06965, section 2), and 1F1B alike, for p stages and m micro-batches of a message each.
        """
        return (len(self.places) - 1) / (self.messages + len(self.places) - 1)


def pipelines(ranks: Ranks[Messages], steps: Sequence[int]) -> list[Stages]:
    """Return the pipelines among the ranks; raises `MissingEvidence` where nothing shows who waits for whom.

    Args:
        ranks: What each rank sends and takes.
        steps: Steps of each rank's recording.
    """
    if not any(len(one) or one.unknown for one in ranks):
        return []
    if len(ranks) < 2:
        raise MissingEvidence("ranks")
    if any(one.unknown for one in ranks):  # else the n-th that is known would not be the n-th
        raise MissingEvidence("peers")
    peers = {(one, other) for one, values in enumerate(ranks) for other in _places(values, ranks.numbers)}
    both = sorted((one, other) for one, other in peers if one < other and (other, one) in peers)
    ways = {pair: (_paired(ranks, *pair), _paired(ranks, *reversed(pair))) for pair in both}
    ways = {pair: (there, back) for pair, (there, back) in ways.items() if len(there[0]) and len(back[0])}
    if not ways and any((~np.isin(one.peer, ranks.numbers)).any() for one in ranks):
        raise MissingEvidence("ranks")
    waits: dict[tuple[int, int], _Waits] = {}
    for pair, (there, back) in ways.items():
        waits |= _of_pair(ranks, pair, there, back)
    if ways and not waits:
        raise MissingEvidence("clocks")
    return [_stages(places, waits, steps) for places in _joined(waits)]


def without_partner(ranks: Ranks[Messages]) -> int:
    """Return how many messages have no partner in the recordings; none has where it is not known whom they are for."""
    every = sum(len(one) + one.unknown for one in ranks)
    if any(one.unknown for one in ranks):
        return every
    ways = ((one, other) for one, values in enumerate(ranks) for other in _places(values, ranks.numbers))
    return every - 2 * sum(len(_paired(ranks, one, other)[0]) for one, other in ways)


def _places(one: Messages, numbers: Sequence[int]) -> list[int]:
    """Return the places of the ranks that a rank exchanges messages with."""
    return [numbers.index(int(peer)) for peer in np.unique(one.peer) if peer in numbers]


def _of_pair(ranks: Ranks[Messages], pair: tuple[int, int], there: _Rows, back: _Rows) -> dict[tuple[int, int], _Waits]:
    """Return the waits of two ranks for each other; none where their clocks cannot be compared."""
    one, other = (ranks[place] for place in pair)
    # No message takes less than nothing: the quickest one each way bounds how far the taker's clock is ahead.
    quickest_there = int((other.end_ns[there[1]] - one.start_ns[there[0]]).min())
    quickest_back = int((one.end_ns[back[1]] - other.start_ns[back[0]]).min())
    if quickest_there + quickest_back < 0:
        return {}
    one_at, other_at = one.start_ns - quickest_back, other.start_ns - quickest_there
    return {
        pair: _Waits(
            _until(one, back[1], other_at[back[0]]),
            _until(one, there[0], other_at[there[1]]),
            int(one.inside[back[1]].sum()),
        ),
        pair[::-1]: _Waits(
            _until(other, there[1], one_at[there[0]]),
            _until(other, back[0], one_at[back[1]]),
            int(other.inside[there[1]].sum()),
        ),
    }


def _paired(ranks: Ranks[Messages], sender: int, taker: int) -> _Rows:
    """Return the messages from one rank to another."""
    gives, takes = ranks[sender], ranks[taker]
    sent = np.flatnonzero(gives.sent & (gives.peer == ranks.numbers[taker]))
    taken = np.flatnonzero(~takes.sent & (takes.peer == ranks.numbers[sender]))
    count = min(len(sent), len(taken))
    if count and len(sent) > count:
        sent = sent[first_alike(gives.start_ns[sent], takes.end_ns[taken]) :]
    elif count:
        taken = taken[first_alike(takes.end_ns[taken], gives.start_ns[sent]) :]
    return sent[:count], taken[:count]


def _until(one: Messages, rows: IntArray, there_ns: IntArray) -> Intervals:
    """Return when a rank's messages wait in its steps, given when the other rank is there at the earliest."""
    inside = one.inside[rows]
    rows, there_ns = rows[inside], there_ns[inside]
    return intersect(one.alone_ns, intervals(one.start_ns[rows], np.minimum(there_ns, one.end_ns[rows])))


def _joined(waits: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Return the places that messages join, each group in order."""
    groups: list[set[int]] = []
    for pair in waits:
        apart = [group for group in groups if not group & {*pair}]
        groups = [*apart, {*pair}.union(*(group for group in groups if group & {*pair}))]
    return sorted(tuple(sorted(group)) for group in groups)


def _stages(places: tuple[int, ...], waits: Mapping[tuple[int, int], _Waits], steps: Sequence[int]) -> Stages:
    """Return one pipeline's figures per step."""
    wait_ns = np.zeros((len(places), len(places)), np.int64)
    waited_ns = np.zeros(len(places), np.int64)
    messages = 1
    for row, waiter in enumerate(places):
        mine = {column: waits[waiter, place] for column, place in enumerate(places) if (waiter, place) in waits}
        taking = union(*(one.taking for one in mine.values()))
        # What was sent ahead may wait to be taken all along: it holds up nothing while its rank waits to take.
        when = {column: union(one.taking, subtract(one.sending, taking)) for column, one in mine.items()}
        for column, one in mine.items():
            wait_ns[row, column] = total_ns(when[column]) // max(steps[waiter], 1)
            messages = max(messages, round(one.taken / max(steps[waiter], 1)))
        waited_ns[row] = total_ns(union(*when.values())) // max(steps[waiter], 1)
    return Stages(places, wait_ns, waited_ns, messages)
