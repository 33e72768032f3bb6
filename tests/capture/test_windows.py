"""What the windows hold, and how they adapt."""

import gzip
import json
import signal
from collections import Counter
from pathlib import Path

import pytest
import torch

from tests.capture.runs import Run, plain, record
from uncork import readers
from uncork.capture.options import CaptureOptions
from uncork.capture.plan import Stage
from uncork.capture.schedule import Schedule
from uncork.capture.versions import why_no_stacks
from uncork.capture.windows import Window
from uncork.measure import Rank
from uncork.measure.module_memory import ModuleMemory, ModuleSizes
from uncork.recording import Recording

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent
PROGRAMS = str(HERE / "programs.py")
TRAINING = str(HERE / "training.py")


def names_in(run: Run, window: str) -> Counter[str]:
    """Return how often each name occurs among the complete events of a window's trace."""
    with gzip.open(run.folder / "rank0" / f"{window}.trace.json.gz") as file:
        return Counter(event["name"] for event in json.load(file)["traceEvents"] if event["ph"] == "X")


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Record quick steps until every window is there: that needs about a hundred and sixty of the two hundred."""
    argv = [TRAINING, "loader", "200", "0", "0.0005", "fork"]
    run = record(tmp_path_factory.mktemp("long") / "run", argv, cwd=HERE, then_exit=True)
    assert run.code == 0, run.err
    return run


@pytest.fixture(scope="module")
def recording(long_run: Run) -> Recording:
    """Return the recording of the long run."""
    return readers.read(long_run.folder)[0]


def test_long_jobs_get_longer_windows(long_run: Run) -> None:
    """The second pass replaces every window but the warm-up with a longer one; of quick steps the third holds more."""
    told = long_run.told(0)
    assert [(one["name"], one["pass"], len(one["step_ns"])) for one in told["windows"]] == [
        ("warmup", 1, 3),
        ("baseline", 2, 20),
        ("light", 3, 30),
        ("functions", 2, 10),
        ("deep", 3, 8),
        ("baseline2", 2, 20),
    ]
    assert told["complete"]
    assert 40 + 20 + 10 + 10 + 2 + 20 + 30 + 8 <= told["steps_seen"] < 200


def test_what_came_before_the_steps_is_timed(long_run: Run) -> None:
    """Python begins, imports torch, sets up and makes its first step, in that order; the step is the first of all."""
    told = long_run.told(0)["startup"]
    assert list(told) == ["python_ns", "torch_ns", "torch_ended_ns", "step_ns", "step_ended_ns"]
    assert sorted(told.values()) == list(told.values())
    steps = json.loads((long_run.folder / "rank0" / "steps.json").read_text())["rows"]
    assert [told["step_ns"], told["step_ended_ns"] - told["step_ns"]] == steps[0][2:4]


def test_traces_hold_one_mark_per_step(long_run: Run) -> None:
    """Thirty marked steps in the light window, eight in the deep one, as torch's own schedule would write them."""
    for window, steps in (("light", 30), ("deep", 8)):
        marks = {name: count for name, count in names_in(long_run, window).items() if name.startswith("ProfilerStep#")}
        assert len(marks) == steps
        assert set(marks.values()) == {1}


def test_traces_hold_module_paths(long_run: Run) -> None:
    """Each module's call is a region named by its path, once per step."""
    names = names_in(long_run, "light")
    model = "nn.Module: Sequential"
    assert {name: names[name] for name in (model, f"{model}.0", f"{model}.3")} == {
        "nn.Module: Sequential": 30,
        "nn.Module: Sequential.0": 30,
        "nn.Module: Sequential.3": 30,
    }


def test_deep_window_holds_stacks_shapes_and_memory(recording: Recording) -> None:
    """The deep window says where, of what shape, and what was allocated; the light one is free of all three."""
    assert recording.deep is not None
    why = why_no_stacks(torch)
    safe = not why
    assert recording.run is not None
    assert recording.run.notes == ((why,) if why else ())
    assert (recording.deep.flags.stacks, recording.deep.flags.shapes, recording.deep.flags.memory) == (safe, True, True)
    assert recording.flags.stacks is False
    assert recording.deep.events is not None
    frames = recording.deep.events.name_is(lambda name: "training.py" in name and name.endswith("__getitem__"))
    assert bool(frames.any()) is safe


