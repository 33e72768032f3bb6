"""Regions that are open where a trace ends: no other trace begins before they close."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from tests.capture.runs import Run, no_stacks, record
from uncork.capture.left_open import LeftOpen, names_left_open
from uncork.capture.options import CaptureOptions
from uncork.capture.probes import TraceProbe
from uncork.capture.schedule import HELD_MOST_STEPS, Schedule
from uncork.capture.versions import OpenMarks, open_marks

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent
PROGRAM = str(HERE / "regions.py")
NEWER = """{"traceEvents": [
  {
    "ph": "X", "cat": "%s", "name": "%s", "pid": 1, "tid": 1,
    "ts": 5.250, "dur": 8.500
    ,
    "args": {
      "External id": 7,"Record function id": 0, %s"Ev Idx": 3
    }
  }
]}
"""
OLDER = """{"traceEvents": [
  {
    "ph": "X", "cat": "user_annotation", "name": "%s", "pid": 1, "tid": 1,
    "ts": %s, "dur": %s,
    "args": {
      "External id": 7,"Ev Idx": 3
    }
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "Mine", "pid": 1, "tid": 1,
    "ts": 6.000, "dur": 0.000,
    "args": {
      "External id": 8,"Ev Idx": 4
    }
  },
  {
    "name": "Record Window End", "ph": "i", "s": "g",
    "pid": "", "tid": "", "ts": 9.125
  }
]}
"""
BY_WORD = OpenMarks("word", "word")


class Record:
    """What it is of one call of a region that torch knows."""


class Region:
    """What a program's ``record_function`` looks like."""

    def __init__(self, name: str) -> None:
        self.name, self.record = name, Record()


class Function:
    """Stands for autograd's."""


def torch_of(version: str) -> SimpleNamespace:
    """Return as much of a torch as is asked here."""
    return SimpleNamespace(
        __version__=version,
        autograd=SimpleNamespace(profiler=SimpleNamespace(record_function=Region), Function=Function),
    )


def begun(run: Run) -> dict[str, tuple[int, int]]:
    """Return the pass and the first step of each window."""
    return {one["name"]: (one["pass"], one["first_step"]) for one in run.told(0)["windows"]}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (NEWER % ("user_annotation", "epoch", '"finished": false, '), ["epoch"]),
        (NEWER % ("user_annotation", "epoch", ""), []),
        (NEWER % ("cpu_op", 'a \\"b\\"', '"finished": false, '), ['a "b"']),
        (NEWER % ("cpu_op", 'a "b"', '"finished": false, '), ['a "b"']),
        (NEWER % ("cpu_op", "aten::mul", '"Addr": 94120699794112, "finished": false, '), []),
        (NEWER % ("python_function", "main", '"finished": false, '), []),
        (NEWER % ("user_annotation", "nn.Module: 0", '"finished": false, '), []),
        (NEWER % ("user_annotation", "nccl:all_reduce", '"finished": false, '), []),
        (NEWER % ("user_annotation", "gloo:recv", '"finished": false, '), ["gloo:recv"]),
    ],
)
def test_torch_marks_what_is_open(tmp_path: Path, text: str, names: list[str]) -> None:
    """Newer versions write a word; frames of Python, modules and collectives are no matter."""
    path = tmp_path / "trace.json"
    path.write_text(text)
    assert list(names_left_open(path, BY_WORD)) == names


@pytest.mark.parametrize(
    ("version", "region", "names"),
    [
        ("2.3.1+cu121", ("5", "0"), ["epoch"]),
        ("2.3.1", ("5", "4"), []),
        ("2.5.1", ("5.250", "0.000"), ["epoch"]),
        ("2.5.1", ("5.250", "3.875"), []),
        ("2.6.0", ("5.250", "3.875"), ["epoch"]),
        ("2.6.0", ("5.250", "3.874"), []),
    ],
)
def test_older_versions_write_no_length_or_the_longest(
    tmp_path: Path, version: str, region: tuple[str, str], names: list[str]
) -> None:
    """2.6 lets regions last until the end of the trace, at 9.125 here; a short operator may have no length too."""
    path = tmp_path / "trace.json"
    path.write_text(OLDER % ("epoch", *region))
    assert list(names_left_open(path, open_marks(torch_of(version)))) == names


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("2.14.1", NEWER % ("user_annotation", "part 'one'", '"finished": false, ')),
        ("2.13.0", NEWER % ("user_annotation", 'part "one"', '"finished": false, ')),
        ("2.6.0", OLDER % ('part "one"', "5.250", "3.875")),
    ],
)
def test_a_name_is_known_again(tmp_path: Path, version: str, text: str) -> None:
    """Torch makes single quotes of double ones since 2.14: the region is waited for all the same, and no longer."""
    assert_is_waited_for('part "one"', tmp_path / "trace.json", text, version)


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("2.15.0", NEWER % ("user_annotation", "unknown", '"finished": false, ')),
        ("2.5.1", OLDER % ("第一部分", "5.250", "0.000")),
    ],
)
def test_a_lost_name_is_known_again(tmp_path: Path, version: str, text: str) -> None:
    """Of a Chinese name torch makes "unknown" since 2.7."""
    assert_is_waited_for("第一部分", tmp_path / "trace.json", text, version)


