"""Several trainings in one process: prints how many steps the recorder saw of each kind, or trains some folds."""

import json
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

X, Y = torch.randn(32, 8), torch.randint(0, 3, (32,))
SET_UP_S = 0.3


def net():
    """Return a small model."""
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def train(model, optimizer, batches):
    """Make a step for each batch."""
    for x, y in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def folds(steps, batches, kinds=(torch.optim.Adam,), count=5, kept=None):
    """Train anew in each fold, and validate after it."""
    for fold in range(count):
        model = net()
        optimizer = kinds[fold % len(kinds)](model.parameters(), lr=0.01)
        if kept is not None:
            kept.append(optimizer)
        train(model, optimizer, batches(steps))
        with torch.no_grad():
            model(X)
    return count * steps


def tensors(steps):
    """Return batches that lie in memory."""
    return [(X[:4], Y[:4])] * steps


def loaded(steps):
    """Return batches of a loader."""
    return DataLoader(TensorDataset(X.repeat(20, 1)[: 4 * steps], Y.repeat(20)[: 4 * steps]), 4)


def gan(steps, count=3):
    """Train a critic and a generator in each fold, by optimisers of one kind."""
    for _ in range(count):
        first, second = net(), net()
        both = [torch.optim.RMSprop(one.parameters()) for one in (first, second)]
        for _ in range(steps):
            for model, optimizer in zip((first, second), both, strict=True):
                train(model, optimizer, tensors(1))
    return count * steps


def tasks(count=12):
    """Adapt to a task five times with an optimiser of its own, then learn from it: one step."""
    model = net()
    outer = torch.optim.Adam(model.parameters())
    for _ in range(count):
        train(model, torch.optim.SGD(model.parameters(), lr=0.01), tensors(5))
        train(model, outer, tensors(1))
    return count


KINDS = {
    "folds_of_40": lambda: folds(40, tensors),
    "folds_of_20": lambda: folds(20, tensors),
    "folds_of_5": lambda: folds(5, tensors),
    "folds_that_keep_their_optimizers": lambda: folds(20, tensors, kept=[]),
    "search_over_optimizers": lambda: folds(20, tensors, kinds=(torch.optim.Adam, torch.optim.SGD)),
    "folds_with_a_loader": lambda: folds(40, loaded),
    "folds_of_a_gan": lambda: gan(15),
    "a_task_is_a_step": tasks,
}


def set_up():
    """Take far longer than a step."""
    with torch.profiler.record_function("set_up"):
        time.sleep(SET_UP_S)


def slow_folds(steps):
    """Train folds with much to do between them."""
    for _ in range(5):
        model = net()
        optimizer = torch.optim.Adam(model.parameters())
        set_up()
        train(model, optimizer, tensors(steps))
        set_up()


def main():
    """Train folds of so many steps, or run every kind and print what was seen as JSON."""
    if len(sys.argv) > 1:
        slow_folds(int(sys.argv[1]))
        return
    from uncork.capture import inside

    seen = {}
    for name, kind in KINDS.items():
        inside.recorder.begin_anew()
        expected, finder = kind(), inside.recorder.finder
        seen[name] = [expected, finder.seen + finder.step_is_open, finder.rule, inside.recorder.journal.faults]
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main()