def test_functions_are_of_the_program_only(recording: Recording) -> None:
    """CProfile counted ten steps of four items each, and lists no function of the recorder."""
    functions = recording.functions
    assert functions is not None
    named = zip(functions.name, functions.file, functions.calls.tolist(), strict=True)
    assert [calls for name, file, calls in named if name == "__getitem__" and file.endswith("training.py")] == [40]
    assert not [file for file in functions.file if "uncork/capture" in file]


def test_settings_tell_of_the_live_objects(recording: Recording) -> None:
    """Model, loader and optimiser as the program built them: 8·16+16 + 16·3+3 parameters of 4 bytes."""
    assert recording.run is not None
    told = recording.run.settings
    assert (told["num_workers"], told["batch_size"], told["batches"]) == (0, 4, 200)
    assert (told["parameters"], told["parameter_bytes"]) == (195, 780)
    assert told["optimizer_state_bytes"] == 2 * 780 + 4 * 4
    assert told["optimizer"] == "AdamW"
    assert str(told["dataset_file"]).endswith("training.py")
    assert str(told["collate_file"]).endswith("torch/utils/data/_utils/collate.py")
    assert (
        Path(TRAINING)
        .read_text()
        .splitlines()[int(str(told["dataset_line"])) - 1]
        .strip()
        .startswith("def __getitem__")
    )


def test_what_each_module_holds(recording: Recording) -> None:
    """8·16+16 and 16·3+3 parameters, as many gradients, two moments and a count of 4 bytes per tensor for Adam.

    For the backward pass four rows of 16 floats: what ReLU returns; the dropout's noise and what it returns.
    """
    found = {row.module: row for row in ModuleMemory.of(Rank(recording)).modules}
    assert found["Sequential"] == ModuleSizes("Sequential", 768, 780, 780, 1576)
    assert found["Sequential.0"] == ModuleSizes("Sequential.0", 0, 576, 576, 1160)
    assert [found[f"Sequential.{part}"].activation_bytes for part in (1, 2, 3)] == [256, 512, 0]


@pytest.mark.alone
def test_times_of_steps_agree_with_the_trace(long_run: Run, recording: Recording) -> None:
    """The light window's own step times and its trace's step marks tell the same, to a tenth."""
    events = recording.events
    assert events is not None
    marks = events.dur_ns[events.name_is(lambda name: name.startswith("ProfilerStep#"))]
    light = next(one for one in long_run.told(0)["windows"] if one["name"] == "light")
    assert abs(int(marks.sum()) - sum(light["step_ns"])) < 0.1 * sum(light["step_ns"])


@pytest.mark.parametrize(
    ("steps", "windows"), [(4, ["warmup", "baseline"]), (10, ["warmup", "baseline", "light"]), (13, 5), (20, 6)]
)
def test_short_jobs_get_what_fits(tmp_path: Path, steps: int, windows: list[str] | int) -> None:
    """Every whole step counts: ten steps reach the light window, thirteen the deep one, twenty all of them."""
    run = record(tmp_path / "run", [TRAINING, "loader", str(steps), "0", "0", "fork"], cwd=HERE)
    assert (run.window_names() if isinstance(windows, list) else len(run.window_names())) == windows
    assert run.result()["problem"] == ("too-short" if steps < 8 else "")


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_worker_stages(tmp_path: Path, start: str) -> None:
    """Each stage of two workers is timed, whatever starts them: 24 batches, their items' cost in `fetch`."""
    run = record(tmp_path / "run", [TRAINING, "loader", "24", "2", "0.004", start], cwd=HERE)
    assert run.code == 0, run.err
    (recording,) = readers.read(run.folder)
    spans = recording.loader
    assert spans is not None
    count = Counter((spans.stages[stage], int(worker)) for stage, worker in zip(spans.stage, spans.worker, strict=True))
    for stage in ("fetch", "item_max", "collate", "serialise"):
        assert {worker: number for (name, worker), number in count.items() if name == stage} == {0: 12, 1: 12}
    assert count["next", -1] == 25
    assert count["deserialise", -1] == 24
    fetch = spans.dur_ns[spans.stage == spans.stages.index("fetch")]
    assert fetch.min() >= 4 * 4_000_000
    # Items compute: in all of that time they have a core or wait for one.
    assert {worker: number for (name, worker), number in count.items() if name == "ran"} == {0: 12, 1: 12}
    ran = spans.stage == spans.stages.index("ran")
    assert (spans.dur_ns + spans.value)[ran].sum() > 0.8 * fetch.sum()
    busiest = max((one for one in recording.stacks if one.where == "worker"), key=lambda one: one.count)
    assert (busiest.function, Path(busiest.file).name) == ("__getitem__", "training.py")


