"""WorkerCounts: loader workers against the cores of the machine."""

from dataclasses import dataclass

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.machine import Machine


@dataclass(frozen=True)
class WorkerCounts(Measurement):
    """Workers and cores.

    Args:
        workers: Loader workers of this rank.
        cores: Cores the program may use; its ranks share them.
    """

    workers: int
    cores: int

    @classmethod
    def of(cls, rank: Rank) -> "WorkerCounts":
        """Return both for a rank; only what recorded the program knows them."""
        machine = Machine.of(rank)
        workers = machine.num_workers
        if workers is None:
            workers = LoaderStages.of(rank).workers
        if machine.cores is None and workers:
            raise MissingEvidence("cores")
        return cls(workers, machine.cores or 0)
