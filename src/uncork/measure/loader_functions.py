"""The loader's time by function, from cProfile's table of functions and edges."""

import re
from collections import Counter

import numpy as np

from uncork.frames import is_users
from uncork.measure.loader_words import stage_of
from uncork.recording import FunctionTable

_DEEPEST = 6
"""Library calls followed below a function of the user's; what lies deeper counts to the last one seen."""

MOST_OF = 0.5
"""A function more than half of which is one call is slow for the sake of that call."""
_BUILT_IN = re.compile(r"built-in (?:method|function) ([\w.]+)|method '?(\w+)'? of ")
Row = tuple[str, int, str, str, float, str]


def parts_of_functions(table: FunctionTable) -> list[Row]:
    """Return (file, line, function, stage, share, call) of the user's functions that the loader calls in this process.

    A function's part is its total time without what other functions of the user take below it; what libraries do
    for it is split by stage along the edges, by the share each callee has of its caller.
    """
    fetch = fetches(table)
    total = int(table.total_ns[fetch].sum())
    if not fetch or not total:
        return []
    graph = CallGraph(table)
    rows: list[Row] = []
    for place in graph.users_below(fetch):
        file, line, name = table.file[place], int(table.line[place]), table.name[place]
        call = graph.call(place)
        for stage, time_ns in graph.split(place).items():
            rows.append((file, line, name, stage, min(time_ns / total, 1.0), call))
    return rows


def call_named(file: str, function: str) -> str:
    """Return what a call is named in a sentence: a built-in by its name, a library's function after its file."""
    found = _BUILT_IN.search(function)
    if found or not file or file == "~":
        return found[1] or found[2] if found else function
    return f"{function} ({file.replace(chr(92), '/').rpartition('/')[2]})"


def fetches(table: FunctionTable) -> list[int]:
    """Return the functions with which a loader reads items."""
    return [
        place
        for place, name in enumerate(table.name)
        if name == "fetch" and table.file[place].replace("\\", "/").endswith("torch/utils/data/_utils/fetch.py")
    ]


class CallGraph:
    """Who calls whom, and for how long.

    Args:
        table: cProfile's table.
    """

    def __init__(self, table: FunctionTable) -> None:
        self.table = table
        self.users = np.array([is_users(file) for file in table.file], bool)
        self.callees: dict[int, list[tuple[int, int]]] = {}
        for caller, callee, time_ns in zip(
            table.edge_caller.tolist(), table.edge_callee.tolist(), table.edge_total_ns.tolist(), strict=True
        ):
            if caller != callee:
                self.callees.setdefault(caller, []).append((callee, time_ns))

    def users_below(self, roots: list[int]) -> list[int]:
        """Return the user's functions that can be reached from some functions."""
        seen, todo = set(roots), list(roots)
        while todo:
            for callee, _ in self.callees.get(todo.pop(), ()):
                if callee not in seen:
                    seen.add(callee)
                    todo.append(callee)
        return sorted(place for place in seen if self.users[place])

    def split(self, place: int) -> dict[str, float]:
        """Return a user's function's own time by stage, the libraries it calls included."""
        times: dict[str, float] = {}
        own = stage_of(self.table.file[place], self.table.name[place])
        rest = float(self.table.total_ns[place])
        for callee, time_ns in self.callees.get(place, ()):
            rest -= time_ns
            if not self.users[callee]:
                self._add(times, callee, float(time_ns), own, _DEEPEST)
        times[own] = times.get(own, 0.0) + max(rest, 0.0)
        return {stage: time_ns for stage, time_ns in times.items() if time_ns > 0}

    def call(self, place: int) -> str:
        """Return the one call to a library that takes most of a user's function's own time; empty where none does."""
        own_ns = int(self.table.total_ns[place])
        named: Counter[str] = Counter()
        for callee, time_ns in self.callees.get(place, ()):
            if self.users[callee]:
                own_ns -= time_ns
            else:
                named[call_named(self.table.file[callee], self.table.name[callee])] += time_ns
        return next((name for name, time_ns in named.most_common(1) if time_ns > MOST_OF * own_ns), "")

    def _add(self, times: dict[str, float], place: int, time_ns: float, stage: str, depth: int) -> None:
        """Add a library function's time to the stages: its callees' by their shares, the rest to its own stage."""
        stage = stage_of(self.table.file[place], self.table.name[place]) or stage
        total = float(self.table.total_ns[place])
        callees = self.callees.get(place, ()) if depth and total else ()
        rest = time_ns
        for callee, part_ns in callees:
            part = min(time_ns * part_ns / total, rest)
            rest -= part
            if not self.users[callee]:
                self._add(times, callee, part, stage, depth - 1)
        times[stage] = times.get(stage, 0.0) + rest
