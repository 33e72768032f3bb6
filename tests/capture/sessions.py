"""Recordings that a program begins itself, one after another; prints of each the steps, the rule, the optimiser."""

import gc
import json
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import uncork


def nested(train):
    """Record inside a recording; return the steps, whether the inner one is its own, and what it left elsewhere."""
    with tempfile.TemporaryDirectory() as folder, uncork.record(Path(folder) / "outer") as outer:
        train(20)
        with uncork.record(Path(folder) / "inner") as inner:
            train(20)
        train(20)
        outer.__exit__()
        told = json.loads((outer.folder / "rank0" / "recording.json").read_text(encoding="utf-8"))
        return [told["steps_seen"], inner.is_own, inner.folder == outer.folder, len(list(Path(folder).iterdir()))]


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
    seen.append(nested(train))
    seen.append(len(gc.callbacks))
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main()