def assert_is_waited_for(name: str, path: Path, text: str, version: str) -> None:
    """Assert that a region that a trace has left open holds other traces back as long as it lives."""
    path.write_text(text, encoding="utf-8")
    left_open, region = LeftOpen(), Region(name)
    left_open.add(path, torch_of(version))
    assert left_open.holds_back()
    del region
    assert not left_open.holds_back()


@pytest.mark.parametrize(("file", "holds"), [("torch/autograd/function.py", True), ("mine/function.py", False)])
def test_the_stack_shows_operators_where_no_trace_does(tmp_path: Path, file: str, *, holds: bool) -> None:
    """Before 2.8 an operator that runs Python shows by the file of torch below it, and is over when that has ended."""
    path, seen = tmp_path / "trace.json", []
    path.write_text(OLDER % ("epoch", "5", "4"))
    left_open = LeftOpen()

    def ends_inside() -> None:
        left_open.add(path, torch_of("2.3.1"))
        seen.append(left_open.holds_back())

    apply = eval(compile("lambda self, do: do()", file, "eval"))  # noqa: S307  # our own words
    apply(Slow(), ends_inside)
    assert [*seen, left_open.holds_back()] == [holds, False]


def test_what_no_file_tells_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Ctrl-C falls into the writing of a trace: which regions were open is not known, so each that lives counts."""
    monkeypatch.setattr(TraceProbe, "left_open", LeftOpen())
    probe, region = TraceProbe(torch_of("2.13.0"), Mock()), Region("epoch")
    monkeypatch.setattr(probe, "_write", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        probe.stop(tmp_path / "light.trace.json")
    assert probe.left_open.holds_back()
    del region
    assert not probe.left_open.holds_back()


class Slow(Function):
    """Stands for a function of autograd that the program wrote."""

    @staticmethod
    def forward(do: Callable[[], None]) -> None:
        """Compute."""
        do()


def closing(path: Path, call: Callable[[Callable[[], None]], object]) -> list[bool]:
    """Return whether traces are held back in an operator in which one ended, after it, and once more."""
    path.write_text(NEWER % ("cpu_op", "Slow", '"finished": false, '))
    left_open, seen = LeftOpen(), []

    def ends_inside() -> None:
        left_open.add(path, torch_of("2.13.0"))
        seen.append(left_open.holds_back())

    call(ends_inside)
    before = LeftOpen()
    vars(before).update(vars(left_open))
    with ThreadPoolExecutor(1) as other:
        assert other.submit(before.holds_back).result()
    return [*seen, left_open.holds_back(), left_open.holds_back()]


def test_an_operator_that_c_calls_has_closed_once_its_forward_is_off_the_stack(tmp_path: Path) -> None:
    """From 2.14 on no frame of torch's is there; another's function of the same name tells nothing."""
    assert closing(tmp_path / "trace.json", Slow.forward) == [True, False, False]
    assert closing(tmp_path / "trace.json", lambda do: do()) == [True, True, True]


@pytest.mark.parametrize(
    ("file", "called", "holds"),
    [
        ("torch/autograd/function.py", Slow, [True, False, False]),
        ("torch/autograd/function.py", Slow(), [True, False, False]),
        ("torch/_ops.py", SimpleNamespace(_schema=SimpleNamespace(name="Slow")), [True, False, False]),
        ("torch/autograd/function.py", Region, [True, True, True]),
        ("mine/function.py", Slow, [True, True, True]),
    ],
)
def test_an_operator_has_closed_once_its_caller_is_off_the_stack(
    tmp_path: Path, file: str, called: object, holds: list[bool]
) -> None:
    """The trace shows that "Slow" is open. Is it the one that torch's function calls, it is over when that has ended.

    Another's end is never seen; nor is any seen from another thread.
    """
    name = "cls" if isinstance(called, type) else "self"
    run = eval(compile(f"lambda {name}, do: do()", file, "eval"))  # noqa: S307  # our own words
    assert closing(tmp_path / "trace.json", partial(run, called)) == holds


@pytest.mark.parametrize("size", range(96, 112))
def test_a_mark_may_lie_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """The word is at 198 to 213, and the second piece ends at 192 to 222: most cut it."""
    monkeypatch.setattr("uncork.capture.files.PIECE_BYTES", size)
    path = tmp_path / "trace.json"
    path.write_text(NEWER % ("user_annotation", "epoch", '"finished": false, '))
    assert list(names_left_open(path, BY_WORD)) == ["epoch"]


def test_a_trace_waits_until_the_region_closes(tmp_path: Path) -> None:
    """The light window holds the steps 7 to 9; the deep one would begin at 12, but the region of 8 ends at 30."""
    run = record(tmp_path / "run", [PROGRAM, "steps", "39", "8", "30"], cwd=HERE)
    assert run.code == 0, run.err
    told = begun(run)
    assert (told["light"], told["functions"]) == ((1, 7), (1, 10))
    assert told["deep"][1] in {30, 31}
    assert "region-left-open" not in run.told(0)["notes"]


def test_a_region_without_end_leaves_the_deep_window_out(tmp_path: Path) -> None:
    """It is told; the other windows are there."""
    run = record(tmp_path / "run", [PROGRAM, "steps", "39", "8", "99"], cwd=HERE)
    assert run.code == 0, run.err
    assert set(begun(run)) == {"warmup", "baseline", "light", "functions", "baseline2"}
    assert "region-left-open" in run.told(0)["notes"]


def test_a_region_that_began_before_does_not_matter(tmp_path: Path) -> None:
    """It opened while no profiler was on, which leaves nothing in torch's memory."""
    run = record(tmp_path / "run", [PROGRAM, "steps", "39", "2", "35"], cwd=HERE)
    assert begun(run)["deep"] == (1, 12)


