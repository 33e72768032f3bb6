"""Hostile and damaged snapshots: nothing runs, memory stays bounded, and the answer is one line."""

import io
import pickle
import tracemalloc
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
    [b"]" * 3_000_000, b"]\x94" * 2_000_000, b"(" * 3_000_000, b"}" * 3_000_000 + b".", b"(" + b"K\x01" * 9_000_000],
)
def test_a_bomb_is_stopped(bomb: bytes):
    """One byte that makes an object of 60 is stopped long before memory is full."""
    tracemalloc.start()
    with pytest.raises(PickleError):
        load(io.BytesIO(b"\x80\x04" + bomb), lambda _: None)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * len(bomb) + (64 << 20)


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
