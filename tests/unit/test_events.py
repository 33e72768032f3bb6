"""EventTable: columns, names, sparse arguments."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from uncork.events import ArgColumn, EventTable, Kind, Strings, Track, together


@pytest.fixture
def table() -> EventTable:
    """Return four events: two operators, a kernel, an annotation; some have arguments."""
    strings = Strings.of(["aten::mm", "gemm", "ProfilerStep#1", "[[8, 3], [3, 4]]", "pinned"])
    rows = np.array
    return EventTable(
        ts_ns=rows([100, 200, 300, 50]),
        dur_ns=rows([10, 20, 30, 500]),
        kind=rows([Kind.CPU_OP, Kind.CPU_OP, Kind.KERNEL, Kind.USER_ANNOTATION], np.uint8),
        name=rows([0, 0, 1, 2], np.int32),
        track=rows([0, 0, 1, 0], np.int32),
        tracks=(Track("1", "1", "main"), Track("0", "7")),
        strings=strings,
        args={
            "correlation": ArgColumn(ints=(rows([0, 2]), rows([11, 11]))),
            "Input Dims": ArgColumn(nested=(rows([0]), rows([3]))),
            "note": ArgColumn(floats=(rows([1]), rows([2.5])), texts=(rows([3]), rows([4]))),
        },
    )


def test_ends_and_names_follow_the_columns(table: EventTable):
    """End is start and duration; a name is looked up in the texts."""
    assert table.end_ns.tolist() == [110, 220, 330, 550]
    assert table.names([3, 0]) == ["ProfilerStep#1", "aten::mm"]
    assert len(table) == 4


def test_rows_are_chosen_by_kind_and_name(table: EventTable):
    """A name may be a text, a pattern or a function; texts that name no event do not count."""
    assert table.of_kind(Kind.KERNEL, Kind.USER_ANNOTATION).tolist() == [False, False, True, True]
    assert table.name_is("gemm").tolist() == [False, False, True, False]
    assert table.name_is(re.compile(r"^Profiler")).tolist() == [False, False, False, True]
    assert table.name_is(lambda name: name.startswith("aten")).tolist() == [True, True, False, False]


def test_of_many_names_each_is_found():
    """Kinds are small integers, and kind times names is not: numpy before 2 would count it in eight bits.

    Of 200 names each names one event, so 200 rows fit, and the last by its own name.
    """
    names, none = [f"ProfilerStep#{number}" for number in range(200)], np.zeros(200, np.int64)
    kinds = np.full(200, Kind.USER_ANNOTATION, np.uint8)
    rows = np.arange(200, dtype=np.int32)
    table = EventTable(none, none, kinds, rows, none.astype(np.int32), (Track("1", "1"),), Strings.of(names))
    assert table.name_is(lambda name: name.startswith("Profiler")).sum() == 200
    assert np.flatnonzero(table.name_is("ProfilerStep#199", Kind.USER_ANNOTATION)).tolist() == [199]


def test_combinations_of_small_integers_do_not_overflow():
    """-1, 0 and the largest number of eight bits are three values, in that order, with whatever numpy."""
    first, place = together(np.array([127, 0, -1, 127], np.int8))
    assert first.tolist() == [2, 1, 0]
    assert place.tolist() == [2, 1, 0, 2]


def test_sparse_arguments_become_dense_columns(table: EventTable):
    """Rows without the argument get the stand-in; a key that nobody has gives only stand-ins."""
    assert table.ints("correlation").tolist() == [11, -1, 11, -1]
    assert table.ints("no such key", missing=7).tolist() == [7, 7, 7, 7]
    floats = table.floats("note")
    assert floats[1] == 2.5
    assert np.isnan(floats[[0, 2, 3]]).all()
    assert table.texts("note").tolist() == [-1, -1, -1, 4]
    assert table.texts("Input Dims").tolist() == [3, -1, -1, -1]


def test_one_argument_comes_back_as_a_python_value(table: EventTable):
    """Whole numbers, decimals, texts and nested values; None where there is none."""
    assert table.arg(2, "correlation") == 11
    assert table.arg(1, "note") == 2.5
    assert table.arg(3, "note") == "pinned"
    assert table.arg(0, "Input Dims") == [[8, 3], [3, 4]]
    assert table.arg(1, "Input Dims") is None
    assert table.arg(0, "no such key") is None


def test_texts_keep_escapes_until_they_are_read():
    """Raw bytes stand as in the file; the text has them undone, wrong ones and bad UTF-8 do not raise."""
    raw = [rb"a\"b\u00e9", rb"C:\new", rb"\q", b"\xff"]
    strings = Strings(b"".join(raw), np.cumsum([0, *map(len, raw)]))
    assert strings.raw(0) == rb"a\"b\u00e9"
    assert strings.text(0) == 'a"bé'
    assert strings.text(1) == "C:\new"
    assert strings.text(2) == r"\q"
    assert strings.text(3) == "\N{REPLACEMENT CHARACTER}"


def test_plain_strings_survive_the_way_in_and_out():
    """Quotes, backslashes, control characters, other scripts."""
    texts = ["", 'say "x"', "back\\slash", "tab\there", "步骤", "🙂"]
    strings = Strings.of(texts)
    assert [strings.text(index) for index in range(len(strings))] == texts


def test_nested_values_that_are_no_json_are_none():
    """A value cut in the middle is not an error, and not a value."""
    strings = Strings(b"[1, 2", np.array([0, 5]))
    assert strings.value(0) is None


def test_a_table_travels_without_copies_of_its_columns(table: EventTable, tmp_path: Path):
    """Pickled, its columns lie apart as plain memory: they come back equal, from a mapped file too."""
    buffers: list[pickle.PickleBuffer] = []
    whole = pickle.dumps(table, protocol=5, buffer_callback=buffers.append)
    assert len(buffers) >= 5
    mapped = []
    for place, buffer in enumerate(buffers):
        path = tmp_path / str(place)
        path.write_bytes(buffer.raw())
        mapped.append(np.memmap(path, np.uint8, "r") if path.stat().st_size else b"")
    again = pickle.loads(whole, buffers=mapped)
    for name in ("ts_ns", "dur_ns", "kind", "name", "track"):
        assert getattr(again, name).tolist() == getattr(table, name).tolist()
        assert not getattr(again, name).flags.writeable, "it is the file's memory, not a copy"
    assert again.names(range(len(table))) == table.names(range(len(table)))
    assert again.args.keys() == table.args.keys()
    assert again.end_ns.tolist() == table.end_ns.tolist()
