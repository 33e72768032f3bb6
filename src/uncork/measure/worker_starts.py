"""WorkerStarts: how often loader workers are started, and what each start costs."""

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.loader import LoaderWait
from uncork.measure.loader_stages import LoaderStages
from uncork.records import dataclass


@dataclass(frozen=True)
class WorkerStarts(Measurement):
    """Starts of workers while the recording watched.

    Args:
        starts: Their number.
        again_ns: Time per step that starts after the program's first take from the main process; a single start that a
            trace happens to hold counts, as it most likely is not the program's first.
        start_ns: Mean time of one start.
    """

    starts: int
    again_ns: int
    start_ns: int

    @classmethod
    def of(cls, rank: Rank) -> "WorkerStarts":
        """Return the starts of a rank; a trace shows them only where an epoch begins in it."""
        try:
            stages = rank.made(LoaderStages)
        except MissingEvidence:
            return cls._of_trace(rank)
        times = stages.startup_ns
        # The main process asks once more in each epoch, and learns that it is over.
        made = sum(maker.batches for maker in stages.makers) or stages.batches
        again = sum(times[1:]) // made if made else 0
        return cls(len(times), again, sum(times) // len(times) if times else 0)

    @classmethod
    def _of_trace(cls, rank: Rank) -> "WorkerStarts":
        wait = rank.made(LoaderWait)
        if wait.iterator != "multi":
            return cls(0, 0, 0)
        if not wait.starts:
            raise MissingEvidence("epoch")
        steps = max(len(wait.wait_ns), 1)
        mean = wait.start_ns // wait.starts
        return cls(wait.starts, mean * max(wait.starts - 1, 1) // steps, mean)
