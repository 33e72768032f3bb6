"""Bad input ends in one clear line on standard error and exit code 2, never in a traceback."""

import argparse
import errno
import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from uncork.capture.supervisor import CaptureResult
from uncork.cli import main, parser
from uncork.cli.output import spare_inputs
from uncork.cli.run import _report
from uncork.locale import say
from uncork.readers import expand
from uncork.testing import write_traces


@pytest.fixture
def sketched_trace(tmp_path):
    """Return a trace of two steps of 10 ms with one operator each."""
    (path,) = write_traces("steps 2 x 10ms\n  main 0ms..9ms aten::mm\n", tmp_path)
    return path


def fails_in_one_line(capsys, *argv):
    """Run the command line, hold it to exit code 2 and one line; return the line."""
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("uncork: ")
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err
    assert "fault of uncork's own" not in err
    return err


@pytest.mark.parametrize("option", ["--html={0}", "--json={0}", "--markdown={0}", "--export=perfetto={0}"])
def test_a_report_takes_no_recordings_place(option, sketched_trace, tmp_path, capsys):
    """What is read is not written over, whatever name it is called by; every other file may be."""
    link = tmp_path / "link.json"
    link.symlink_to(sketched_trace)
    before = sketched_trace.read_bytes()
    assert str(link) in fails_in_one_line(capsys, "analyze", str(sketched_trace), option.format(link))
    (tmp_path / "old.json").write_text("old", encoding="utf-8")
    assert main(["analyze", "-q", str(sketched_trace), option.format(tmp_path / "old.json")]) == 0
    assert sketched_trace.read_bytes() == before
    capsys.readouterr()
    both = ["compare", str(sketched_trace), str(sketched_trace), "--json", str(link)]
    assert str(link) in fails_in_one_line(capsys, *both)


@pytest.mark.parametrize(
    ("given", "report"), [("traces", "old.json"), ("traces/*.json", "old.md"), ("run", "old.json")]
)
def test_a_report_takes_no_place_within_a_folder_that_is_read(given, report, sketched_trace, tmp_path, capsys):
    """A folder's and a pattern's recordings, a run folder's parts are spared; a report is written anew."""
    for home in ("traces", "run/rank0"):
        (tmp_path / home).mkdir(parents=True)
        (tmp_path / home / "trace.json").write_bytes(sketched_trace.read_bytes())
    (tmp_path / "run/recording.json").write_text("{}", encoding="utf-8")
    folder = tmp_path / Path(given).parts[0]
    inputs = [file for file in folder.rglob("*") if file.is_file()]
    before = [file.read_bytes() for file in inputs]
    for target in inputs:
        for option in ("--json", "--html"):
            told = fails_in_one_line(capsys, "analyze", str(tmp_path / given), option, str(target))
            assert f"{target} is one of the recordings" in told
    assert [file.read_bytes() for file in inputs] == before
    (folder / report).write_text('{"schema": 0}', encoding="utf-8")
    spare_inputs(
        parser(["analyze"]).parse_args(["analyze", "x", "--json", str(folder / report)]), str(tmp_path / given)
    )


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (("analyze", ""), "PATH"),
        (("analyze", "trace.json", "--json", ""), "--json"),
        (("analyze", "trace.json", "--html="), "--html"),
        (("compare", "trace.json", ""), "AFTER"),
        (("open", ""), "RUN"),
        (("run", "--out", "", "train.py"), "--out"),
    ],
)
def test_an_empty_word_is_no_path(argv, name, sketched_trace, monkeypatch, capsys):
    """An empty word, as a variable that is not set gives one, is not taken for the folder one is in."""
    monkeypatch.chdir(sketched_trace.parent)
    assert name in fails_in_one_line(capsys, *argv)


@pytest.mark.parametrize("program", [(), ("",), ("-m", "")])
def test_an_empty_word_is_no_program(program, capsys):
    """What is to be run is asked for; empty words of the program's own stay its own."""
    assert "no program to run" in fails_in_one_line(capsys, "run", *program)
    assert parser(["run"]).parse_args(["run", "train.py", "", "--tag", ""]).program == ["train.py", "", "--tag", ""]


CONTENTS = {
    "empty.json": b"",
    "words.txt": b"this is no trace\n",
    "page.html": b"<!doctype html><html><body>404</body></html>",
    "pointer.json": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n",
    "number.json": b"42",
    "other.json": b'{"hello": [1, 2, 3]}',
    "no-events.json": b'{"traceEvents": []}',
    "cut.json.gz": gzip.compress(b'{"traceEvents": [' + b" " * 1000)[:20],
    "random.bin": bytes(range(256)) * 4,
}


