"""A program that draws from every source of random numbers, and prints all that follows from them."""

# ruff: noqa: NPY002  # numpy's global state is what could be disturbed

import hashlib
import random

import numpy as np
import torch
from torch import nn
from training import Numbers


class Noisy(Numbers):
    """Adds noise from each source of random numbers, in a worker."""

    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return x + random.random() + float(np.random.rand()) + torch.rand(()), y


def seed_worker(number):
    """Seed a worker's numpy, as torch's notes on reproducibility have it."""
    np.random.seed(torch.initial_seed() % 2**32 + number)


def main():
    """Train with dropout, shuffling, noise and generators of one's own, and print every loss and state to the bit."""
    random.seed(3)
    np.random.seed(4)
    torch.manual_seed(5)
    torch.use_deterministic_algorithms(True)
    shuffler, noise = torch.Generator().manual_seed(6), torch.Generator().manual_seed(7)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = torch.utils.data.DataLoader(
        Noisy(14), 4, shuffle=True, num_workers=2, worker_init_fn=seed_worker, generator=shuffler
    )
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            noisy = x + random.gauss(0, 1) + np.random.normal() + torch.randn(x.shape, generator=noise)
            loss = nn.functional.cross_entropy(model(noisy), y)
            loss.backward()
            optimizer.step()
            print(loss.item().hex())
    states = (torch.get_rng_state(), shuffler.get_state(), noise.get_state())
    for state in (*(one.numpy().tobytes() for one in states), repr(random.getstate()), repr(np.random.get_state())):
        print(hashlib.sha256(state if isinstance(state, bytes) else state.encode()).hexdigest())
    for one in model.state_dict().values():
        print(hashlib.sha256(one.numpy().tobytes()).hexdigest())


if __name__ == "__main__":
    main()
