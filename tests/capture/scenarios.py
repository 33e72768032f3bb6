"""Loops as people write them, one after another in one process; prints how many steps the recorder saw in each."""

import json
import sys
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

X, Y = torch.randn(32, 8), torch.randint(0, 3, (32,))
LOSS = nn.functional.cross_entropy


def net():
    """Return a small model."""
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def loader(batches=8, size=4, **more):
    """Return a loader of so many batches."""
    return DataLoader(TensorDataset(X.repeat(8, 1)[: batches * size], Y.repeat(8)[: batches * size]), size, **more)


def sgd(model):
    """Return an optimiser of a model."""
    return torch.optim.SGD(model.parameters(), lr=0.01)


def one_update(model, optimizer, x=X[:4], y=Y[:4]):
    """Make one plain step."""
    optimizer.zero_grad()
    LOSS(model(x), y).backward()
    optimizer.step()


def plain_loader():
    """The loop of every tutorial."""
    model = net()
    optimizer = sgd(model)
    for x, y in loader():
        one_update(model, optimizer, x, y)
    return 8


def plain_no_loader():
    """A loop over tensors in memory."""
    model = net()
    optimizer = sgd(model)
    for _ in range(8):
        one_update(model, optimizer)
    return 8


def accumulation(source, passes=4):
    """Some backward passes per update."""
    model = net()
    optimizer = sgd(model)
    for number, (x, y) in enumerate(source):
        LOSS(model(x), y).backward()
        if number % passes == passes - 1:
            optimizer.step()
            optimizer.zero_grad()
    return 4


def accumulation_loader():
    """Accumulation over a loader."""
    return accumulation(loader(16))


def accumulation_no_loader():
    """Accumulation over tensors."""
    return accumulation([(X[:4], Y[:4])] * 16)


def many_micro_batches_loader():
    """More backward passes per update than a program without torch.optim is given."""
    return accumulation(loader(128, 1), 32)


def many_micro_batches_no_loader():
    """The same over tensors."""
    return accumulation([(X[:4], Y[:4])] * 128, 32)


def gan(source, critic=1):
    """A discriminator's and a generator's update in turn."""
    generator, discriminator = nn.Linear(4, 8), nn.Linear(8, 1)
    first, second = sgd(discriminator), sgd(generator)
    for x, _ in source:
        for _ in range(critic):
            first.zero_grad()
            (discriminator(generator(torch.randn(4, 4))).mean() - discriminator(x).mean()).backward()
            first.step()
        second.zero_grad()
        discriminator(generator(torch.randn(4, 4))).mean().backward()
        second.step()


def gan_loader():
    """A GAN with a batch for both updates."""
    gan(loader())
    return 8


def gan_no_loader():
    """A GAN without a loader."""
    gan([(X[:4], None)] * 8)
    return 8


def wgan_no_loader():
    """Five critic updates per generator update, without a loader."""
    gan([(X[:4], None)] * 6, critic=5)
    return 6


def two_optimizers():
    """Two optimisers back to back."""
    model = net()
    first, second = sgd(model[0]), torch.optim.Adam(model[2].parameters())
    for _ in range(8):
        first.zero_grad()
        second.zero_grad()
        LOSS(model(X[:4]), Y[:4]).backward()
        first.step()
        second.step()
    return 8


def lbfgs():
    """An optimiser that calls a closure twenty times an update."""
    model = net()
    optimizer = torch.optim.LBFGS(model.parameters(), tolerance_grad=0, tolerance_change=0)

    def closure():
        optimizer.zero_grad()
        loss = LOSS(model(X), Y)
        loss.backward()
        return loss

    for _ in range(5):
        optimizer.step(closure)
    return 5


def traced_module():
    """A model that is traced first: nothing of ours may count in its graph, and torch warn of that."""
    model = net()
    with warnings.catch_warnings():
        warnings.simplefilter("error", torch.jit.TracerWarning)
        torch.jit.trace(model, X[:4])
    optimizer = sgd(model)
    for _ in range(5):
        optimizer.zero_grad()
        LOSS(model(X[:4]), Y[:4]).backward()
        optimizer.step()
    return 5


def scaler():
    """A gradient scaler that skips three of eight updates for infinite gradients."""
    model = net()
    optimizer = sgd(model)
    scale = torch.amp.GradScaler("cpu")
    for number in range(8):
        optimizer.zero_grad()
        loss = LOSS(model(X[:4]), Y[:4])
        if number in (2, 3, 6):
            loss = loss * float("inf")
        scale.scale(loss).backward()
        scale.step(optimizer)
        scale.update()
    return 8


