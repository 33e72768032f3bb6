"""Learn how stiff the springs between masses are, moving one mass after the other: thousands of tiny operations."""

import sys

import torch

MASSES = 24
TIMES = 10
DT = 0.05
ROUNDS = 24


def simulate(stiffness, pulled):
    """Return where the masses are after some time, pulled to their first places."""
    places, speeds = list(pulled), [torch.zeros(()) for _ in pulled]
    for _ in range(TIMES):
        for mass in range(MASSES):
            left = places[mass - 1] if mass else torch.zeros(())
            right = places[mass + 1] if mass + 1 < MASSES else torch.zeros(())
            force = stiffness[mass] * (left - places[mass]) + stiffness[mass + 1] * (right - places[mass])
            speeds[mass] = speeds[mass] + DT * force
        places = [place + DT * speed for place, speed in zip(places, speeds, strict=True)]
    return torch.stack(places)


def learn(simulation):
    """Fit the stiffness by gradient descent through the simulation, without torch.optim."""
    torch.set_num_threads(1)  # single numbers cannot be shared out
    generator = torch.Generator().manual_seed(0)
    truth = 1 + torch.rand(MASSES + 1, generator=generator)
    stiffness = torch.ones(MASSES + 1, requires_grad=True)
    for _ in range(ROUNDS):
        pulled = torch.randn(MASSES, generator=generator)
        with torch.no_grad():
            seen = simulation(truth, pulled)
        loss = (simulation(stiffness, pulled) - seen).square().mean()
        loss.backward()
        with torch.no_grad():
            stiffness -= 2.0 * stiffness.grad
            stiffness.grad = None
    sys.stdout.write(f"mean error {(stiffness - truth).abs().mean().item():.3f}\n")


if __name__ == "__main__":
    learn(simulate)
