"""Stages of a pipeline: the n-th message from one rank to another is the n-th that the other takes; who waited.

A receive waits until its message is sent. Clocks of two ranks are compared only as far as the messages themselves
allow: none arrives before it was sent, in either direction, which bounds how far one clock can be ahead of the other.
Waits are the shortest within these bounds. Axes: ranks × ranks.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from uncork.intervals import Intervals, intervals, total_ns, union
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.collectives import UNMATCHED, Collectives
from uncork.measure.matching import first_alike
from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]
_Rows = tuple[IntArray, IntArray]
"""Messages on the rank that sends them and on the one that takes them, side by side."""
_Waits = Mapping[tuple[int, int], tuple[Intervals, int]]
"""(who waits, for whom) → when, on the clock of the one who waits, and how many messages it took in steps."""


@dataclass(frozen=True, eq=False)
class Stages:
    """Ranks that exchange messages in both directions: a pipeline.

    Args:
        places: Places of its ranks among all, in order.
        wait_ns: How long each waits in receives for each other one, mean per step, int64 (ranks, ranks).
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


def pipelines(ranks: Ranks[Collectives], steps: Sequence[int]) -> list[Stages]:
    """Return the pipelines among the ranks; raises `MissingEvidence` where nothing shows who waits for whom.

    Args:
        ranks: What each rank sends and takes.
        steps: Steps of each rank's recording.
    """
    if not any(UNMATCHED & {*one.names} for one in ranks):
        return []
    if len(ranks) < 2:
        raise MissingEvidence("ranks")
    peers = {(one, other) for one, values in enumerate(ranks) for other in _places(values, ranks.numbers)}
    if not peers:
        raise MissingEvidence("peers")
    both = sorted((one, other) for one, other in peers if one < other and (other, one) in peers)
    ways = {pair: (_paired(ranks, *pair), _paired(ranks, *reversed(pair))) for pair in both}
    ways = {pair: (there, back) for pair, (there, back) in ways.items() if len(there[0]) and len(back[0])}
    waits: dict[tuple[int, int], tuple[Intervals, int]] = {}
    for pair, (there, back) in ways.items():
        waits |= _of_pair(ranks, pair, there, back)
    if ways and not waits:
        raise MissingEvidence("clocks")
    return [_stages(places, waits, steps) for places in _joined(waits)]


def _places(one: Collectives, numbers: Sequence[int]) -> list[int]:
    """Return the places of the ranks that a rank exchanges messages with."""
    return [numbers.index(int(peer)) for peer in np.unique(one.peer) if peer in numbers]


def _of_pair(ranks: Ranks[Collectives], pair: tuple[int, int], there: _Rows, back: _Rows) -> _Waits:
    """Return the waits of two ranks for each other; none where their clocks cannot be compared."""
    one, other = (ranks[place] for place in pair)
    # No message takes less than nothing: the quickest one each way bounds how far the taker's clock is ahead.
    quickest_there = int((_ends(other)[there[1]] - one.start_ns[there[0]]).min())
    quickest_back = int((_ends(one)[back[1]] - other.start_ns[back[0]]).min())
    if quickest_there + quickest_back < 0:
        return {}
    return {
        pair[::-1]: _waits(other, there[1], one.start_ns[there[0]] - quickest_back),
        pair: _waits(one, back[1], other.start_ns[back[0]] - quickest_there),
    }


def _paired(ranks: Ranks[Collectives], sender: int, taker: int) -> _Rows:
    """Return the messages from one rank to another."""
    gives, takes = ranks[sender], ranks[taker]
    sent = np.flatnonzero(gives.sent & (gives.peer == ranks.numbers[taker]))
    taken = np.flatnonzero(~takes.sent & (takes.peer == ranks.numbers[sender]))
    count = min(len(sent), len(taken))
    if count and len(sent) > count:
        sent = sent[first_alike(gives.start_ns[sent], _ends(takes)[taken]) :]
    elif count:
        taken = taken[first_alike(_ends(takes)[taken], gives.start_ns[sent]) :]
    return sent[:count], taken[:count]


def _ends(one: Collectives) -> IntArray:
    ends: IntArray = one.start_ns + one.dur_ns
    return ends


def _waits(one: Collectives, taken: IntArray, sent_ns: IntArray) -> tuple[Intervals, int]:
    """Return when a rank waits in receives within its steps, given when their messages were sent at the earliest."""
    inside = (one.step[taken] >= 0) | (one.step < 0).all()
    rows, sent_ns = taken[inside], sent_ns[inside]
    until = np.clip(sent_ns, one.start_ns[rows], _ends(one)[rows])
    # Of a receive that was asked for ahead, the part that nothing hides is the last one.
    start = np.maximum(one.start_ns[rows], until - one.exposed_ns[rows])
    return intervals(start, until), len(rows)


def _joined(waits: _Waits) -> list[tuple[int, ...]]:
    """Return the places that messages join, each group in order."""
    groups: list[set[int]] = []
    for pair in waits:
        apart = [group for group in groups if not group & {*pair}]
        groups = [*apart, {*pair}.union(*(group for group in groups if group & {*pair}))]
    return sorted(tuple(sorted(group)) for group in groups)


def _stages(places: tuple[int, ...], waits: _Waits, steps: Sequence[int]) -> Stages:
    """Return one pipeline's figures per step."""
    wait_ns = np.zeros((len(places), len(places)), np.int64)
    waited_ns = np.zeros(len(places), np.int64)
    messages = 1
    for row, waiter in enumerate(places):
        mine = {place: waits[waiter, place] for place in places if (waiter, place) in waits}
        for place, (when, taken) in mine.items():
            wait_ns[row, places.index(place)] = total_ns(when) // max(steps[waiter], 1)
            messages = max(messages, round(taken / max(steps[waiter], 1)))
        waited_ns[row] = total_ns(union(*(when for when, _ in mine.values()))) // max(steps[waiter], 1)
    return Stages(places, wait_ns, waited_ns, messages)
