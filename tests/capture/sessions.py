"""Recordings that a program begins itself, one after another; prints of each the steps, the rule, the optimiser."""

import gc
import json
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import uncork


def main():
    """Train before the first recording, in each, and between them."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters())

    def train(steps):
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()

    train(5)
    seen = []
    for steps in (60, 60, 3, 20):
        with uncork.record(tempfile.mkdtemp()) as run:
            train(steps)
        train(2)
        told = json.loads((Path(run.folder) / "rank0" / "recording.json").read_text(encoding="utf-8"))
        seen.append([told["steps_seen"], told["step_rule"], told["settings"]["optimizer"], told["faults"]])
    seen.append(len(gc.callbacks))
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main()
