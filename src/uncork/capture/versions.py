"""What differs between versions of torch and Python: one part for each difference, and nowhere else.

What a newer torch merely has more of is asked for where it is used (``getattr``), not by its version.
"""

import contextlib
import ctypes
import os
import sys
from typing import Any

OLDEST = (2, 3)
"""First torch with all that recording needs (`torch.compiler.is_compiling`)."""
LOG_LEVEL_ERROR = 2
"""c10's level that leaves warnings out."""
KINETO_SILENT = 6
"""Kineto's level that leaves out all it says; 5 no longer does (capture study, section 1)."""


def version(torch: Any) -> tuple[int, int]:
    """Return major and minor version of torch."""
    major, minor = str(torch.__version__).split("+")[0].split(".")[:2]
    return int(major), int(minor)


def is_usable(torch: Any) -> bool:
    """Return whether a torch has all that recording needs."""
    return version(torch) >= OLDEST


def stacks_are_safe(torch: Any) -> bool:
    """Return whether torch's Python tracer is known to work on this interpreter and torch.

    It crashed on Python 3.13 before torch 2.8 (pytorch#144094) and lost calls on 3.12.0 to 3.12.4 (#155446).
    """
    if sys.version_info >= (3, 13) and version(torch) < (2, 8):
        return False
    return not (3, 12, 0) <= sys.version_info[:3] <= (3, 12, 4)


def without_python_events(torch: Any, *, stacks: bool) -> Any:
    """Return the setting that makes `stop` a third cheaper, or None in a torch that lacks it (before 2.12).

    With stacks it would cost the calling lines, which torch writes since 2.14.
    """
    from torch._C._profiler import _ExperimentalConfig

    if stacks and version(torch) >= (2, 14):
        return None
    try:
        return _ExperimentalConfig(trace_only=True)
    except TypeError:
        return None


def hush_kineto(torch: Any) -> None:
    """Silence the lines that Kineto writes per window, where torch was loaded without the setting for it.

    Kineto sets the level itself when the first profiler is prepared.
    """
    if "KINETO_LOG_LEVEL" not in os.environ:
        with contextlib.suppress(Exception):
            library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
            ctypes.c_int.in_dll(library, "_ZN9libkineto6Logger14severityLevel_E").value = KINETO_SILENT


class Quiet:
    """Silences torch's C++ warnings while memory is recorded, one for each block it did not see allocated."""

    def __init__(self) -> None:
        self._level: Any = None
        with contextlib.suppress(Exception):
            import torch

            library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
            level = ctypes.c_int.in_dll(library, "FLAGS_caffe2_log_level")
            self._before = level.value
            level.value = max(level.value, LOG_LEVEL_ERROR)
            self._level = level

    def end(self) -> None:
        """Set the level back."""
        if self._level is not None:
            self._level.value = self._before
