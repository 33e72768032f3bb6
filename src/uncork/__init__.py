"""uncork finds why a PyTorch job is slow or out of memory, and what to change.

Every watched program imports this module, so it imports nothing of weight.
"""

import contextlib
import os
import typing

if typing.TYPE_CHECKING:
    from uncork.capture import api as _api

__all__ = ["__version__", "record", "region", "step"]
__version__ = "0.1.0"


def step() -> None:
    """Mark the end of a step of your loop; does nothing unless something records."""
    from uncork.capture import api

    api.step()


def region(name: str) -> contextlib.AbstractContextManager[None]:
    """Return a context manager that names a part of your program in traces.

    Args:
        name: The name.
    """
    from uncork.capture import api

    return api.region(name)


def record(folder: str | os.PathLike[str] | None = None, **options: typing.Any) -> "_api.Session":  # noqa: ANN401
    """Return a recording of this process, to be used in a ``with`` statement.

    Args:
        folder: The run folder to write; a new one under ``uncork-runs`` by default.
        **options: Fields of `uncork.capture.CaptureOptions`.
    """
    from uncork.capture import api

    return api.record(folder, **options)
