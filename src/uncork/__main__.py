"""Run the command line: ``python -m uncork``."""

import os
import sys


def _leave_folder() -> None:
    """Take the folder that ``-m`` puts first off the path: a ``json.py`` of the user's there is not for us to run."""
    is_safe = sys.flags.isolated or getattr(sys.flags, "safe_path", False)
    try:
        here = os.getcwd()  # noqa: PTH109  # what Python puts there, and nothing else is imported for it
    except OSError:
        return
    holds_us = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) == here  # noqa: PTH100, PTH120
    if not is_safe and not holds_us and sys.path[0] == here:
        del sys.path[0]


if __name__ == "__main__":
    _leave_folder()
    from uncork.cli import main

    sys.exit(main())
