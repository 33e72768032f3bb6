"""Reads cProfile's files (pstats): Python functions with calls, own and total time, and who called whom."""

import marshal
import re
from pathlib import Path

import numpy as np

from uncork.errors import UnreadableError
from uncork.readers.source import Source
from uncork.recording import FunctionTable, Recording
from uncork.units import NS_PER_S

ORDER = 40
MOST_BYTES = 512 << 20
"""A profile of a hundred thousand functions is 20 MB."""
_OURS = ("uncork/capture/", "uncork\\capture\\")
_PYTHONS = re.compile(r"[/\\](?:lib(?:64)?[/\\]python\d[^/\\]*|Lib)[/\\](?!(?:site|dist)-packages|multiprocessing)")
_PASSED_ON = re.compile("torch|pybind11|pickle")
"""Built-ins that the recorder calls in the program's place, where it times them."""
_DICT = (ord("{"), ord("{") | 0x80)
"""marshal's code for a dict, and the same with its reference flag."""

_HUGE = re.compile(rb"[(\[\xa8\xdb](?![\0-\x05]\0\0\0)", re.DOTALL)
"""What may be a long tuple or list, or part of a name; cProfile's have five items at most."""
_SIZED = b"suat"
"""marshal's codes for texts, whose length comes first."""
_BYTES_AFTER = {
    ord("i"): 4,
    ord("g"): 8,
    ord("r"): 4,
    ord("("): 4,
    ord("["): 4,
    ord(")"): 1,
    **dict.fromkeys(b"{0NTF", 0),
}
"""How many bytes belong to the other codes that a profile may hold."""

Key = tuple[str, int, str]
Row = tuple[int, int, float, float, dict[Key, tuple[int, int, float, float]]]


def claims(head: bytes, path: Path) -> bool:
    """Return whether a file begins as cProfile's marshalled dict does."""
    del path
    return len(head) > 2 and head[0] in _DICT and head[1] in (0x28, 0x29, 0xA8, 0xA9)


def read(path: Path) -> list[Recording]:
    """Return one recording that holds functions only."""
    return [Recording(source=str(path), format="pstats", functions=read_functions(path))]


def read_functions(path: Path) -> FunctionTable:
    """Return the functions of a pstats file.

    Raises:
        UnreadableError: The file is no pstats file, or holds anything but plain figures.
    """
    try:
        with Source(path) as source:
            raw = source.whole(MOST_BYTES, "profile_large")
        if _HUGE.search(raw) and not _holds_what_it_says(raw):
            raise UnreadableError("profile_cut", path=path)
        # marshal runs nothing; a code object in it is data, and refused below like every other stranger.
        stats = marshal.loads(raw)  # noqa: S302
    except OSError as error:
        raise UnreadableError("cannot_open", path=path, reason=error.strerror) from error
    except (ValueError, EOFError, TypeError, MemoryError) as error:
        raise UnreadableError("profile_cut", path=path) from error
    return _table(_checked(stats, path))


def _holds_what_it_says(raw: bytes) -> bool:
    """Return whether no tuple or list in marshalled data says that it is longer than the data: room is made for it."""
    at = 0
    while at < len(raw):
        code = raw[at] & 0x7F
        at += 1
        told = int.from_bytes(raw[at : at + 4], "little")
        if code in b"([" and told > len(raw) - at:
            return False
        if code == ord("l"):  # digits of 15 bits; the sign is the number's
            at += 4 + 2 * min(told, (1 << 32) - told)
        elif code in _SIZED:
            at += 4 + told
        elif code in b"zZ":
            at += 1 + raw[at] if at < len(raw) else 1
        elif code in _BYTES_AFTER:
            at += _BYTES_AFTER[code]
        else:
            return False
    return True


def _checked(stats: object, path: Path) -> dict[Key, Row]:
    """Return the rows if every part has the shape that cProfile writes."""
    if isinstance(stats, dict) and all(_is_key(key) and _is_row(row) for key, row in stats.items()):
        return stats
    raise UnreadableError("no_profile", path=path)


def _is_key(key: object) -> bool:
    return (
        isinstance(key, tuple)
        and len(key) == 3
        and isinstance(key[0], str)
        and isinstance(key[1], int)
        and isinstance(key[2], str)
    )


def _is_row(row: object) -> bool:
    if not (isinstance(row, tuple) and len(row) == 5 and isinstance(row[4], dict) and _are_figures(row[:4])):
        return False
    return all(
        _is_key(key) and isinstance(edge, tuple) and len(edge) == 4 and _are_figures(edge)
        for key, edge in row[4].items()
    )


def _are_figures(values: tuple[object, ...]) -> bool:
    return all(isinstance(value, (int, float)) and -1e15 < value < 1e15 for value in values)


def _table(stats: dict[Key, Row]) -> FunctionTable:
    """Return the rows as columns; the recorder's own functions are left out, their callees keep the edge's absence."""
    ours = _ours(stats)
    kept = [key for key in stats if key not in ours]
    place = {key: index for index, key in enumerate(kept)}
    rows = [_without(stats[key], ours) if _is_pythons(key) else stats[key] for key in kept]
    edges = [
        (place[caller], index, edge[3], edge[1])
        for index, row in enumerate(rows)
        for caller, edge in row[4].items()
        if caller in place
    ]
    return FunctionTable(
        file=tuple(key[0] for key in kept),
        line=np.array([key[1] for key in kept], np.int64),
        name=tuple(key[2] for key in kept),
        calls=np.array([row[1] for row in rows], np.int64),
        self_ns=_ns([row[2] for row in rows]),
        total_ns=_ns([row[3] for row in rows]),
        edge_caller=np.array([edge[0] for edge in edges], np.int64),
        edge_callee=np.array([edge[1] for edge in edges], np.int64),
        edge_total_ns=_ns([edge[2] for edge in edges]),
        edge_calls=np.array([edge[3] for edge in edges], np.int64),
    )


def _ours(stats: dict[Key, Row]) -> set[Key]:
    """Return the recorder's functions, and those of Python that only these call, directly or not."""
    calls: dict[Key, list[Key]] = {}
    others = {}
    for key, row in stats.items():
        if _is_pythons(key) and row[4]:
            others[key] = len(row[4])
            for caller in row[4]:
                calls.setdefault(caller, []).append(key)
    waiting = [key for key in stats if any(part in key[0] for part in _OURS)]
    ours = set(waiting)
    while waiting:
        for callee in calls.get(waiting.pop(), ()):
            others[callee] -= 1
            if not others[callee] and callee not in ours:
                ours.add(callee)
                waiting.append(callee)
    return ours


def _is_pythons(key: Key) -> bool:
    """Return whether a function is Python's own, and nothing that the recorder calls for the program."""
    return not _PASSED_ON.search(key[2]) if key[0] == "~" else bool(_PYTHONS.search(key[0]))


def _without(row: Row, ours: set[Key]) -> Row:
    """Return a function's figures without the recorder's calls."""
    _, calls, self_s, total_s, callers = row
    for caller, (_, called, own_s, all_s) in callers.items():
        if caller in ours:
            calls, self_s, total_s = calls - called, self_s - own_s, total_s - all_s
    return row[0], max(calls, 0), max(self_s, 0.0), max(total_s, 0.0), callers


def _ns(seconds: list[float]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.rint(np.array(seconds, np.float64) * NS_PER_S).astype(np.int64)
