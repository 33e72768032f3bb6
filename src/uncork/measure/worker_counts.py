"""WorkerCounts: loader workers against the cores of the machine."""

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.loader import loads_nothing
from uncork.measure.machine import Machine
from uncork.records import dataclass


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
        machine = rank.made(Machine)
        workers = machine.num_workers
        if workers is None:
            workers = 0 if loads_nothing(rank) else None
        missing = [name for name, value in (("settings", workers), ("cores", machine.cores)) if value is None]
        if missing and workers != 0:
            raise MissingEvidence(*missing)
        return cls(workers or 0, machine.cores or 0)
