"""What broke uncork once: hostile recordings that cost a fault or a stray line."""

import json
import warnings

from uncork.cli import main


def test_a_text_longer_than_any_memory_is_cut_off(tmp_path, capsys):
    """A pickle that announces 2**60 bytes is refused in a line; nothing of that size is asked of the system."""
    path = tmp_path / "big.pickle"
    path.write_bytes(b"\x80\x04\x8e" + (2**60).to_bytes(8, "little") + b"a.")
    assert main(["analyze", str(path)]) == 2
    assert "cut off" in capsys.readouterr().err


def test_numbers_beyond_an_integer_are_left_out_silently(tmp_path, capsys):
    """A collective of 1e30 elements is one of unknown size; numpy warns nobody."""
    sent = {"Collective name": "allreduce", "In msg nelems": -1, "Out msg nelems": 1e30, "Group size": 0}
    kernel = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 20, "args": sent}
    events = [{**kernel, "ts": at * 100, "dur": 90} for at in range(20)]
    path = tmp_path / "huge.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert main(["analyze", "-q", str(path)]) == 0
    assert told == []
    assert capsys.readouterr().err == ""
