"""A profile of Python functions is the program's: what the recorder does in it, and has done by Python, is left out."""

import marshal
from pathlib import Path

from uncork.readers import pstats
from uncork.recording import FunctionTable

PYTHON = "/usr/lib/python3.12/"
OURS = "/home/me/.venv/lib/python3.12/site-packages/uncork/capture/files.py"
MINE = ("/home/me/train.py", 3, "save")


def table_of(folder: Path, rows: dict[tuple[str, int, str], tuple[object, ...]]) -> FunctionTable:
    """Return the table of a profile that holds some rows as cProfile writes them."""
    path = folder / "functions.pstats"
    path.write_bytes(marshal.dumps(rows))
    return pstats.read_functions(path)


def row(self_s: float, total_s: float, **callers: tuple[int, float, float]) -> tuple[object, ...]:
    """Return a function's row: calls and times of each caller, all of them together in front."""
    known = {"ours": (OURS, 9, "write"), "mine": MINE, "path": (f"{PYTHON}pathlib.py", 7, "replace")}
    edges = {known[name]: (calls, calls, own, total) for name, (calls, own, total) in callers.items()}
    calls = sum(edge[0] for edge in edges.values()) or 1
    return calls, calls, self_s, total_s, edges


def test_what_python_does_for_the_recorder_alone_is_left_out(tmp_path: Path) -> None:
    """`posix.replace` lies below the recorder's `Path.replace`, so neither is told; the program's functions all are."""
    table = table_of(
        tmp_path,
        {
            (OURS, 9, "write"): row(0.1, 9.0),
            (f"{PYTHON}pathlib.py", 7, "replace"): row(0.2, 1.2, ours=(4, 0.2, 1.2)),
            ("~", 0, "<built-in method posix.replace>"): row(1.0, 1.0, path=(4, 1.0, 1.0)),
            MINE: row(2.0, 5.0, ours=(1, 2.0, 5.0)),
            ("~", 0, "<built-in method posix.fsync>"): row(3.0, 3.0, mine=(2, 3.0, 3.0)),
        },
    )
    assert dict(zip(table.name, table.self_ns.tolist(), strict=True)) == {
        "save": 2_000_000_000,
        "<built-in method posix.fsync>": 3_000_000_000,
    }
    assert (table.edge_caller.tolist(), table.edge_callee.tolist(), table.edge_calls.tolist()) == ([0], [1], [2])


def test_of_what_both_call_the_programs_part_is_left(tmp_path: Path) -> None:
    """Of 10 calls that took 1.5 s the recorder made 4 that took 0.5 s."""
    table = table_of(
        tmp_path,
        {
            (OURS, 9, "write"): row(0.1, 9.0),
            MINE: row(2.0, 5.0),
            ("~", 0, "<built-in method builtins.len>"): row(1.5, 1.5, ours=(4, 0.5, 0.5), mine=(6, 1.0, 1.0)),
        },
    )
    place = table.name.index("<built-in method builtins.len>")
    assert (table.calls[place], table.self_ns[place], table.total_ns[place]) == (6, 10**9, 10**9)


def test_what_the_recorder_calls_in_the_programs_place_stays(tmp_path: Path) -> None:
    """Batches are unpickled, messages sent and layers called through functions that the recorder put around them."""
    kept = [
        ("~", 0, "<built-in method _pickle.loads>"),
        ("~", 0, "<method 'allreduce' of 'torch._C._distributed_c10d.ProcessGroup' objects>"),
        (f"{PYTHON}multiprocessing/reduction.py", 51, "dumps"),
        (f"{PYTHON}site-packages/torch/optim/optimizer.py", 509, "wrapper"),
        ("/srv/lib/python/mine/train.py", 5, "collate"),
        MINE,
    ]
    table = table_of(
        tmp_path, {(OURS, 9, "write"): row(0.1, 9.0)} | dict.fromkeys(kept, row(1.0, 2.0, ours=(5, 1.0, 2.0)))
    )
    assert table.name == tuple(name for _, _, name in kept)
    assert table.total_ns.tolist() == [2 * 10**9] * len(kept)
