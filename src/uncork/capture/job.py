"""Job: this process's place among the ranks that a launcher started, from the environment that it set."""

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from uncork.capture.files import told
from uncork.records import dataclass

# Rank, number of ranks, rank on this host, name of the job. torchrun, accelerate and deepspeed set the first line.
LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_NAMESPACE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", ""),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_JOB_ID"),
)
OTHER_RANKS_S = 30.0
"""Time to wait for the recordings of the other ranks of a launcher's job."""
ABSENT_RANKS_S = 3.0
"""Time for a rank's folder to appear: it begins with the first step, and is seen late over a network at most. Ranks on
other hosts may write elsewhere, and would otherwise hold up the end of each job."""
TORCH_STARTERS = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
STARTERS = frozenset((*TORCH_STARTERS, "accelerate", "deepspeed", "mpirun", "mpiexec", "srun"))


@dataclass(frozen=True)
class Job:
    """A place among ranks.

    Args:
        rank: This process's rank; 0 where no launcher started it.
        world: Number of ranks.
        leads_host: The first rank on its host.
        name: The same for all ranks of a job on a host, and no file name's trouble; empty without a launcher.
    """

    rank: int = 0
    world: int = 1
    leads_host: bool = True
    name: str = ""

    @property
    def launched(self) -> bool:
        """Return whether a launcher started this process as one of its ranks."""
        return bool(self.name)


def this_job() -> Job:
    """Return this process's place, as the first launcher tells it whose variables are there."""
    for rank, world, local, name in LAUNCHERS:
        number, size = _number(rank), _number(world)
        # torchrun's variables count for one rank too; others are set for every program that is not launched as ranks.
        if number is None or (rank != "RANK" and (size or 1) < 2):
            continue
        given = os.environ.get(name, "")
        word = given if given not in ("", "none") else f"{os.getppid()}"
        return Job(number, size or 1, (_number(local) or 0) == 0, re.sub(r"[^\w.-]+", "-", word))
    return Job()


def job_of(argv: Sequence[str]) -> Job:
    """Return the place of the program that a command line starts; a launcher below us gives out ranks of its own."""
    return Job() if any(Path(word).name in STARTERS for word in argv[:4]) else this_job()


def wait_for_ranks(folder: Path, world: int) -> None:
    """Give the other ranks of a job time to write their recordings; the first rank's process makes the report."""
    began = time.monotonic()
    while (waited := time.monotonic() - began) < OTHER_RANKS_S:
        homes = list(folder.glob("rank[0-9]*"))
        are_all = len(homes) >= world or waited >= ABSENT_RANKS_S
        if are_all and all(told(home).get("ended") for home in homes):
            return
        time.sleep(0.2)


def _number(name: str) -> int | None:
    """Return a number of the environment, None where it is missing, or a word that another tool put there."""
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() else None
