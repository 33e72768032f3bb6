"""Two gloo ranks that pass messages: within a step (``within``), or received two steps after they were asked for."""

import sys

import torch
from torch import distributed, nn


def main():
    """Make thirty steps and let rank 0 say the sum of what came."""
    distributed.init_process_group("gloo")
    rank, ahead = distributed.get_rank(), 0 if sys.argv[1] == "within" else 2
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    waiting, total = [], 0.0
    for step in range(30):
        model(torch.ones(4, 8)).sum().backward()
        if rank == 0:
            came = torch.zeros(4)
            waiting.append((distributed.irecv(came, 1), came))
            if len(waiting) > ahead:
                work, came = waiting.pop(0)
                work.wait()
                total += came.sum().item()
        elif step >= ahead:
            distributed.send(torch.full((4,), float(step)), 0)
        optimizer.step()
    for _ in range(ahead if rank else 0):
        distributed.send(torch.zeros(4), 0)
    for work, _ in waiting:
        work.wait()
    if rank == 0:
        print(total)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