def test_validation_is_no_step(tmp_path: Path) -> None:
    """Marks that turn out to lie in a validation are taken out of the trace; 24 training steps remain.

    The light window holds one validation: its four fetches and the next epoch's first each begin anew.
    """
    run = record(tmp_path / "run", [PROGRAMS, "validating"], cwd=HERE)
    told = run.told(0)
    assert told["steps_seen"] == 24
    assert json.loads((run.folder / "rank0" / "steps.json").read_text())["moved"] == list(range(1, 26, 2))
    names = names_in(run, "light")
    assert names["uncork: between steps"] == 5
    assert sum(count for name, count in names.items() if name.startswith("ProfilerStep#")) == 3


def test_forwards_before_a_training_end_no_program(tmp_path: Path) -> None:
    """An optimiser that made no step yet will train: twelve forwards before its first one are not the ten steps."""
    run = record(tmp_path / "run", [PROGRAMS, "many_forwards"], cwd=HERE, steps=10)
    assert run.told(0)["steps_seen"] == 10
    assert (run.out, run.told(0)["step_rule"]) == ("updates 10\n", "optimizer")


@pytest.mark.parametrize("steps", [8, 9])
def test_a_step_that_the_end_cuts_is_no_step(tmp_path: Path, steps: int) -> None:
    """The light window begins after the seventh update, and the program ends inside a step: whole ones alone count."""
    run = record(tmp_path / "run", [PROGRAMS, "ends_inside", str(steps)], cwd=HERE)
    light = next(one for one in run.told(0)["windows"] if one["name"] == "light")
    names = names_in(run, "light")
    marks = sum(count for name, count in names.items() if name.startswith("ProfilerStep#"))
    assert (len(light["step_ns"]), marks, names["uncork: between steps"]) == (steps - 7, steps - 7, 1)


def test_a_late_optimiser_costs_no_window(tmp_path: Path) -> None:
    """What looks like another loop at the very end is too short to replace what was recorded of the first."""
    run = record(tmp_path / "run", [PROGRAMS, "afterthought"], cwd=HERE)
    assert {"baseline", "light", "functions", "deep"} <= set(run.window_names())


def test_forwards_are_steps_in_traces_too(tmp_path: Path) -> None:
    """Without a loader, the outermost forward begins each step: also while traces are recorded, with its own region."""
    run = record(tmp_path / "run", [PROGRAMS, "token_by_token"], cwd=HERE, then_exit=True)
    told = {one["name"]: one for one in run.told(0)["windows"]}
    assert run.told(0)["step_rule"] == "inference"
    assert [len(told[name]["step_ns"]) for name in ("light", "functions", "deep")] == [30, 10, 20]
    light = names_in(run, "light")
    assert [light[f"nn.Module: Sequential{part}"] for part in ("", ".0", ".1")] == [30, 30, 30]
    assert sum(light[f"ProfilerStep#{number}"] for number in range(1, 199)) == 30


def test_updates_in_bursts_are_one_step(tmp_path: Path) -> None:
    """Four updates come after 40 ms of other work: a step is all of that, in traces as on the clock."""
    run = record(tmp_path / "run", [PROGRAMS, "in_bursts"], cwd=HERE)
    told = run.told(0)
    assert "steps-gathered" in told["notes"]
    assert all(taken >= 40_000_000 for one in told["windows"] for taken in one["step_ns"][1:])
    light = names_in(run, "light")
    marks = sum(light[f"ProfilerStep#{number}"] for number in range(1, 99))
    assert marks >= 2
    assert light["Optimizer.step#SGD.step"] == 4 * marks


