"""Which cell of a notebook a source file stands for: kernels give each cell a file name that says nothing."""

import sys

MOST_CELLS = 1000


def cells() -> dict[str, int]:
    """Return file name → number of the cell, as in ``In [2]``; empty outside IPython and in versions without it."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    known = getattr(getattr(shell, "compile", None), "_filename_map", None)
    if not isinstance(known, dict):
        return {}
    latest = list(known.items())[-MOST_CELLS:]
    return {file: number for file, number in latest if isinstance(file, str) and isinstance(number, int)}
