"""Python imports this by itself when it starts under ``uncork run``: it lets the recorder in, and steps aside.

A program started by the plain interpreter keeps its own ``__main__``, arguments, path, exit code and tracebacks by
construction; children of any launcher inherit the environment and so are covered too.
"""

import os
import sys


def _let_in() -> None:
    """Import the recorder from the place the supervisor named; any fault leaves the program alone."""
    try:
        import importlib.util
        import json

        place = json.loads(os.environ["UNCORK_CAPTURE"])["package"]
        if "uncork" not in sys.modules:
            spec = importlib.util.spec_from_file_location(
                "uncork", os.path.join(place, "__init__.py"), submodule_search_locations=[place]
            )
            if spec is None or spec.loader is None:
                return
            package = importlib.util.module_from_spec(spec)
            sys.modules["uncork"] = package
            spec.loader.exec_module(package)
        from uncork.capture import inside

        inside.begin()
    except Exception as fault:
        if os.environ.get("UNCORK_DEBUG"):
            sys.stderr.write(f"uncork: not recording in process {os.getpid()}: {fault!r}\n")


def _step_aside() -> None:
    """Remove this folder from the path and import the sitecustomize that would have been found without it."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401  # the next one on the path
    except ImportError as missing:
        if missing.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)


if os.environ.get("UNCORK_CAPTURE"):
    _let_in()
_step_aside()
