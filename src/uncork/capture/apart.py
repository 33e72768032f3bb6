"""Apart: what the recorder does with torch is seen by no mode of the program's, and disturbs no capture of a graph."""

import inspect
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import CodeType
from typing import Any

OUR_FILES = os.path.dirname(os.path.abspath(__file__)) + os.sep


def apart(torch: Any) -> AbstractContextManager[object]:
    """Return what hides our use of torch from the program's modes and subclasses of tensors: some count calls."""
    if torch is None:
        return nullcontext()
    if torch._C._len_torch_dispatch_stack() or _compiles(torch):
        return _without_modes(torch)
    hidden: AbstractContextManager[object] = torch._C.DisableTorchFunction()  # asked in each step: 0.2 µs
    return hidden


def _compiles(torch: Any) -> bool:
    """Return whether torch.compile takes each new frame of this thread: ours would be compiled with the program's."""
    asks = getattr(getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None), "get_eval_frame_callback", None)
    return asks is not None and callable(asks())


@contextmanager
def _without_modes(torch: Any) -> Iterator[None]:
    from torch.utils._python_dispatch import _disable_current_modes

    set_eval_frame = torch._C._dynamo.eval_frame.set_eval_frame
    before = set_eval_frame(None)
    try:
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            yield
    finally:
        set_eval_frame(before)


def is_capturing(torch: Any) -> bool:
    """Return whether a CUDA graph is being captured, which one wait for the device, or one value read, would spoil."""
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def is_plain(tensor: Any) -> bool:
    """Return whether a tensor has values that can be read without a subclass being told."""
    of_class = getattr(type(tensor), "__torch_dispatch__", None)
    return not tensor.is_meta and getattr(of_class, "__name__", "") == "_disabled_torch_dispatch_impl"


def is_theirs(error: BaseException) -> bool:
    """Return whether a handler that the program has set for a signal raised an error, which fell into code of ours."""
    codes, link = _handlers(), error.__traceback__
    while link is not None and link.tb_frame.f_code not in codes:
        link = link.tb_next
    return link is not None


def _handlers() -> set[CodeType]:
    """Return the code of each of the program's handlers: a function, a method, a partial, or an object to be called."""
    found = [signal.getsignal(number) for number in signal.valid_signals()]
    called = [getattr(one, "func", one) for one in found if callable(one)]
    codes = [getattr(one, "__code__", None) or getattr(type(one).__call__, "__code__", None) for one in called]
    return {code for code in codes if isinstance(code, CodeType)}


def run_as_python(dynamo: Any) -> None:
    """Keep torch.compile from compiling frames of ours: it takes each that runs between two of the program's."""
    for name, module in list(sys.modules.items()):
        if name.startswith("uncork.capture"):
            for code in _codes(module):
                dynamo.skip_code(code)


def _codes(owner: Any) -> Iterator[CodeType]:
    """Yield the code of each function of a module or class of ours, and of the functions inside it."""
    for one in list(vars(owner).values()):
        if isinstance(one, type):
            if one is not owner and one.__module__.startswith("uncork.capture"):
                yield from _codes(one)
            continue
        function = inspect.unwrap(getattr(one, "fget", None) or getattr(one, "__func__", one))
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType) and code.co_filename.startswith(OUR_FILES):
            yield from _nested(code)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _nested(one)
