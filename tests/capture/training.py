"""A small training program with every way to end: run under the recorder and plainly by the tests."""

import os
import signal
import sys
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    """Items made from their index."""

    def __init__(self, batches, cost_s=0.0):
        self.batches, self.cost_s = batches, cost_s

    def __len__(self):
        return 4 * self.batches

    def __getitem__(self, index):
        until = time.perf_counter() + self.cost_s
        while time.perf_counter() < until:
            sum(range(2000))
        return torch.full((8,), float(index)) / 100, index % 3


class Broken(Dataset):
    """Has an item that cannot be read."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        raise ValueError(f"item {index} is broken")


def train(batches=20, workers=0, cost_s=0.0, start=None):
    """Train and print every loss in full."""
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = DataLoader(
        Numbers(batches, cost_s),
        4,
        shuffle=True,
        num_workers=workers,
        multiprocessing_context=start if workers else None,
    )
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
    print("random afterwards", torch.rand(()).item().hex())


def fail_in_forward():
    """Raise inside a module that is called by another."""

    class Wrong(nn.Module):
        def forward(self, x):
            return nn.functional.linear(x, torch.zeros(2, 2))

    nn.Sequential(nn.Identity(), Wrong())(torch.zeros(1, 3))


def main(way, *rest):
    """Train, then end in the way asked for."""
    if way == "thread":
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        return
    if way == "thread-error":
        thread = threading.Thread(target=fail_in_forward)
        thread.start()
        thread.join()
        return
    if way == "forward-error":
        fail_in_forward()
    if way == "worker-error":
        next(iter(DataLoader(Broken(), 2, num_workers=1)))
    if way == "loader":
        train(int(rest[0]), int(rest[1]), float(rest[2]), rest[3])
        return
    if way == "fork":
        pid = os.fork()
        if pid == 0:
            train()
            os._exit(0)
        os.waitpid(pid, 0)
        return
    if way in ("mp-fork", "mp-spawn"):
        context = torch.multiprocessing.get_context(way[3:])
        child = context.Process(target=train)
        child.start()
        child.join()
        return
    train()
    sys.stdout.flush()
    endings(way)


def endings(way):
    """End in the way asked for."""
    if way == "exception":
        raise ValueError("the program's own error")
    if way == "exit-3":
        sys.exit(3)
    if way == "exit-text":
        sys.exit("a last word")
    if way == "interrupt":
        raise KeyboardInterrupt
    if way == "fork-exit":
        pid = os.fork()
        sys.exit(3 if pid == 0 else os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    if way == "os-exit":
        os._exit(7)
    if way in ("SIGTERM", "SIGKILL", "SIGSEGV", "SIGABRT"):
        os.kill(os.getpid(), getattr(signal, way))
        time.sleep(5)
    if way == "exec":
        os.execv(sys.executable, [sys.executable, "-c", "print('another program'); raise SystemExit(5)"])


if __name__ == "__main__":
    main(*sys.argv[1:])
