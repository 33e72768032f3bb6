"""Programs whose recording the tests look into: one per word on the command line."""

import mmap
import sys
import time

import torch
from torch import nn
from training import Numbers, train


def validating():
    """Train with a validation every few steps: its batches are no steps."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(12):
        for x, y in torch.utils.data.DataLoader(Numbers(2), 4):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            for x, _ in torch.utils.data.DataLoader(Numbers(3), 4):
                model(x)


def many_forwards():
    """Call the model twelve times for each update, and say how many there were."""
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    made = 0
    try:
        for _ in range(40):
            sum(model(torch.ones(4, 8)).sum() for _ in range(12)).backward()
            made += 1
            optimizer.step()
    finally:
        print("updates", made)


def ends_inside():
    """Make so many steps, then fail in the midst of another."""
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(int(sys.argv[2])):
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
    model(torch.ones(4, 8)).sum().backward()
    raise SystemExit(3)


def afterthought():
    """Train, and make one more step with an optimiser of its own at the end."""
    train(24)
    weight = torch.zeros(1, requires_grad=True)
    torch.optim.SGD([weight], lr=0.1).step()


def token_by_token():
    """Generate by hand: each forward is a step."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    x = torch.ones(1, 8)
    with torch.no_grad():
        for _ in range(300):
            x = model(x)


def in_bursts():
    """Play for a while, then update four times, as in reinforcement learning."""
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.ones(4, 8), torch.zeros(4, dtype=torch.long)
    for _ in range(40):
        time.sleep(0.04)
        for _ in range(4):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def files_limited():
    """Train where no file may grow beyond ten kilobytes, as on a disk that is full."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
    train(20)


def always_profiled():
    """Train with a profiler of one's own from begin to end."""
    with torch.autograd.profiler.profile():
        train(20)


def collecting():
    """Collect by hand in each step, with a callback and settings of one's own."""
    import gc

    heard = []
    gc.callbacks.append(lambda phase, about: heard.append((phase, about["generation"])))
    gc.disable()
    gc.freeze()
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in torch.utils.data.DataLoader(Numbers(40), 4):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        gc.collect()
    print(heard == 40 * [("start", 2), ("stop", 2)], gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 0)


def all_tiny():
    """Train so that the recorder, where there is one, takes every operator for a tiny one."""
    plan = sys.modules.get("uncork.capture.plan")
    if plan is not None:
        plan.TINY_EVENTS = plan.TINY_PER_NS = 0
    train(int(sys.argv[2]))


def chatty():
    """Make far more Python calls in a step than a deep window may hold."""

    def small(value):
        return value + 1

    class Busy(Numbers):
        def __getitem__(self, index):
            value = 0
            for _ in range(60_000):
                value = small(value)
            return super().__getitem__(index)

    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in torch.utils.data.DataLoader(Busy(20), 4):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def tensors():
    """Compute with tensors only: no module, no optimiser, no loader, no backward."""
    until = time.monotonic() + float(sys.argv[2])
    x = torch.randn(64)
    while time.monotonic() < until:
        for _ in range(50):
            x = (x * 1.0001 + 0.1).sin()


def endless():
    """Train until interrupted, and say so at the end."""
    try:
        train(1_000_000)
    finally:
        print("tidied up")


def compiled():
    """Count the graphs, breaks and recompilations of a compiled model."""
    import torch._dynamo
    from torch._dynamo.testing import CompileCounter

    torch.manual_seed(2)
    counter = CompileCounter()
    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(3)), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    fast = torch.compile(model, backend=counter)
    for x, y in torch.utils.data.DataLoader(Numbers(30), 4):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(fast(x), y)
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
    breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
    print(
        "graphs", counter.frame_count, "breaks", breaks, "recompiles", len(torch._dynamo.utils.counters["recompiles"])
    )


def huge_steps():
    """Make steps of half a million module calls each."""
    model = nn.Identity()
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(14):
        optimizer.zero_grad()
        total = weight * 1
        for _ in range(40_000):
            total = model(total) + 1
        total.sum().backward()
        optimizer.step()


def huge_silent_steps():
    """Make steps of three seconds each, of tensor code without a module."""
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for number in range(9):
        optimizer.zero_grad()
        until = time.monotonic() + (0.05 if number < 7 else 3.0)
        with torch.no_grad():
            x = torch.zeros(4)
            while time.monotonic() < until:
                for _ in range(500):
                    x = x + 1
        (weight * 2).sum().backward()
        optimizer.step()


