"""uncork finds why a PyTorch job is slow or out of memory, and what to change."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uncork.capture.api import record, region, step

__all__ = ["__version__", "record", "region", "step"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:  # noqa: ANN401  # every watched program imports this module: it must cost nothing
    """Return a public name, importing its home when it is first asked for."""
    if name not in ("record", "region", "step"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from uncork.capture import api

    return getattr(api, name)
