"""What the collectives of all ranks cost: by kind, and by who waited for whom; the report's ``comm`` section."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from uncork.measure import Measured, Ranks, present
from uncork.measure.collectives import Collectives, bus_factor
from uncork.measure.matching import Matched, match
from uncork.measure.messages import Messages
from uncork.measure.stages import without_partner
from uncork.measure.step_ledger import StepLedger
from uncork.measure.waiting import lateness
from uncork.quantiles import median

BoolArray = npt.NDArray[np.bool_]


def comm_summary(measured: Sequence[Measured], numbers: Sequence[int]) -> dict[str, Any] | None:
    """Return the section: kinds of collectives, and with several ranks their waiting; None without collectives.

    Args:
        measured: The measurements of each rank.
        numbers: The rank each belongs to.
    """
    found = [
        (number, one)
        for number, each in zip(numbers, measured, strict=True)
        if isinstance(one := each.get(Collectives), Collectives)
    ]
    if not found:
        return None
    ranks, values = [number for number, _ in found], [one for _, one in found]
    if len(found) == 1:
        # With one rank nobody can tell waiting from transfer.
        return {"ranks": ranks, "kinds": _kinds_of_one(values[0]), "transfer_known": False}
    matched = match(Ranks(values, ranks)).within_steps()
    ledgers = present(measured, StepLedger)
    steps = max((len(ledger.step_ns) for ledger in ledgers), default=1)
    late = lateness(matched, ranks, float(np.mean([ledger.waited_for_ns for ledger in ledgers])) if ledgers else 0.0)
    return {
        "ranks": ranks,
        "kinds": _kinds(matched, steps),
        "transfer_known": True,
        "matched": len(matched),
        "unmatched": matched.unmatched + without_partner(_messages(measured, numbers)),
        "late_ranks": sorted(late.ranks),
        "wait_share": late.wait_share,
        "by_rank": [
            {"rank": rank, "wait_ns": int(late.waited_ns[place]), "caused_share": float(late.caused_share[place])}
            for place, rank in enumerate(ranks)
        ],
    }


def _messages(measured: Sequence[Measured], numbers: Sequence[int]) -> Ranks[Messages]:
    """Return what the ranks send to one another."""
    found = {
        number: one
        for number, each in zip(numbers, measured, strict=True)
        if isinstance(one := each.get(Messages), Messages)
    }
    return Ranks(tuple(found.values()), tuple(found))


def _kinds_of_one(one: Collectives) -> list[Mapping[str, Any]]:
    """Return each kind's count and times per step on one rank, the longest first."""
    inside = one.step >= 0 if (one.step >= 0).any() else np.ones(len(one), bool)
    steps = max(len(np.unique(one.step[inside])), 1)
    rows = [
        {
            "name": name,
            "count": float(here.sum()) / steps,
            "bytes": _median(one.bytes[here]),
            "dur_ns": int(one.dur_ns[here].sum() / steps),
            "exposed_ns": int(one.exposed_ns[here].sum() / steps),
            "group_size": int(one.group_size[here].max(initial=0)) or None,
        }
        for code, name in enumerate(one.names)
        if (here := inside & (one.name == code)).any()
    ]
    return sorted(rows, key=lambda row: -int(row["dur_ns"]))


def _kinds(matched: Matched, steps: int) -> list[Mapping[str, Any]]:
    """Return each kind's count, times and bandwidth over ranks, the longest first."""
    names = np.array(matched.name)
    transfer, wait = matched.transfer_ns, matched.wait_ns.mean(axis=1) if len(matched) else np.empty(0)
    rows = []
    for name in dict.fromkeys(matched.name):
        here: BoolArray = names == name
        sized = here & (matched.bytes > 0) & (transfer > 0)
        rate = _median(matched.bytes[sized] / transfer[sized] * 1e9)
        size = int(matched.group_size[here].max())
        rows.append(
            {
                "name": name,
                "count": float(here.sum()) / steps,
                "bytes": _median(matched.bytes[here]),
                "dur_ns": int((transfer[here] + wait[here]).sum() / steps),
                "transfer_ns": int(transfer[here].sum() / steps),
                "wait_ns": int(wait[here].sum() / steps),
                "exposed_ns": int(matched.exposed_ns[here].mean(axis=1).sum() / steps),
                "group_size": size,
                "algorithm_bytes_per_s": rate,
                "bus_bytes_per_s": rate and round(rate * bus_factor(name, size)),
            }
        )
    return sorted(rows, key=lambda row: -int(row["dur_ns"]))


def _median(values: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> int | None:
    """Return the median of the positive values, None where there are none: not measured."""
    known = values[values > 0].astype(np.float64)
    return int(median(known)) if len(known) else None
