"""What broke uncork once: hostile recordings that cost a fault or a stray line."""

import io
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from uncork.cli import main
from uncork.cli.output import write
from uncork.readers.run_folder import read
from uncork.recording import Between


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


BAD_NUMBERS = ("x", [1], 2**64, -(2**70), float("inf"), float("nan"), None, "2" * 5000)
"""What a damaged file may hold in place of a number."""


def _run_folder(folder: Path, told: dict[str, object]) -> Path:
    """Return a run folder of one rank with three steps, with what one file of it tells."""
    rank = folder / "rank0"
    rank.mkdir(parents=True)
    (folder / "rank²").mkdir()
    (folder / "recording.json").write_text("{}", encoding="utf-8")
    (rank / "recording.json").write_text(json.dumps(told), encoding="utf-8")
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 1, "tid": 1, "dur": 90}
    (rank / "light.trace.json").write_text(
        json.dumps({"traceEvents": [{**event, "ts": at * 100} for at in range(30)]}), encoding="utf-8"
    )
    return folder


@pytest.mark.parametrize("bad", BAD_NUMBERS)
def test_a_run_folder_whose_numbers_are_none_is_read_without_them(tmp_path, bad):
    """Windows, devices, sizes, spans, samples and stacks with a number that is none lose that row, and only that."""
    told = {
        "windows": [{"name": "light", "step_ns": [7, bad], "start_ns": bad}, bad],
        "first_baseline": {"name": "baseline", "step_ns": [7], "faults": bad, "system_ns": 1, "cpu_ns": 1},
        "devices": [{"name": "D", "memory_bytes": bad, "compute_capability": [9, bad]}, bad],
        "modules": {"a": [1, 2, bad], "b": [1, 2, 3]},
        "garbage": {"steps": 1, "steps_ns": 1, "collections": [0, bad]},
    }
    folder = _run_folder(tmp_path / "run", told)
    span = {"stage": "fetch", "worker": 0, "start_ns": 5, "dur_ns": 6, "value": 7}
    lines = [json.dumps(span), json.dumps({**span, "start_ns": bad}), "[" * 100_000]
    (folder / "rank0" / "spans.jsonl").write_text("\n".join(lines), encoding="utf-8")
    rows = [{"where": "main", "file": "a.py", "line": 1, "function": "f", "count": count} for count in (2, bad)]
    (folder / "rank0" / "stacks.json").write_text(json.dumps(rows), encoding="utf-8")
    begun = [(1, "baseline", 0), (2, "baseline", 10), (3, "baseline", bad), (4, "light", 50), (5, "", 90)]
    steps = [[*one, 7] for one in begun]
    (folder / "rank0" / "steps.json").write_text(json.dumps({"rows": [*steps, bad, [bad]]}), encoding="utf-8")
    (folder / "samples.csv").write_text(
        f"t,s,v\n1,gpu,0.5\n{bad},gpu,1\n2,gpu,{bad}\n{'x' * 200_000}", encoding="utf-8"
    )
    (recording,) = read(folder)
    assert recording.run.windows[0].step_ns == (7,)
    assert recording.run.first_baseline.paging is None
    assert recording.devices[0].compute_capability is None
    assert dict(recording.run.modules) == {"b": (1, 2, 3)}
    assert recording.run.garbage is None
    assert (recording.run.windows[-1].name, recording.run.windows[-1].step_ns) == ("unwatched", (7,))  # of "" alone
    assert recording.run.between == Between(1, 7, 3)  # the second step and the 3 ns before it
    assert recording.loader.start_ns.tolist() == [5]
    assert recording.samples.series["gpu"][1].tolist()[0] == 0.5
    assert main(["analyze", "-q", str(folder)]) == 0


