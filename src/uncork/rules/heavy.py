"""What to do about an operator that computes much: ids of the advice, by its kind and by where it runs."""

import re

from uncork.measure.dominant import Heavy
from uncork.measure.doubles import is_double
from uncork.measure.machine import Machine
from uncork.measure.precision import NARROW
from uncork.measure.threads import Threads

_SMALLER = "cheaper-convolution"
_ON_DEVICE = {"conv": (_SMALLER,), "gemm": ("smaller-product",), "attention": ("shorter-sequence",)}
_ON_HOST = {
    "conv": ("channels-last", "cpu-bf16", "threads", _SMALLER),
    "gemm": ("cpu-bf16", "threads", "smaller-product"),
    "attention": ("threads", "shorter-sequence"),
}
LONG_CALL_NS = 1_000_000
"""A kernel of a millisecond fills any device: larger batches change nothing."""
DRAWS = re.compile(r"^aten::(normal|uniform|bernoulli|exponential|random|log_normal|cauchy|geometric|randperm)_?$")
"""Random numbers, which PyTorch draws mostly on one thread of the CPU."""
ENOUGH_THREADS = 0.5
"""Of the cores: one thread per physical core is what PyTorch takes by itself."""


def on_device(heavy: Heavy) -> tuple[str, ...]:
    """Return the advice for a device, best first; fewer bits and fused attention have rules of their own."""
    fitting = _fitting(heavy, _ON_DEVICE.get(heavy.kind, ()))
    if is_double(heavy.operator):
        return ("single", *fitting)
    short = heavy.ns < LONG_CALL_NS * heavy.operator.calls_per_step
    return (("batch",) if short else ()) + fitting or ("kernel",)


def on_host(heavy: Heavy, threads: Threads | None, machine: Machine) -> tuple[str, ...]:
    """Return the advice for the CPU, best first; threads where there may be cores, bf16 where it may be fast."""
    if DRAWS.match(heavy.operator.name):
        return ("fewer-masks",) if heavy.kind == "dropout" else ("draw-less",)
    fitting = _fitting(heavy, _ON_HOST.get(heavy.kind, ("threads",)))
    if is_double(heavy.operator):
        return ("single", *(one for one in fitting if one not in ("cpu-bf16", "threads")))
    full = threads is not None and threads.threads * threads.ranks >= ENOUGH_THREADS * threads.cores
    fits = {"threads": "" if full else "threads"}
    if heavy.operator.dtype in NARROW:
        fits["cpu-bf16"] = ""
    elif machine.host_bf16 is not None:
        fits["cpu-bf16"] = "cpu-bf16-here" if machine.host_bf16 else ""
    advice = (fits.get(one, one) for one in fitting)
    return tuple(one for one in advice if one) or ("kernel",)


def _fitting(heavy: Heavy, advice: tuple[str, ...]) -> tuple[str, ...]:
    """Return the advice with what a convolution's sizes leave to make smaller; where those are unknown, all of it."""
    sizes = heavy.operator.sizes
    depthwise = sizes.get("groups", 1) not in (1, None) and sizes.get("groups") == sizes.get("channels_in")
    if depthwise:  # it is the small half of a pair already
        return tuple(one for one in advice if one != _SMALLER)
    point = set(str(sizes.get("kernel", ""))) == {"1", "×"} or sizes.get("kernel") == "1"
    return tuple("fewer-channels" if point and one == _SMALLER else one for one in advice)