def test_a_decorator_s_region_is_a_new_one_with_each_call(tmp_path: Path) -> None:
    """Both traces end inside one, whose object lives on: the next call has another, and nothing waits for the first."""
    run = record(tmp_path / "run", [PROGRAM, "decorated"], cwd=HERE)
    assert run.code == 0, run.err
    assert {"light", "deep"} <= set(begun(run))
    assert run.told(0)["notes"] == no_stacks()


def test_an_operator_in_python_is_seen_once(tmp_path: Path) -> None:
    """It lasts until the program ends, so no second trace begins."""
    run = record(tmp_path / "run", [PROGRAM, "operator"], cwd=HERE)
    assert (run.code, run.out) == (0, "torch.Size([64])\n")
    assert set(begun(run)) == {"light"}
    assert "region-left-open" in run.told(0)["notes"]


def test_operators_in_python_that_end_hold_traces_back_no_longer(tmp_path: Path) -> None:
    """Four fifths of the time are spent in short ones, so that windows of fixed time end inside; all are recorded."""
    run = record(tmp_path / "run", [PROGRAM, "operators", str(tmp_path / "run")], cwd=HERE)
    assert (run.code, run.out) == (0, "recorded\n"), run.err
    assert {"light", "functions", "deep"} <= set(begun(run))
    assert run.told(0)["notes"] == no_stacks()


def test_a_trace_that_ends_amid_a_collection_holds_nothing_back(tmp_path: Path) -> None:
    """The mark of the collection is ours and ends with the trace, so the steps after it are recorded in every way."""
    run = record(tmp_path / "run", [PROGRAM, "collection"], cwd=HERE)
    assert run.code == 0, run.err
    assert {"light", "deep"} <= set(begun(run))
    assert run.told(0)["notes"] == no_stacks()


def test_a_trace_waits_until_a_call_of_a_module_ends(tmp_path: Path) -> None:
    """The region of its name is ours: the call begins in the light window and holds thirty steps."""
    run = record(tmp_path / "run", [PROGRAM, "module"], cwd=HERE)
    assert run.code == 0, run.err
    told = begun(run)
    assert told["functions"][1] - told["light"][1] <= 4
    assert told["deep"][1] - told["light"][1] >= 30


@pytest.mark.parametrize(("then_exit", "over"), [(True, True), (False, False)])
def test_the_end_does_not_wait_for_a_region(*, then_exit: bool, over: bool) -> None:
    """``--then exit`` gives up after so many steps; without it the program runs on anyway, and so does the wait."""
    schedule = Schedule(CaptureOptions(then_exit=then_exit))
    schedule.begin(SimpleNamespace(), {})
    taken = []
    while (stage := schedule.take_next(5, held=True)) is not None:
        taken.append(stage.name)
    assert taken == ["warmup", "baseline", "functions", "settle", "baseline2"]
    assert (schedule.held_since, schedule.is_done()) == (5, False)
    assert schedule.take_next(4 + HELD_MOST_STEPS, held=True) is None
    assert not schedule.is_done()
    assert schedule.take_next(5 + HELD_MOST_STEPS, held=True) is None
    assert schedule.is_done() == over


def test_a_loop_that_begins_anew_waits_for_nothing() -> None:
    """A region that held traces back in the loop before is not told of this one, which may end before its first."""
    schedule = Schedule(CaptureOptions())
    schedule.begin(SimpleNamespace(), {})
    while schedule.take_next(5, held=True) is not None:
        pass
    schedule.forget()
    schedule.begin(SimpleNamespace(), {})
    first = schedule.take_next(0)
    assert (first and first.name, schedule.held_since) == ("warmup", None)
