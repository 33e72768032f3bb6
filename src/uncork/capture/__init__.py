"""What runs inside the user's process: the only importer of torch.

Two halves share this folder. The supervisor (`launch`, `supervisor`, `signals`, `samples`) starts the program and
watches it from outside. Everything else is imported inside the watched program by ``inject/sitecustomize.py``, so it
keeps to the standard library, and touches torch only after the program's own import of it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uncork.capture.arming import trigger
    from uncork.capture.options import CaptureOptions
    from uncork.capture.supervisor import CaptureResult, end_as, record

__all__ = ["CaptureOptions", "CaptureResult", "end_as", "record", "trigger"]

_HOMES = {
    "CaptureOptions": "uncork.capture.options",
    "CaptureResult": "uncork.capture.supervisor",
    "end_as": "uncork.capture.supervisor",
    "record": "uncork.capture.supervisor",
    "trigger": "uncork.capture.arming",
}


def __getattr__(name: str) -> Any:
    """Return a public name, importing its home when first asked: the watched program must not pay for it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
