"""Apart: what the recorder does with torch is seen by no mode of the program's, and disturbs no capture of a graph."""

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def apart(torch: Any) -> Iterator[None]:
    """Do something with torch that the program's modes and subclasses of tensors are not told of: some count calls."""
    with contextlib.ExitStack() as inside:
        if torch is not None:
            inside.enter_context(torch._C.DisableTorchFunction())
            if torch._C._len_torch_dispatch_stack():
                from torch.utils._python_dispatch import _disable_current_modes

                inside.enter_context(_disable_current_modes())
        yield


def is_capturing(torch: Any) -> bool:
    """Return whether a CUDA graph is being captured, which one wait for the device, or one value read, would spoil."""
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def is_plain(tensor: Any) -> bool:
    """Return whether a tensor has values that can be read without a subclass being told."""
    of_class = getattr(type(tensor), "__torch_dispatch__", None)
    return not tensor.is_meta and getattr(of_class, "__name__", "") == "_disabled_torch_dispatch_impl"
