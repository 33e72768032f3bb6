"""LoaderStages: what the recorder timed inside the DataLoader, in the main process and in each worker."""

import numpy as np

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.loader import loads_nothing
from uncork.recording import SpanTable
from uncork.records import dataclass


@dataclass(frozen=True)
class Worker:
    """One DataLoader worker (or the main process, number -1), by the recorder's spans.

    Args:
        number: The worker's number.
        batches: Batches it made.
        fetch_ns: Mean time for the items of a batch.
        collate_ns: Mean time to put a batch together.
        serialise_ns: Mean time to hand a batch over.
        idle_ns: Mean time it waits for an order, per batch.
        awake_share: Share of its work in which it runs, else it waits for a disk or a network. Waits for a core are
            left out: with enough cores there are none. None where the system does not count that.
    """

    number: int
    batches: int
    fetch_ns: int
    collate_ns: int
    serialise_ns: int
    idle_ns: int
    awake_share: float | None = None

    @property
    def busy_ns(self) -> int:
        """Return its work per batch."""
        return self.fetch_ns + self.collate_ns + self.serialise_ns

    @property
    def idle_share(self) -> float:
        """Return the share of its time in which it has nothing to do."""
        whole = self.busy_ns + self.idle_ns
        return self.idle_ns / whole if whole else 0.0


@dataclass(frozen=True)
class LoaderStages(Measurement):
    """The stages of loading, where ``uncork run`` recorded them.

    Args:
        makers: Who made batches: the workers, or the main process alone.
        batches: Batches that the main process asked for.
        wait_ns: Mean wait for a batch in the main process.
        startup_ns: Time of each start of the workers, the wait for their first batch included.
        deserialise_ns: Mean time per batch to take it over.
        pin_ns: Mean time per batch to pin it.
        empty_share: Share of the requests that found no batch ready, or None with no workers.
    """

    makers: tuple[Worker, ...]
    batches: int
    wait_ns: int
    startup_ns: tuple[int, ...]
    deserialise_ns: int
    pin_ns: int
    empty_share: float | None

    @classmethod
    def of(cls, rank: Rank) -> "LoaderStages":
        """Return the stages of a rank; only a run folder holds them."""
        spans = rank.recording.loader
        if spans is None or not len(spans.stage):
            if loads_nothing(rank):
                return cls((), 0, 0, (), 0, 0, None)
            raise MissingEvidence("loader_stages")
        numbers = sorted({int(one) for one in spans.worker[_at(spans, "fetch")]})
        asked = _at(spans, "next")
        with_workers = any(number >= 0 for number in numbers)
        ready = spans.value[asked]
        return cls(
            makers=tuple(_worker(spans, number) for number in numbers),
            batches=int(asked.sum()),
            wait_ns=_mean(spans, "next"),
            startup_ns=_startups(spans),
            deserialise_ns=_mean(spans, "deserialise"),
            pin_ns=_mean(spans, "pin"),
            empty_share=float((ready == 0).mean()) if with_workers and len(ready) else None,
        )

    @property
    def workers(self) -> int:
        """Return how many workers made batches; 0 where the main process loads."""
        return sum(maker.number >= 0 for maker in self.makers)

    def mean_ns(self, field: str) -> int:
        """Return the mean per batch of one of the makers' figures."""
        batches = sum(maker.batches for maker in self.makers)
        return sum(int(getattr(maker, field)) * maker.batches for maker in self.makers) // batches if batches else 0

    @property
    def handover_share(self) -> float:
        """Return the share of the wait in which a batch that is ready is taken over and pinned."""
        return min((self.deserialise_ns + self.pin_ns) / self.wait_ns, 1.0) if self.wait_ns else 0.0

    @property
    def making_share(self) -> float:
        """Return the most of the wait that can be making batches: what the makers work for one, side by side.

        What is spent on taking a batch over is not making it.
        """
        if not self.wait_ns or not self.workers:
            return 1.0
        return min(self.mean_ns("busy_ns") / self.workers / self.wait_ns, 1.0 - self.handover_share)

    @property
    def busiest_share(self) -> float:
        """Return the share of its time that the makers work, on the mean."""
        return 1.0 - sum(maker.idle_share for maker in self.makers) / len(self.makers) if self.makers else 0.0

    @property
    def awake_share(self) -> float | None:
        """Return the share of the workers' work in which they need a core, on the mean; None where unknown."""
        shares = [maker.awake_share for maker in self.makers if maker.awake_share is not None]
        return sum(shares) / len(shares) if shares and len(shares) == len(self.makers) else None

    @property
    def cores_wanted(self) -> float | None:
        """Return how many cores the workers would use at once, were there enough; None where unknown."""
        awake = self.awake_share
        return None if awake is None else awake * self.busiest_share * len(self.makers)


def _at(spans: SpanTable, stage: str, worker: int | None = None) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    if stage not in spans.stages:
        return np.zeros(len(spans.stage), bool)
    fits = spans.stage == spans.stages.index(stage)
    if worker is not None:
        fits &= spans.worker == worker
    return np.asarray(fits, bool)


def _startups(spans: SpanTable) -> tuple[int, ...]:
    """Return the time of each start of workers until their first batch is there."""
    starts, asked = np.flatnonzero(_at(spans, "startup")), np.flatnonzero(_at(spans, "next"))
    asked = asked[np.argsort(spans.start_ns[asked], kind="stable")]
    first = np.searchsorted(spans.start_ns[asked], spans.start_ns[starts] + spans.dur_ns[starts])
    waits = np.append(spans.dur_ns[asked], 0)[first]
    return tuple(int(one) for one in spans.dur_ns[starts] + waits)


def _mean(spans: SpanTable, stage: str, worker: int | None = None) -> int:
    durations = spans.dur_ns[_at(spans, stage, worker)]
    return int(durations.mean()) if len(durations) else 0


def _worker(spans: SpanTable, number: int) -> Worker:
    return Worker(
        number=number,
        batches=int(_at(spans, "fetch", number).sum()),
        fetch_ns=_mean(spans, "fetch", number),
        collate_ns=_mean(spans, "collate", number),
        serialise_ns=_mean(spans, "serialise", number),
        idle_ns=_mean(spans, "idle", number),
        awake_share=_awake_share(spans, number),
    )


def _awake_share(spans: SpanTable, number: int) -> float | None:
    ran, worked = _at(spans, "ran", number), _at(spans, "fetch", number) | _at(spans, "collate", number)
    worked_ns = int(spans.dur_ns[worked].sum())
    if not ran.any() or not worked_ns or (spans.value[ran] < 0).any():
        return None
    ran_ns, queued_ns = int(spans.dur_ns[ran].sum()), int(spans.value[ran].sum())
    return min(ran_ns / max(worked_ns - queued_ns, ran_ns, 1), 1.0)
