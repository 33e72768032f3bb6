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
        shared = "uncork" in sys.modules
        if not shared:
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
        if not shared:
            _Lent()
    except Exception as fault:
        if os.environ.get("UNCORK_DEBUG"):
            sys.stderr.write(f"uncork: not recording in process {os.getpid()}: {fault!r}\n")


class _Lent:
    """Lends the name ``uncork`` to a module of the program's own, which beside its script would be found first.

    Our parts stay where they are (``uncork.capture.inside`` …) and find each other there. Where the program has no such
    module, or an installed uncork, the name is ours again when it is first asked for.
    """

    def __init__(self) -> None:
        self._ours = sys.modules.pop("uncork")
        self._spec = self._ours.__spec__
        sys.meta_path.insert(0, self)  # type: ignore[arg-type]

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        """Return the program's own module of that name, else ours; None for every other name."""
        if name != "uncork":
            return None
        from importlib.machinery import ModuleSpec, PathFinder

        del path, target
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        theirs = PathFinder.find_spec(name)
        if theirs is not None and theirs.origin is not None:
            folder = os.path.dirname(theirs.origin)
            if not os.path.isfile(os.path.join(folder, "capture", "inject", "sitecustomize.py")):
                return theirs
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: object) -> object:
        """Return our package, which was loaded when Python started."""
        del spec
        return self._ours

    def exec_module(self, module: object) -> None:
        """Run nothing; the package keeps the spec it was loaded by."""
        module.__spec__ = self._spec  # type: ignore[attr-defined]


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
