"""TotalAndSelf: the operators that lead the table by total time and by their own time."""

import numpy as np

from uncork.events import Kind
from uncork.intervals import covered_ns, intervals
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.operators import operator_class
from uncork.records import dataclass

_NO_OPERATORS = frozenset({"loader", "compile", "comm", "optimizer", "region"})
"""Regions and services that stand in the table beside operators."""


def _is_operator(name: str) -> bool:
    return operator_class(name) not in _NO_OPERATORS


@dataclass(frozen=True)
class TotalAndSelf(Measurement):
    """Time per step of two operators.

    Args:
        by_total: The operator with the largest time, its children's included.
        total_ns: That time.
        total_self_ns: Its own part of it, of the device where one works.
        by_self: The operator with the largest own time, of the device where one works, else of the host.
        self_ns: That time.
        inside_share: Share of the latter that lies within the former.
    """

    by_total: str
    total_ns: int
    total_self_ns: int
    by_self: str
    self_ns: int
    inside_share: float

    @classmethod
    def of(cls, rank: Rank) -> "TotalAndSelf":
        """Return the two leading operators of a rank."""
        timeline = rank.timeline
        host, table = timeline.host, timeline.events
        ops = np.flatnonzero((host.kind == Kind.CPU_OP) & timeline.in_steps)
        ops = ops[timeline.named(_is_operator, Kind.CPU_OP)[ops]]
        if not len(ops):
            raise MissingEvidence("host")
        names, back = table.distinct_names(host.row[ops])
        # On a device the work is what it runs: an operator's own time there is that of what it launched itself.
        own = rank.calltree.device_ns[ops]
        if not own.any():
            own = host.self_ns[ops]
        selves = np.bincount(back, own)
        # An operator inside one of the same name would count twice.
        name = host.name
        parent = host.parent[ops]
        outer = (parent < 0) | (name[np.maximum(parent, 0)] != name[ops])
        totals = np.bincount(back[outer], host.dur_ns[ops[outer]], minlength=len(names))
        most, mine = int(totals.argmax()), int(selves.argmax())
        spans = ops[back == most]
        cover = intervals(host.start_ns[spans], host.end_ns[spans])
        leaders = ops[back == mine]
        within = covered_ns(cover, host.start_ns[leaders], host.end_ns[leaders]) > 0
        within &= np.isin(host.track[leaders], host.track[spans])
        steps = max(len(timeline.steps), 1)
        return cls(
            by_total=table.strings.text(int(names[most])),
            total_ns=int(totals[most]) // steps,
            total_self_ns=int(selves[most]) // steps,
            by_self=table.strings.text(int(names[mine])),
            self_ns=int(selves[mine]) // steps,
            inside_share=float(own[back == mine][within].sum() / selves[mine]) if selves[mine] else 0.0,
        )