def test_a_packed_file_without_content_is_not_called_empty(tmp_path, capsys):
    """Half of a zstd frame has bytes and no content: a copy that was cut off, which an empty file is not."""
    zstandard = pytest.importorskip("zstandard")
    packed = zstandard.compress(b'{"traceEvents": [' + bytes(range(32, 127)) * 9)
    (tmp_path / "half.json.zst").write_bytes(packed[: len(packed) // 2])
    assert "unpacks to nothing" in fails_in_one_line(capsys, "analyze", str(tmp_path / "half.json.zst"))
    (tmp_path / "none.json").touch()
    assert "is empty" in fails_in_one_line(capsys, "analyze", str(tmp_path / "none.json"))


@pytest.mark.parametrize("name", CONTENTS)
def test_files_that_hold_no_recording(name, tmp_path, capsys):
    """Each kind of file that is no recording is told apart by content and named in the line."""
    path = tmp_path / name
    path.write_bytes(CONTENTS[name])
    assert name in fails_in_one_line(capsys, "analyze", str(path))


@pytest.mark.parametrize("name", CONTENTS)
def test_refusals_are_told_in_chinese(name, tmp_path, capsys):
    """Under --lang zh the line is Chinese, with the file's name as it is."""
    path = tmp_path / name
    path.write_bytes(CONTENTS[name])
    line = fails_in_one_line(capsys, "analyze", str(path), "--lang", "zh")
    assert name in line
    assert len(re.findall(r"[\u4e00-\u9fff]", line)) > 5
    assert not re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,} [a-z]{2,}", line.replace(str(path), "")), (
        "no English words in a row"
    )


def test_other_refusals_are_told_in_chinese_too(sketched_trace, tmp_path, capsys):
    """What was typed wrong is told in Chinese as well."""
    for argv in (
        ("analyze", str(tmp_path / "nowhere.json"), "--lang", "zh"),
        ("analyze", str(sketched_trace), "--rank", "7", "--lang", "zh"),
        ("analyze", str(sketched_trace), "--sort", "colour", "--lang", "zh"),
        ("explain", "no-such-rule", "--lang", "zh"),
        ("open", str(tmp_path / "nowhere"), "--lang", "zh"),
    ):
        line = fails_in_one_line(capsys, *argv)
        assert len(re.findall(r"[\u4e00-\u9fff]", line)) > 3, line


def test_a_missing_file(tmp_path, capsys):
    """The path is named."""
    assert "nowhere.json" in fails_in_one_line(capsys, "analyze", str(tmp_path / "nowhere.json"))