def test_windows_of_another_loop_replace_the_first_ones() -> None:
    """Once the new loop has a light window, the deep one and the functions of the old loop are worthless."""
    schedule = Schedule(CaptureOptions())
    old = {name: Window(Stage(name, 1, 1, 0), 1, 0) for name in ("warmup", "light", "functions", "deep")}
    assert [schedule.keep(window) for window in old.values()] == [[], [], [], []]
    schedule.forget()
    assert schedule.keep(Window(Stage("warmup", 1, 1, 0), 1, 0)) == []
    assert schedule.recorded() == old
    new = Window(Stage("light", 1, 1, 0), 9, 0)
    assert schedule.keep(new) == ["functions.pstats", "deep.trace.json"]
    assert list(schedule.recorded()) == ["warmup", "light"]
    assert schedule.recorded()["light"] is new


def test_steps_of_many_calls_are_recorded_without_stacks(tmp_path: Path) -> None:
    """A step of a quarter of a million Python calls would fill memory with stacks: they are left out, and we say so."""
    run = record(tmp_path / "run", [PROGRAMS, "chatty"], cwd=HERE)
    assert "stacks-too-many" in run.told(0)["notes"]
    deep = next(one for one in run.told(0)["windows"] if one["name"] == "deep")
    assert deep["trace_bytes"] < 5_000_000


@pytest.mark.parametrize("program", ["huge_steps", "huge_silent_steps"])
def test_huge_steps_are_cut(tmp_path: Path, program: str) -> None:
    """A step too large for a light window is cut inside; the part that was seen is kept, and no deep window follows."""
    run = record(tmp_path / "run", [PROGRAMS, program], cwd=HERE)
    told = run.told(0)
    assert "window-cut" in told["notes"], (told, run.err)
    light = next(one for one in told["windows"] if one["name"] == "light")
    assert light["cut"] == 1
    assert 10_000 < light["events"] < 1_500_000
    assert "deep" not in run.window_names()
    assert not [name for name in names_in(run, "light") if name.startswith("ProfilerStep#")]


def test_pure_tensor_code_gets_windows_by_the_clock(tmp_path: Path) -> None:
    """A program without a module, an optimiser or a loader is recorded for fixed times."""
    run = record(tmp_path / "run", [PROGRAMS, "tensors", "9"], cwd=HERE)
    told = run.told(0)
    assert told["step_rule"] == "time"
    assert "light" in run.window_names()
    assert told["faults"] == []
    assert names_in(run, "light")["aten::sin"] > 100


def test_compiled_programs_compile_as_without_us(tmp_path: Path) -> None:
    """Losses, graphs, graph breaks and recompilations of a compiled model are those of a plain run."""
    watched = record(tmp_path / "run", [PROGRAMS, "compiled"], cwd=HERE)
    alone = plain([PROGRAMS, "compiled"], cwd=HERE)
    assert watched.out == alone.stdout
    assert watched.err == alone.stderr
    assert "graphs 1 breaks 0 recompiles 0" in alone.stdout
    assert {"light", "deep"} <= set(watched.window_names())


def test_parts_of_two_models_have_different_names(tmp_path: Path) -> None:
    """The first model's parts carry bare paths, the second's its class before the path."""
    run = record(tmp_path / "run", [PROGRAMS, "two_models"], cwd=HERE)
    names = names_in(run, "light")
    assert names["nn.Module: Sequential.0"] == 3
    assert names["nn.Module: Judge.layers.0"] == 3


@pytest.mark.alone
def test_limit_of_time(tmp_path: Path) -> None:
    """``--for 6s`` interrupts the program as Ctrl-C would; the exit code is 0 because it was asked for."""
    run = record(tmp_path / "run", [PROGRAMS, "endless"], cwd=HERE, seconds=6)
    assert run.code == 0
    assert "tidied up" in run.out
    assert run.told()["stopped_by_us"]
    assert run.told()["signal"] == signal.SIGINT


AMID_BACKWARD = """
import torch
from torch.utils.checkpoint import checkpoint

parts = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(5))
for _ in range(40):
    x = torch.ones(4, 8, requires_grad=True)
    for part in parts:
        x = checkpoint(part, x, use_reentrant=False)
    x.sum().backward()
"""


def test_no_window_begins_amid_backward(tmp_path: Path) -> None:
    """Autograd puts back the thread's state as it goes on, the profiler's too: torch warned of it, or crashed."""
    (tmp_path / "amid.py").write_text(AMID_BACKWARD)
    run = record(tmp_path / "run", ["amid.py"], cwd=tmp_path)
    assert (run.out, run.err, run.code) == ("", "", 0)
    assert run.told(0)["step_rule"] == "backward"
