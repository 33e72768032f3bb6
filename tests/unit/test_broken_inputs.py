"""What broke uncork once: hostile recordings that cost a fault or a stray line."""

import json
import os
import warnings
from pathlib import Path

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


def test_a_pipe_is_refused_before_it_is_waited_for(tmp_path, capsys):
    """A pipe that nobody writes to would hang forever; one that somebody does cannot be read twice."""
    path = tmp_path / "pipe.json"
    os.mkfifo(path)
    assert main(["analyze", str(path)]) == 2
    assert "no plain file" in capsys.readouterr().err


def test_what_may_not_be_looked_at_is_told_in_a_line(tmp_path, capsys, monkeypatch):
    """A folder of another user's ends the command with a line that names it."""

    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refuse)
    assert main(["analyze", str(tmp_path / "theirs")]) == 2
    err = capsys.readouterr().err
    assert "theirs: cannot be opened (Permission denied)" in err
    assert "fault" not in err


def test_allocations_on_a_device_without_its_records_are_no_host_job(tmp_path):
    """Ten operators, ten allocations on a GPU, and no kernel: the device's records are missing, nothing is judged."""
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 1, "tid": 1, "ts": at * 100, "dur": 90}
        for at in range(10)
    ]
    events += [
        {
            "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": at * 100 + 5,
            "args": {"Addr": at, "Bytes": 512, "Total Allocated": 512, "Device Type": 1, "Device Id": 0},
        }
        for at in range(10)
    ]  # fmt: skip
    path = tmp_path / "stripped.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    out = tmp_path / "report.json"
    assert main(["analyze", "-q", "--json", str(out), str(path)]) == 0
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["verdict"]["bottleneck"] == "undetermined"
    assert "device-data-missing" in [issue["id"] for issue in report["quality"]]
