"""What the program's own Python takes by cProfile, for steps with more calls than a trace of their stacks may hold."""

from functools import cache

import numpy as np
import numpy.typing as npt

from uncork.frames import is_users
from uncork.measure.loader_functions import CallGraph, fetches
from uncork.operators import prepares_input
from uncork.recording import FunctionTable

Times = npt.NDArray[np.float64]
"""Shares or nanoseconds for nothing else, and for preparing input, length 2."""
_TORCH = ("/torch/", "uncork/capture/")
_BUILT_IN = ("torch", "pybind11", "lsprof")


def python_shares(table: FunctionTable) -> dict[int, Times]:
    """Return the part of each function of the user's in all that was profiled: place → (own work, preparing input).

    Libraries called by it count to it, PyTorch and what PyTorch calls do not; nor do functions that a loader calls,
    whose time is known. cProfile slows Python down, so a share is the most there can be.
    """
    graph, total = CallGraph(table), int(table.self_ns.sum())
    if not total:
        return {}
    names = [_frame(table, place) for place in range(len(table.name))]
    open_places: set[int] = set()

    def spent(place: int) -> Times:
        """Return a function's time in all: its own, and that of the libraries it calls."""
        time_ns = np.array([table.self_ns[place], 0.0])
        for callee, called_ns in graph.callees.get(place, ()):
            if not graph.users[callee] and not _is_torch(names[callee]):
                time_ns = time_ns + called_ns * part(callee)
        return np.array([0.0, time_ns.sum()]) if prepares_input(names[place]) else time_ns

    @cache
    def part(place: int) -> Times:
        """Return the share of a library's function that is neither PyTorch's nor the user's."""
        if place in open_places or not table.total_ns[place]:
            return np.zeros(2)
        open_places.add(place)
        share: Times = np.minimum(spent(place) / int(table.total_ns[place]), 1.0)
        open_places.discard(place)
        return share

    beside = set(graph.users_below(fetches(table)))
    mine = [place for place in np.flatnonzero(graph.users).tolist() if place not in beside]
    return {place: spent(place) / total for place in mine}


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
