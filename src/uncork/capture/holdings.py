"""What each module holds between steps: parameters, their gradients, the optimiser's state; by one walk."""

from collections.abc import Iterable, Mapping
from typing import Any

MOST_MODULES = 2_000
"""Modules that are written down, the largest first: more than any page shows."""
Sizes = tuple[int, int, int]


def holdings(modules: Mapping[str, Any], optimizers: Iterable[Any]) -> dict[str, Sizes]:
    """Return the bytes of parameters, gradients and optimiser state of each module, those inside it included.

    Args:
        modules: Region's name of each module → the module.
        optimizers: The program's optimisers.
    """
    states = [optimizer.state for optimizer in distinct(optimizers)]
    known: dict[int, Sizes] = {}
    found: dict[str, Sizes] = {}
    for name, module in modules.items():
        total = [0, 0, 0]
        for parameter in module.parameters():
            sizes = known.get(id(parameter))
            if sizes is None:
                sizes = known[id(parameter)] = _of_parameter(parameter, states)
            for place, size in enumerate(sizes):
                total[place] += size
        if any(total):
            found[name] = (total[0], total[1], total[2])
    largest = sorted(found, key=lambda name: -sum(found[name]))[:MOST_MODULES]
    return {name: found[name] for name in largest}


def _of_parameter(parameter: Any, states: Iterable[Mapping[Any, Mapping[str, Any]]]) -> Sizes:
    """Return the bytes of a parameter, of its gradient, and of what the optimisers keep for it."""
    kept = [value for state in states if parameter in state for value in state[parameter].values()]
    return size_bytes(parameter), size_bytes(parameter.grad), sum(size_bytes(one) for one in kept)


def distinct(optimizers: Iterable[Any]) -> list[Any]:
    """Return the optimisers without the wrappers of frameworks, which share the state of what they wrap."""
    of_state: dict[int, Any] = {}
    for one in optimizers:
        if id(one.state) not in of_state or type(one).__module__.startswith("torch."):
            of_state[id(one.state)] = one
    return list(of_state.values())


def size_bytes(tensor: Any) -> int:
    """Return the bytes of a tensor on this rank; 0 for what is none, or has no shape yet."""
    local = getattr(tensor, "_local_tensor", tensor)  # of a tensor sharded over ranks, this rank's part
    try:
        return int(local.numel() * local.element_size())
    except (AttributeError, ValueError):  # a number, None, or a lazy parameter
        return 0