def optimizer_in_backward():
    """One optimiser per parameter, each stepping inside backward."""
    model = net()
    optimizers = {p: torch.optim.SGD([p], lr=0.01) for p in model.parameters()}

    def hook(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(hook)
    for _ in range(6):
        LOSS(model(X[:4]), Y[:4]).backward()
    return 6


def validation_per_epoch():
    """Two epochs of eight steps, a validation after each."""
    model = net()
    optimizer = sgd(model)
    for _ in range(2):
        for x, y in loader():
            one_update(model, optimizer, x, y)
        with torch.no_grad():
            for x, _ in loader(4):
                model(x)
    return 16


def sanity_check_first():
    """A short validation before training, as Lightning makes."""
    model = net()
    optimizer = sgd(model)
    with torch.no_grad():
        for x, _ in loader(4):
            model(x)
    for x, y in loader():
        one_update(model, optimizer, x, y)
    return 8


def exceptions_in_forward():
    """Forwards that raise and are caught."""

    class Moody(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.calls = net(), 0

        def forward(self, x):
            self.calls += 1
            if self.calls % 3 == 0:
                raise RuntimeError("bad batch")
            return self.inner(x)

    model = Moody()
    optimizer = sgd(model)
    for _ in range(9):
        try:
            one_update(model, optimizer)
        except RuntimeError:
            continue
    return 6


def compiled_module():
    """A compiled model (without code generation)."""
    model = net()
    optimizer = sgd(model)
    fast = torch.compile(model, backend="eager")
    for x, y in loader():
        one_update(fast, optimizer, x, y)
    return 8


def compiled_step():
    """A compiled optimiser step."""
    model = net()
    optimizer = sgd(model)
    step = torch.compile(optimizer.step, backend="eager")
    for _ in range(8):
        optimizer.zero_grad()
        LOSS(model(X[:4]), Y[:4]).backward()
        step()
    return 8


def inference_loader():
    """Inference over a loader."""
    model = net().eval()
    with torch.no_grad():
        for x, _ in loader():
            model(x)
    return 8


def inference_bare():
    """Inference over tensors: nine forwards, of which the last has no end."""
    model = net().eval()
    with torch.no_grad():
        for _ in range(9):
            model(X[:4])
    return 8


def updates_by_hand():
    """Gradient descent without torch.optim."""
    weight = torch.zeros(8, 3, requires_grad=True)
    for _ in range(8):
        LOSS(X @ weight, Y).backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad = None
    return 8


def one_batch_over_and_over():
    """One batch from a loader, then twenty updates on it."""
    model = net()
    optimizer = sgd(model)
    x, y = next(iter(loader()))
    for _ in range(20):
        one_update(model, optimizer, x, y)
    return 20


def iterable_dataset():
    """A loader without a length."""

    class Stream(IterableDataset):
        def __iter__(self):
            return iter(list(zip(X, Y, strict=True)) * 1)

    model = net()
    optimizer = sgd(model)
    for x, y in DataLoader(Stream(), 4):
        one_update(model, optimizer, x, y)
    return 8


def break_out():
    """A loop that leaves its loader in the middle: the last step has no next fetch."""
    model = net()
    optimizer = sgd(model)
    for number, (x, y) in enumerate(loader()):
        one_update(model, optimizer, x, y)
        if number == 5:
            break
    return 6


def marked():
    """A loop whose program marks the steps itself."""
    import uncork

    model = net()
    optimizer = sgd(model)
    for number in range(12):
        one_update(model, optimizer)
        if number % 2:
            uncork.step()
    return 5


SCENARIOS = [
    plain_loader,
    plain_no_loader,
    accumulation_loader,
    accumulation_no_loader,
    many_micro_batches_loader,
    many_micro_batches_no_loader,
    gan_loader,
    gan_no_loader,
    wgan_no_loader,
    two_optimizers,
    lbfgs,
    traced_module,
    scaler,
    optimizer_in_backward,
    validation_per_epoch,
    sanity_check_first,
    exceptions_in_forward,
    compiled_module,
    compiled_step,
    inference_loader,
    inference_bare,
    updates_by_hand,
    one_batch_over_and_over,
    iterable_dataset,
    break_out,
    marked,
]


def main():
    """Run all scenarios and print what was seen as JSON."""
    from uncork.capture import inside

    warnings.simplefilter("ignore")
    seen = {}
    for scenario in SCENARIOS:
        inside.recorder.begin_anew()
        try:
            expected = scenario()
        except RuntimeError as refused:
            if "not supported on Python" not in str(refused):
                raise
            continue  # an older torch has no compiler for this Python
        finder = inside.recorder.finder
        seen[scenario.__name__] = [
            expected,
            finder.seen + finder.step_is_open,
            finder.rule,
            inside.recorder.journal.faults,
        ]
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main()