def fresh_pages():
    """Take 4 MiB from the system in each step, touch each of its pages, and give it back."""
    weight = torch.ones(8, 8, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(24):
        optimizer.zero_grad()
        with mmap.mmap(-1, 4 << 20) as fresh:
            fresh[:: mmap.PAGESIZE] = bytes((4 << 20) // mmap.PAGESIZE)
        (weight @ weight).sum().backward()
        optimizer.step()


def two_models():
    """A generator and a discriminator with parts of the same names."""
    first = nn.Sequential(nn.Linear(8, 8), nn.ReLU())

    class Judge(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(8, 3))

        def forward(self, x):
            return self.layers(x)

    second = Judge()
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    for x, y in torch.utils.data.DataLoader(Numbers(20), 4):
        optimizer.zero_grad()
        nn.functional.cross_entropy(second(first(x)), y).backward()
        optimizer.step()


def counts_calls():
    """Count what a mode of the program's own is told of: torch's operators, and its functions."""
    from collections import Counter

    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    told = Counter()

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            told[str(func)] += 1
            return func(*args, **(kwargs or {}))

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            told[getattr(func, "__name__", str(func))] += 1
            return func(*args, **(kwargs or {}))

    with Operators(), Functions():
        train(24)
    del told["__get__"]  # torch's own profiler reads gradients where it records stacks
    print(sorted(told.items()))


def calls_itself():
    """Call a module from within itself so often that Python's limit is not far."""

    class Itself(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x, depth):
            return torch.tanh(self.layer(x)) if depth == 0 else self(torch.tanh(self.layer(x)), depth - 1)

    torch.manual_seed(0)
    model = Itself()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4), 180).sum()
        loss.backward()
        optimizer.step()
    print(loss.item().hex())


def without_values():
    """Train on the meta device, to see what would fit: no parameter has values, some are in no optimiser."""
    held, unheld = nn.Linear(8, 8, device="meta"), nn.Linear(8, 8, device="meta")
    optimizer = torch.optim.SGD(held.parameters(), lr=0.1, foreach=False)
    model = nn.Sequential(held, unheld)
    for _ in range(40):
        model(torch.ones(4, 8, device="meta")).sum().backward()
        optimizer.step()
    print("no values", unheld.weight.grad.is_meta)


def compiled_update():
    """Call an optimiser's step through torch.compile, which takes each frame below it, too."""
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = torch.compile(optimizer.step, backend="eager")
    for _ in range(24):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).sum()
        loss.backward()
        step()
    print(loss.item().hex())


class Plain(torch.optim.Optimizer):
    """An optimiser of the program's main file, which cloudpickle writes out in full."""

    def __init__(self, params):
        super().__init__(params, {})

    def step(self, closure=None):
        """Update nothing."""


def by_value():
    """Take the step of a class of one's own apart as cloudpickle does, part by part, and step with what comes of it."""
    import inspect
    import pickle
    import types

    def copied(value):
        if not isinstance(value, types.FunctionType) or value.__module__ != "__main__":
            return pickle.loads(pickle.dumps(value))
        cells = tuple(types.CellType(copied(cell.cell_contents)) for cell in value.__closure__ or ())
        copy = types.FunctionType(value.__code__, value.__globals__, None, value.__defaults__, cells)
        copy.__dict__.update({name: copied(one) for name, one in vars(value).items()})
        return copy

    optimizer = Plain(nn.Linear(2, 2).parameters())
    step = Plain.step
    print(copied(step)(optimizer), step.__qualname__, inspect.isfunction(step), hasattr(optimizer.step, "__code__"))


class Descent(Plain):
    """An optimiser that torch.compile takes whole."""

    @torch.no_grad()
    def step(self):
        """Go down the gradients."""
        for group in self.param_groups:
            for one in group["params"]:
                one.sub_(one.grad)


def compiled_step():
    """Compile a whole step, and an optimiser without a break; count the graphs and the breaks of each."""
    import torch._dynamo
    from torch._dynamo.testing import CompileCounter

    torch.manual_seed(2)
    counter = CompileCounter()
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(inputs):
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    train = torch.compile(train, backend=counter)
    for _ in range(40):
        loss = train(torch.randn(2, 4))
    breaks = torch._dynamo.utils.counters["graph_break"]
    print(loss.item().hex(), counter.frame_count, len(breaks))
    descent = Descent(model.parameters())
    model(torch.ones(2, 4)).sum().backward()

    def update():
        descent.step()

    torch.compile(update, backend=counter, fullgraph=True)()
    print(counter.frame_count)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
