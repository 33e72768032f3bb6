"""Threads: how many threads compute on the host, and how many cores there are for them."""

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.machine import Machine
from uncork.records import dataclass


@dataclass(frozen=True)
class Threads(Measurement):
    """Threads of the program that the recorder watched.

    Args:
        threads: Threads that one operator uses (``torch.get_num_threads()``).
        cores: Processor cores that the program may use.
        workers: Workers of the DataLoader, each with a thread of its own.
        ranks: Processes of the job, as far as known.
        variable: Value of OMP_NUM_THREADS, or empty.
    """

    threads: int
    cores: int
    workers: int
    ranks: int
    variable: str

    @classmethod
    def of(cls, rank: Rank) -> "Threads":
        """Return the threads of a rank; a trace alone does not say."""
        machine = rank.made(Machine)
        settings = rank.recording.run.settings if rank.recording.run else {}
        threads = settings.get("threads")
        if not isinstance(threads, int) or not machine.cores:
            raise MissingEvidence("settings")
        return cls(
            threads=threads,
            cores=machine.cores,
            workers=machine.num_workers or 0,
            ranks=rank.recording.world_size or 1,
            variable=str(settings.get("omp_num_threads") or ""),
        )
