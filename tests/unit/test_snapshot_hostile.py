"""Hostile and damaged snapshots: nothing runs, memory stays bounded, and the answer is one line."""

import gzip
import io
import pickle
import pickletools
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from tests.unit.test_snapshot import LINES, memory_of
from uncork import readers
from uncork.errors import UnreadableError
from uncork.measure import MissingEvidence
from uncork.readers.pickled import PickleError, load
from uncork.testing.snapshots import write_snapshot


class Calls:
    """An object whose pickle calls something."""

    def __reduce__(self):
        """Name a function and its argument."""
        return print, ("unpickled!",)


class State:
    """An object whose pickle sets attributes."""

    def __init__(self) -> None:
        self.segments: list[int] = []


HOSTILE = {
    "a call": pickle.dumps({"segments": [], "device_traces": [Calls()]}),
    "an old call": b"c__builtin__\nprint\n(S'x'\ntR.",
    "an object": pickle.dumps(State()),
    "a function": pickle.dumps(print),
    "INST": b"(S'x'\ni__builtin__\nprint\n.",
    "OBJ": b"(c__builtin__\nprint\nS'x'\no.",
    "a persistent id": b"\x80\x02X\x01\x00\x00\x00xQ.",
    "an extension": b"\x80\x02\x82\x01.",
    "a set": pickle.dumps({1, 2}),
    "torch's own loader": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(tR.",
    "a call of a value": b"\x80\x02]X\x01\x00\x00\x00x\x85R.",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_whatever_could_run_is_refused(tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]):
    """Nothing is imported or called: one line, exit code 2, nothing printed by the pickle."""
    path = tmp_path / "hostile.pickle"
    path.write_bytes(HOSTILE[what])
    with pytest.raises(UnreadableError) as caught:
        readers.read(path)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert "unpickled!" not in capsys.readouterr().out


def test_plain_values_that_are_no_snapshot_are_refused(tmp_path: Path):
    """A pickled dict of something else is named as that."""
    path = tmp_path / "other.pickle"
    path.write_bytes(pickle.dumps({"weights": [1, 2, 3]}))
    with pytest.raises(UnreadableError, match="no memory snapshot"):
        readers.read(path)


@pytest.mark.parametrize(
    "bomb",
    [
        b"]" * 1_000_000,
        b"]\x94" * 700_000,
        b"(" * 1_000_000,
        b"}" * 1_000_000 + b".",
        b"(" + b"K\x01" * 3_000_000,
        b"X\0\0\0\0\x94(" + b"}(h\0Nu" * 1_000_000,
        b"X\0\0\0\0\x94(" + b"]h\0a" * 1_000_000,
    ],
)
def test_a_bomb_is_stopped(bomb: bytes):
    """One byte that makes an object of 60 is stopped long before memory is full."""
    tracemalloc.start()
    with pytest.raises(PickleError):
        load(io.BytesIO(b"\x80\x04" + bomb), lambda item: item)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * len(bomb) + (64 << 20)


def text(word: str) -> bytes:
    """Return the instruction for a short text."""
    return b"\x8c" + bytes([len(word)]) + word.encode()


def nested(opens: bytes, closes: bytes) -> bytes:
    """Return the instructions of a value that holds the one before it twice, 60 deep; the last is at place 60."""
    rounds = [opens + b"h%ch%c" % (depth, depth) + closes for depth in range(60)]
    return text("x") + b"\x94" + b"".join(b"0" + one for one in rounds)


LISTS, TUPLES = nested(b"]\x94(", b"e"), nested(b"(", b"t\x94")
EVENT = b"}\x94(" + text("action") + text("alloc") + text("addr") + b"K\1" + text("size") + b"K\2u"
ENDLESS = {
    "a name of 2^60 parts": b"0}(%s](}(%sh\x3cueu" % (text("frames"), text("name")),
    "a setting of 2^60 parts": b"0}(%s]%s]%s}(%sh\x3cuu."
    % (text("segments"), text("device_traces"), text("allocator_settings"), text("x")),
    "traces that are one list, 2^60 times": b"0}(%s]%sh\x3cu." % (text("segments"), text("device_traces")),
    "segments of 2^60 parts": b"0}(%sh\x3c%s](]euu." % (text("segments"), text("device_traces")),
    "an action of 2^60 parts": b"0}(%sh\x3c%sh\x3c%sh\x3cu." % (text("action"), text("addr"), text("frames")),
    "a region of 2^60 parts": b"0}(%sh\x3c%sh\x3c%sh\x3cu." % (text("stage"), text("name"), text("time_us")),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_names_itself_over_and_over_is_never_written_out(tmp_path: Path, what: str):
    """Sixty lists of a few bytes describe 2^60 values: none of them is counted, joined or printed."""
    path = tmp_path / "laughs.pickle"
    path.write_bytes(b"\x80\x04" + LISTS + ENDLESS[what])
    with suppress(UnreadableError, MissingEvidence):
        memory_of(readers.read(path)[0].snapshot)


def test_a_key_that_takes_forever_to_hash_is_refused():
    """A tuple that holds the tuple before it twice, 60 deep: hashing it would visit 2^60 parts."""
    for setting in (b"0}h\x3cK\1s", b"0}(h\x3cK\1u", b"0(h\x3cK\1d"):
        with pytest.raises(PickleError, match="damaged"):
            load(io.BytesIO(b"\x80\x04" + TUPLES + setting + b"." * 99), lambda item: item)


def test_what_holds_itself_is_read_once(tmp_path: Path):
    """A list in itself, a dict in itself and frames that are their own frame end like any other value."""
    for cycle in (
        b"}\x94(%s]\x94(h\1e%s]\x94(h\2eu." % (text("segments"), text("device_traces")),
        b"}\x94(%s]%s]\x94(}\x94(%s%s%sh\1uh\1eu."
        % (text("segments"), text("device_traces"), text("action"), text("alloc"), text("frames")),
        b"]\x94(h\0h\0e.",
    ):
        path = tmp_path / "cycle.pickle"
        path.write_bytes(b"\x80\x04" + cycle)
        with suppress(UnreadableError, MissingEvidence):
            memory_of(readers.read(path)[0].snapshot)


LIES = {
    "BINBYTES8": b"\x8e" + b"\xff" * 8,
    "BINBYTES8 of a terabyte": b"\x8e" + (1 << 40).to_bytes(8, "little"),
    "BINUNICODE8": b"\x8d" + b"\xff" * 8,
    "BYTEARRAY8": b"\x96" + b"\xff" * 8,
    "LONG4": b"\x8b\xff\xff\xff\x7f",
    "BINUNICODE": b"X\xff\xff\xff\xff",
    "a frame": b"\x95" + b"\xff" * 8 + b"]",
    "a line of digits": b"I" + b"9" * 1_000_000 + b"\n.",
    "a place to remember": b"]r\xff\xff\xff\xff.",
    "a place to remember, as text": b"]p4000000000\n.",
    "a place nobody filled": b"h\x7f.",
    "a place below the first": b"g-1\n.",
    "pops of nothing": b"0000.",
    "a tuple of nothing": b"\x87.",
    "an item without a dict": b"K\1K\2s.",
    "an odd number of items": b"}(K\1u.",
    "no list to add to": b"}(K\1e.",
}


@pytest.mark.parametrize("what", LIES)
def test_a_length_or_a_place_that_lies_is_refused(what: str):
    """What the bytes promise is never asked for at once; the file ends, or is named as damaged."""
    tracemalloc.start()
    with pytest.raises(PickleError, match=r"cut off|damaged|far more"):
        load(io.BytesIO(b"\x80\x04" + LIES[what]), lambda item: item)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 32 << 20


def test_a_large_number_is_a_number(tmp_path: Path):
    """A LONG4 of a megabyte is read, and a size that large ends at what a device can hold."""
    number = b"\x8b" + (1 << 20).to_bytes(4, "little") + b"\x7f" * (1 << 20)
    path = tmp_path / "large.pickle"
    action = b"}(%s%s%s%s%s%su" % (text("action"), text("alloc"), text("size"), number, text("addr"), number)
    path.write_bytes(b"\x80\x04}(%s]%s](](%seeu." % (text("segments"), text("device_traces"), action))
    snapshot = readers.read(path)[0].snapshot
    assert snapshot.trace.size_bytes.tolist() == [1 << 42]
    assert snapshot.trace.address.tolist() == [2**63 - 1]


@pytest.mark.parametrize("what", ["{},", "[],", "1,", '{"frames": []},'])
def test_a_bomb_in_json_is_stopped(tmp_path: Path, what: str):
    """Three bytes that make an object of 64 are refused before the text is parsed."""
    path = tmp_path / "bomb.json"
    path.write_text('{"device_traces": [[' + what * 2_000_000 + '{}]], "segments": []}')
    tracemalloc.start()
    with suppress(UnreadableError):
        readers.read(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 * path.stat().st_size + (64 << 20)


def test_a_gzip_bomb_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A few KB that unpack to 64 MiB of lists: stopped by what they describe, long before they are all unpacked."""
    path = tmp_path / "bomb.pickle.gz"
    path.write_bytes(gzip.compress(b"\x80\x04" + b"]" * (64 << 20)))
    tracemalloc.start()
    with pytest.raises(UnreadableError, match="far more objects"):
        readers.read(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 << 20
    monkeypatch.setattr("uncork.readers.source._BOMB_FLOOR_BYTES", 1 << 20)
    actions = b"\x80\x04}(%s]%s](](" % (text("segments"), text("device_traces")) + EVENT * 300_000
    path.write_bytes(gzip.compress(actions + b"eeu."))
    assert path.stat().st_size * 150 < len(actions)
    monkeypatch.setattr("uncork.readers.source._BOMB_RATIO", 100)
    with pytest.raises(UnreadableError, match="more than 100 times its size"):
        readers.read(path)


def test_repeated_dicts_are_read_as_pickle_reads_them(tmp_path: Path):
    """Dicts of one form, read whole, equal what the standard library makes of them, whatever the values are."""
    values = [
        0,
        255,
        256,
        -1,
        65_535,
        70_000,
        2**40,
        -(2**40),
        2**70,
        1.5,
        None,
        True,
        False,
        (0, 1),
        (1, 2, 3),
        (),
        "",
    ]
    shared = [{"name": "f"}, {"name": "g"}]
    items = [
        {"a": value, "frames": list(shared[: place % 3]), "b": values[place % len(values)], "c": shared}
        for place, value in enumerate(values * 40)
    ]
    for protocol in (2, 4, 5):
        for raw in (pickle.dumps(items, protocol), pickletools.optimize(pickle.dumps(items, protocol))):
            assert load(io.BytesIO(raw), lambda item: item) == items
    emptied: list[dict[object, object]] = []

    def take(item: dict[object, object]) -> object:
        if "frames" not in item:
            return item
        emptied.append(dict(item))
        item.clear()
        return {}

    assert load(io.BytesIO(pickle.dumps(items)), take) == [{}] * len(items)
    assert emptied == items


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_where_a_piece_ends_changes_nothing(protocol: int):
    """Texts, tuples, floats and dicts that lie across the border of two pieces are the same as in one."""
    rows = [{"t": "é" * (at % 90), at: (at, -at), "f": at / 7, "k": {"addr": 2**31 - 1, 2: (1,)}} for at in range(60)]
    data = pickle.dumps(rows, protocol)
    for size in range(17, 130):
        source = io.BytesIO(data)

        class Pieces:
            def read(self, wanted_bytes: int, source: io.BytesIO = source, size: int = size) -> bytes:
                return source.read(min(wanted_bytes, size))

        assert load(Pieces(), lambda item: item) == rows


def test_every_cut_ends_in_one_line(tmp_path: Path):
    """Every prefix of a small snapshot is refused as cut off or damaged, none is taken for a whole one."""
    data = write_snapshot(LINES[:4], tmp_path / "a.pickle").read_bytes()
    for length in range(1, len(data)):
        with pytest.raises(PickleError, match=r"cut off|damaged"):
            load(io.BytesIO(data[:length]), lambda item: item)


def test_any_cut_or_flipped_byte_ends_in_a_snapshot_or_in_one_line(tmp_path: Path):
    """Every prefix and every single damaged byte of a small snapshot: read, or refused; never anything else."""
    data = write_snapshot(LINES, tmp_path / "a.pickle").read_bytes()
    path = tmp_path / "b.pickle"
    damaged = [data[:length] for length in range(1, len(data), 31)]
    damaged += [data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :] for place in range(0, len(data), 13)]
    refused = 0
    for broken in damaged:
        path.write_bytes(broken)
        try:
            for recording in readers.read(path):
                memory_of(recording.snapshot)
        except UnreadableError:
            refused += 1
        except MissingEvidence:
            pass
    assert refused >= len(range(1, len(data), 31))


@pytest.mark.parametrize(
    "text",
    [
        "[[1,2],[[0,1,1,1,1,1,1,1,1]]]",  # a row less than times
        "[[1,2],[[0,1,1,1,1,1,1,1],[0,1,1,1,1,1,1,1,1,1]]]",  # rows of another length
        "[[1,1,1,1],[2,2,2]]",
        "[[1,1,1,1],[2,,2,2]]",
        "[[1,1,1,1],[2,2,2.5,2]]",
        "[[1,1,1,1],[2,2,1e99,2]]",
        "[[1,1,1,1],[2,2,99999999999999999999,2]]",
        "[[1,1,9000000000000000000,1],[2,2,9000000000000000000,1]]",
        "[[1,1,1,99]]",
        "[[9999999999999999],[[0,1,1,1,1,1,1,1,1]]]",
        "[[1,[1],1,1]]",
        "[[-1]]",
    ],
)
def test_a_damaged_memory_timeline_is_refused(tmp_path: Path, text: str):
    """Rows of wrong length, holes, fractions, numbers beyond 64 bits, unknown categories: one line each."""
    path = tmp_path / "timeline.json"
    path.write_text(text)
    with pytest.raises(UnreadableError, match="cut off, damaged, or holds other numbers"):
        readers.read(path)


def test_every_cut_of_a_memory_timeline_is_refused(tmp_path: Path):
    """Neither form is taken for a shorter one when its end is missing."""
    path = tmp_path / "timeline.json"
    for text in ("[[1,2],[[0,1,1,1,1,1,1,1,1],[0,1,1,1,1,1,1,1,1]]]", "[[-1,1,5,0],[2000,2,70,4],[3000,4,-70,4]]"):
        for length in range(6, len(text)):
            path.write_text(text[:length])
            with pytest.raises(UnreadableError):
                readers.read(path)


def test_a_large_memory_timeline_takes_a_small_multiple_of_its_size(tmp_path: Path):
    """A hundred thousand events as numbers, not as lists of numbers; sizes never below nothing."""
    path = tmp_path / "timeline.raw.json"
    path.write_text(
        "[" + ",".join(f"[{time},1,{512 if time % 3 else -2048},{time % 7}]" for time in range(1, 100_001)) + "]"
    )
    tracemalloc.start()
    timeline = readers.read(path)[0].snapshot
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 12 * path.stat().st_size
    assert timeline.size_bytes.shape == (100_000, 8)
    assert int(timeline.size_bytes.min()) == 0


def test_the_form_of_the_newest_torch_is_read(tmp_path: Path):
    """2.15 adds a pool to each action, notes, and actions that only annotate: none of them changes a total."""
    frames = [
        {"name": "forward", "filename": "m.py", "line": 3, "fx_node_op": "call_function", "fx_node_name": "linear"}
    ]
    more = {"stream": 0, "time_us": 5, "compile_context": "0/0", "user_metadata": "step 1", "pool_id": (0, 0)}
    words = (
        ("alloc", 1, 100),
        ("annotate", 1, 100),
        ("alloc", 2, 200),
        ("free_requested", 2, 200),
        ("free_completed", 2, 200),
    )
    actions = [
        {"action": word, "addr": address, "size": size, "frames": list(frames), **more, "pool_id": (0, number)}
        for number, (word, address, size) in enumerate(words * 50)
    ]
    document = {
        "segments": [],
        "device_traces": [[], actions],
        "allocator_settings": {"expandable_segments": True, "roundup_power2_divisions": {"1": 0}},
        "external_annotations": [{"stage": "START", "name": "Optimizer.step#SGD.step", "device": 1, "time_us": 5}],
        "host_segments": [],
        "host_traces": [[]],
    }
    path = tmp_path / "new.pickle"
    path.write_bytes(pickle.dumps(document))
    snapshot = readers.read(path)[0].snapshot
    assert snapshot.trace.device.tolist() == [1] * 250
    assert snapshot.trace.size_bytes.tolist() == [size for _, _, size in words] * 50
    assert snapshot.stacks.function == ("forward",)
    assert snapshot.settings == {"expandable_segments": "True"}
    # Address 1 is allocated anew without a free in between: it is still one block of 100 beside one of 200.
    assert memory_of(snapshot).peak_bytes == 300
