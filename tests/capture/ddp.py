"""Data-parallel training over gloo, started by a launcher; prints each rank's last loss.

The argument says how it goes wrong (``raise``, ``SIGKILL``: on rank 1, after thirty steps), or who started it:
``mpi:PORT``, ``spawn:PORT`` (it starts both ranks itself).
"""

import os
import signal
import sys

import torch
from torch import distributed, multiprocessing, nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

HOW, _, PORT = (sys.argv[1] if len(sys.argv) > 1 else "").partition(":")


def main(rank=None):
    """Train."""
    place = {}
    if PORT:
        rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", rank))
        place = {"rank": rank, "world_size": 2, "init_method": f"tcp://127.0.0.1:{PORT}"}
    distributed.init_process_group("gloo", **place)
    torch.manual_seed(3)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(240, 8), torch.randint(0, 3, (240,)))
    loader = DataLoader(data, 4, sampler=DistributedSampler(data))
    for number, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if number == 26 and distributed.get_rank() == 1 and HOW == "raise":
            raise ValueError("rank 1 is out")
        if number == 26 and distributed.get_rank() == 1 and HOW == "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
    sys.stdout.write(f"rank {distributed.get_rank()} {loss.item().hex()}\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    if HOW == "spawn":
        multiprocessing.spawn(main, nprocs=2)
    else:
        main()
