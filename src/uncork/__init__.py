"""uncork finds why a PyTorch job is slow or out of memory, and what to change.

Every watched program imports this module, so it imports nothing of weight; nor anything that ``python -m uncork``
would find in the user's folder first (`uncork.__main__`).
"""

import os

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    import contextlib
    import typing

    from uncork.capture import api as _api
    from uncork.notebook import Shown as _Shown
del TYPE_CHECKING

__all__ = ["__version__", "analyze", "load_ipython_extension", "record", "region", "step"]
__version__ = "0.1.0"


def step() -> None:
    """Mark the end of a step of your loop; does nothing unless something records."""
    from uncork.capture import api

    api.step()


def region(name: str) -> "contextlib.AbstractContextManager[None]":
    """Return a context manager that names a part of your program in traces.

    Args:
        name: The name.
    """
    from uncork.capture import api

    return api.region(name)


def record(folder: str | os.PathLike[str] | None = None, **options: "typing.Any") -> "_api.Session":  # noqa: ANN401
    """Return a recording of this process, to be used in a ``with`` statement.

    Args:
        folder: The run folder to write; a new one under ``uncork-runs`` by default.
        **options: Fields of `uncork.capture.CaptureOptions`.
    """
    from uncork.capture import api

    return api.record(folder, **options)


def analyze(*paths: str | os.PathLike[str], lang: str | None = None) -> "_Shown":
    """Return what uncork concludes from recordings; notebooks show it as a page, consoles as text.

    Args:
        *paths: Trace files, folders of ranks, memory snapshots or run folders.
        lang: ``en`` or ``zh``; the locale's by default.

    Raises:
        uncork.errors.UncorkError: A path is missing or no recording.
    """
    import pathlib

    from uncork import notebook, pipeline

    return notebook.Shown(pipeline.analyze([pathlib.Path(path) for path in paths], views=True), lang)


def load_ipython_extension(shell: "typing.Any") -> None:  # noqa: ANN401 - IPython's shell
    """Add the cell magic ``%%uncork``; IPython calls this for ``%load_ext uncork``."""
    from uncork import notebook

    notebook.register(shell)
