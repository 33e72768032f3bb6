"""What the program's own Python takes by cProfile, for steps with more calls than a trace of their stacks may hold."""

import numpy as np
import numpy.typing as npt

from uncork.frames import is_users
from uncork.measure.loader_functions import CallGraph, fetches
from uncork.operators import prepares_input
from uncork.recording import FunctionTable
from uncork.timeline import once

Times = npt.NDArray[np.float64]
"""Shares or nanoseconds for nothing else, and for preparing input, shape (…, 2)."""
_DEEPEST = 64
"""Functions followed one below the other, the user's first, as deep as programs go; circles settle sooner."""
_TORCH = ("/torch/", "uncork/capture/")
_BUILT_IN = ("torch", "pybind11", "lsprof")


@once
def python_shares(table: FunctionTable) -> dict[int, Times]:
    """Return the part of each function of the user's in all that was profiled: place → (own work, preparing input).

    Libraries called by it count to it, PyTorch and what PyTorch calls do not; nor do functions that a loader calls,
    whose time is known. cProfile slows Python down, so a share is the most there can be.
    """
    graph, total = CallGraph(table), int(table.self_ns.sum())
    if not total:
        return {}
    spent_ns = _with_libraries(table, graph.users)
    beside = set(graph.users_below(fetches(table)))
    mine = [place for place in np.flatnonzero(graph.users).tolist() if place not in beside]
    return {place: spent_ns[place] / total for place in mine}


def _with_libraries(table: FunctionTable, users: npt.NDArray[np.bool_]) -> Times:
    """Return each function's own time and that of the libraries it calls, by the share each callee has of its caller.

    Args:
        table: cProfile's table.
        users: Which functions are the user's: their time is their own.
    """
    frames = [_frame(table, place) for place in range(len(users))]
    prepares = np.array([prepares_input(frame) for frame in frames], bool)
    followed = ~users & np.array([not _is_torch(frame) for frame in frames], bool)
    edges = np.flatnonzero(followed[table.edge_callee] & (table.edge_caller != table.edge_callee))
    caller, callee, called_ns = table.edge_caller[edges], table.edge_callee[edges], table.edge_total_ns[edges]
    spent_ns, share = np.zeros((len(users), 2)), np.zeros((len(users), 2))
    for _ in range(_DEEPEST):
        before = share
        for purpose in (0, 1):
            spent_ns[:, purpose] = np.bincount(caller, called_ns * share[callee, purpose], len(users))
        spent_ns[:, 0] += table.self_ns
        spent_ns[prepares, 1], spent_ns[prepares, 0] = spent_ns[prepares].sum(axis=1), 0.0
        share = np.minimum(spent_ns / np.maximum(table.total_ns, 1)[:, None], 1.0)
        if np.allclose(share, before):
            break
    return spent_ns


def calls_torch(table: FunctionTable, place: int) -> bool:
    """Return whether a function calls PyTorch by itself, so that its samples are not all of its own Python."""
    callees = table.edge_callee[table.edge_caller == place].tolist()
    return any(_is_torch(_frame(table, callee)) for callee in callees)


def _frame(table: FunctionTable, place: int) -> str:
    """Return a function as frames of a trace name it."""
    return f"{table.file[place]}({int(table.line[place])}): {table.name[place]}".replace("\\", "/")


def _is_torch(frame: str) -> bool:
    if frame.startswith("~"):
        return any(word in frame for word in _BUILT_IN)
    return any(folder in frame for folder in _TORCH) and not is_users(frame.partition("(")[0])