def test_a_folder_without_traces(tmp_path, capsys):
    """An empty folder says so."""
    assert tmp_path.name in fails_in_one_line(capsys, "analyze", str(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path, capsys):
    """Permissions are named, not traced back."""
    path = tmp_path / "secret.json"
    path.write_bytes(b"{}")
    path.chmod(0)
    fails_in_one_line(capsys, "analyze", str(path))


def test_a_rule_that_does_not_exist_names_the_nearest(capsys):
    """A slip of the pen is helped."""
    assert "starved" in fails_in_one_line(capsys, "explain", "starvd")


def test_no_program_to_run(capsys):
    """Run needs a program."""
    assert "uncork run train.py" in fails_in_one_line(capsys, "run")


@pytest.mark.skipif(os.name == "nt", reason="a folder in use cannot be removed there")
def test_a_folder_that_is_gone_starts_no_program(tmp_path, capsys, monkeypatch):
    """A shell may still stand in a folder that was removed."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert "cd FOLDER" in fails_in_one_line(capsys, "run", str(tmp_path / "train.py"))


def test_a_program_that_does_not_exist(tmp_path, capsys):
    """The script is looked for before anything is made."""
    line = fails_in_one_line(capsys, "run", "-o", str(tmp_path / "run"), str(tmp_path / "missing.py"))
    assert "missing.py" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("time", ["soon", "0s", "-3s", "s"])
def test_a_time_that_is_none(time, capsys):
    """60s, 5m and 1h are times."""
    assert "60s" in fails_in_one_line(capsys, "run", f"--for={time}", "train.py")


def test_an_output_that_cannot_be_written(tmp_path, capsys, sketched_trace):
    """A folder that does not exist is named, and nothing is left behind."""
    target = tmp_path / "no" / "report.json"
    assert "report.json" in fails_in_one_line(capsys, "analyze", str(sketched_trace), "--json", str(target))
    assert not target.parent.exists()


def test_a_folder_that_takes_no_files_is_named(capsys, sketched_trace, tmp_path, monkeypatch):
    """On a disk that is mounted for reading nothing can be made, and nothing removed either."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("write_text", "unlink"):
        monkeypatch.setattr(Path, name, refuse)
    assert "report.json" in fails_in_one_line(
        capsys, "analyze", str(sketched_trace), "--json", str(tmp_path / "report.json")
    )


def test_an_unknown_sort_key(capsys, sketched_trace):
    """The keys that exist are listed."""
    assert "cpu_self" in fails_in_one_line(capsys, "analyze", str(sketched_trace), "--sort", "size")


def test_usage_errors_exit_2(capsys):
    """Argparse's own errors have the same exit code, and are one line too."""
    assert "PATH" in fails_in_one_line(capsys, "analyze")


@pytest.mark.parametrize(("words", "told"), [([], "start here:"), (["--lang", "zh"], "从这里开始")])
def test_the_bare_command_shows_where_to_start(capsys, words, told):
    """Who types `uncork` alone asks for help, in a language at most; a script that lost its verb still fails."""
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("words", [["rules"], ["run", "--help"]])
def test_a_terminal_that_knows_ascii_alone_is_spoken_to(words):
    """What it cannot show is spelt as JSON does; nothing ends in a fault."""
    done = subprocess.run(
        [sys.executable, "-m", "uncork", *words, "--lang", "zh"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, check=True,
    )  # fmt: skip
    assert b"\\u5185" in done.stdout or b"\\u7528" in done.stdout
    assert done.stderr == b""


def test_the_manual_shows_no_names_for_programs(capsys):
    """The first advice of `starved` is named workers in its page; people read its title alone."""
    assert main(["explain", "starved", "--lang", "en"]) == 0
    assert "\n### Load in worker processes" in capsys.readouterr().out


def test_the_language_stands_before_or_after_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """``uncork --lang zh rules`` and ``uncork rules --lang zh`` say the same; of two, the verb's own counts."""
    told = []
    for words in (["--lang", "zh", "rules"], ["rules", "--lang", "zh"], ["--lang", "en", "rules", "--lang", "zh"]):
        assert main(words) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] == told[2]
    assert "内存" in told[0]


@pytest.mark.skipif(os.name == "nt", reason="closes streams as a POSIX shell does")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_fault(sketched_trace, closed):
    """Services start programs without standard streams: what is told goes nowhere, the exit code stands."""
    for path, expected in ((sketched_trace, 0), ("missing.json", 2)):
        line = f'exec "$0" -m uncork analyze "$1" {closed}'
        done = subprocess.run(["/bin/sh", "-c", line, sys.executable, str(path)], capture_output=True, check=False)
        assert (done.returncode, b"fault" in done.stderr) == (expected, False)


def test_the_next_command_can_be_typed_as_it_is_told(sketched_trace, tmp_path, capsys, monkeypatch):
    """A path that a shell would read otherwise is quoted."""
    monkeypatch.setenv("COLUMNS", "500")  # no line ends at the path's blank
    path = tmp_path / "a b; c.json"
    path.write_bytes(sketched_trace.read_bytes())
    assert main(["analyze", str(path)]) == 0
    assert f"uncork open '{path}'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("exit_code", "problem", "key"),
    [
        (1, "no-steps", "note.failed-early"),
        (3, "torch-not-imported", "note.failed-early"),
        (0, "no-steps", "note.no-steps"),
        (1, "disk-full", "note.disk-full"),
    ],
)
def test_a_program_that_fails_at_once_is_not_told_to_mark_its_steps(
    exit_code: int, problem: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its own message says why; whoever is told to call uncork.step() there looks in the wrong place."""
    _report(CaptureResult(Path("run"), exit_code, problem=problem), argparse.Namespace(lang="en"))
    assert capsys.readouterr().err == f"uncork: {say('en', key, {'exit_code': exit_code})}\n"


def test_runs_of_a_folder_are_not_taken_for_ranks_of_one(tmp_path, capsys):
    """Two runs that both have rank 0 are named, the latest last; two machines' are one job's, a link is none."""
    for number, name in enumerate(("second", "first")):  # by when they were written, not by name
        (tmp_path / name / "rank0").mkdir(parents=True)
        (tmp_path / name / "recording.json").write_text("{}")
        os.utime(tmp_path / name / "recording.json", (2_000_000 - number, 2_000_000 - number))
    line = fails_in_one_line(capsys, "analyze", str(tmp_path))
    assert f"uncork compare {tmp_path / 'first'} {tmp_path / 'second'}" in line
    (tmp_path / "second" / "rank0").rename(tmp_path / "second" / "rank1")
    assert [path.name for path in expand([tmp_path])] == ["first", "second"]
    (tmp_path / "latest").symlink_to("second")
    assert [path.name for path in expand([tmp_path])] == ["first", "latest"]