def test_a_text_that_no_file_can_hold_is_written_escaped(tmp_path):
    """Half a character in a run folder's command does not keep its report from being written as JSON."""
    folder = _run_folder(tmp_path / "run", {"settings": {"model": "\ud800"}})
    out = tmp_path / "report.json"
    assert main(["analyze", "-q", "--json", str(out), str(folder)]) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["run"]["settings"]["model"] == "\ud800"


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e999"])
def test_a_setting_that_is_no_number_is_left_unknown(tmp_path, number):
    """JSON has none of these, so no report could hold them."""
    folder = _run_folder(tmp_path / "run", {"settings": {"threads": 12345}})
    for path in folder.rglob("recording.json"):
        path.write_text(path.read_text().replace("12345", number))
    assert main(["analyze", "-q", "--json", str(tmp_path / "report.json"), str(folder)]) == 0
    assert json.loads((tmp_path / "report.json").read_text())["run"]["settings"]["threads"] is None


def test_what_is_no_plain_file_is_written_through_and_stays(tmp_path):
    """As root, putting a file in the place of /dev/null would break the machine; a link keeps leading where it led."""
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    link.symlink_to(file)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    for target in (pipe, link):
        write(str(target), "told")
    assert (os.read(reader, 9), file.read_text()) == (b"told", "told")
    assert pipe.is_fifo()
    assert link.is_symlink()
    os.close(reader)


def test_json_for_a_bare_locale_is_json(tmp_path, monkeypatch):
    """Where standard output spells ASCII only, letters beyond it are JSON's own escapes, astral ones in pairs."""
    text = '{"a": "·中😀"}'
    spelled = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", spelled)
    write("-", text)
    spelled.flush()
    assert json.loads(spelled.buffer.getvalue()) == {"a": "·中😀"}


@pytest.mark.parametrize("section", ["run", "tables", "memory", "comm"])
def test_a_report_whose_sections_are_none_is_incomplete(tmp_path, capsys, section):
    """A saved report with a list in place of a section is refused in a line; what nothing was measured for is none."""
    whole, broken = tmp_path / "whole.json", tmp_path / "broken.json"
    assert main(["analyze", "-q", "--json", str(whole), str(_run_folder(tmp_path / "run", {}))]) == 0
    told = json.loads(whole.read_text(encoding="utf-8"))
    whole.write_text(json.dumps({**told, "memory": None, "comm": None}), encoding="utf-8")
    broken.write_text(json.dumps({**told, section: [1]}), encoding="utf-8")
    assert main(["compare", str(whole), str(whole)]) == 0
    assert main(["compare", str(whole), str(broken)]) == 2
    assert f"its {section} cannot be [1]" in capsys.readouterr().err


@pytest.mark.parametrize("share", ["nan", "inf", "nan%", "5"])
def test_a_gate_that_could_never_fail_is_refused(tmp_path, capsys, share):
    """No step is slower by more than NaN, and who writes 5 means 5 %, not five times."""
    folder = str(_run_folder(tmp_path / "run", {}))
    assert main(["compare", folder, folder, "--fail-if-slower", share]) == 2
    assert "is no share" in capsys.readouterr().err


def test_a_full_disk_behind_standard_output_is_told_in_a_line():
    """Where the list of rules cannot be written, that is no fault of uncork's."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "uncork", "rules"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        "uncork: Cannot write <stdout>: No space left on device. Name a file in a folder that exists."
    ]


def test_a_name_of_a_file_commands_no_terminal(capsys):
    """Escapes in a path are not printed."""
    assert main(["analyze", "no\x1b[31m\u202esuch.json"]) == 2
    assert "no\ufffd[31m\ufffdsuch.json: is not there" in capsys.readouterr().err


def test_stacks_that_are_a_pipe_or_a_device_are_not_waited_for(tmp_path):
    """A pipe in place of the sampled stacks would hang forever, a device without end fill the memory."""
    folder = _run_folder(tmp_path / "run", {})
    os.mkfifo(folder / "rank0" / "stacks.json")
    (folder / "rank0" / "stacks-1.json").symlink_to("/dev/zero")
    (recording,) = read(folder)
    assert recording.stacks == ()


def test_a_link_to_itself_is_told_in_a_line(tmp_path, capsys):
    """Before Python 3.13 following it is a RuntimeError, not one of the system."""
    circle = tmp_path / "latest"
    circle.symlink_to(circle)
    assert main(["analyze", str(circle)]) == 2
    told = capsys.readouterr().err
    assert "latest" in told
    assert "fault" not in told
