"""Two ranks that the program starts itself, which join and leave their group inside the recording; prints who leads."""

import os
import sys

import torch
from torch import distributed, multiprocessing, nn

import uncork


def work(rank, folder, port):
    """Train as one of two ranks, which join before the recording where no folder is named."""
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    if not folder:
        distributed.init_process_group("gloo", rank=rank, world_size=2)
    with uncork.record(folder or None) as run:
        if folder:
            distributed.init_process_group("gloo", rank=rank, world_size=2)
        model = nn.parallel.DistributedDataParallel(nn.Linear(4, 4))
        optimizer = torch.optim.SGD(model.parameters())
        for _ in range(60):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        if folder:
            distributed.destroy_process_group()
    sys.stdout.write(f"{rank} {run.leads}\n")


if __name__ == "__main__":
    multiprocessing.spawn(work, tuple(sys.argv[1:]), 2)
