"""The program's own Python by cProfile, where a step has too many calls to record their stacks."""

from dataclasses import replace

import numpy as np
import pytest

from uncork.measure import MissingEvidence, Rank
from uncork.measure.own_python import OwnPython
from uncork.measure.profiled import calls_torch, python_shares
from uncork.measure.step_ledger import StepLedger
from uncork.pipeline import analyze_recordings
from uncork.recording import FunctionTable, Recording, StackSample
from uncork.testing import outcome_of, sketch

MS = 1_000_000
ROWS = (
    ("/home/me/train.py", 5, "evaluate", 10, 80),
    ("/home/me/train.py", 6, "<genexpr>", 40, 40),
    ("~", 0, "<built-in method builtins.sum>", 10, 50),
    ("/lib/python3.11/site-packages/sklearn/metrics.py", 70, "f1_score", 8, 20),
    ("~", 0, "<built-in method torch.mm>", 12, 12),
    ("/home/me/train.py", 20, "step", 5, 25),
    ("/lib/python3.11/site-packages/torch/optim/sgd.py", 9, "step", 5, 15),
    ("~", 0, "<built-in method time.sleep>", 10, 10),
)
EDGES = ((0, 2, 50), (0, 3, 20), (2, 1, 40), (3, 4, 12), (5, 6, 15), (5, 1, 0), (6, 7, 10))
"""evaluate calls sum and sklearn, sum calls the generator, sklearn calls torch; step calls the optimizer."""
GAP = """
steps 2 x 10ms
  main 0ms..2ms aten::mm
  main 8ms..9.9ms aten::mm
"""


def profile() -> FunctionTable:
    """Return a profile of 100 ms in all."""
    caller, callee, total = np.array(EDGES, np.int64).T
    return FunctionTable(
        file=tuple(row[0] for row in ROWS),
        line=np.array([row[1] for row in ROWS], np.int64),
        name=tuple(row[2] for row in ROWS),
        calls=np.ones(len(ROWS), np.int64),
        self_ns=np.array([row[3] * MS for row in ROWS], np.int64),
        total_ns=np.array([row[4] * MS for row in ROWS], np.int64),
        edge_caller=caller,
        edge_callee=callee,
        edge_total_ns=total * MS,
        edge_calls=np.ones(len(EDGES), np.int64),
    )


def recorded(functions: FunctionTable | None) -> Recording:
    """Return a recorded run whose trace has gaps of 6 ms in steps of 10 and no frames."""
    (recording,) = sketch(GAP + "setting batch_size 8\n")
    return replace(recording, functions=functions)


def test_libraries_count_to_the_users_function_and_torch_does_not():
    """Of 100 ms evaluate has 10 + sum's 10 + sklearn's own 8, the generator 40, step 5: nothing below the optimizer."""
    shares = {profile().name[place]: own for place, (own, _) in python_shares(profile()).items()}
    assert shares == {"evaluate": pytest.approx(0.28), "<genexpr>": pytest.approx(0.4), "step": pytest.approx(0.05)}
    assert [calls_torch(profile(), place) for place in (0, 1, 5)] == [False, False, True]


def test_a_function_that_prepares_input_is_told_apart():
    """What a data set's __getitem__ takes beside a loader is preparation, with the libraries it calls."""
    table = profile()
    table = replace(table, name=("__getitem__", *table.name[1:]))
    assert python_shares(table)[0].tolist() == pytest.approx([0.0, 0.28])


def test_functions_that_call_each_other_share_their_time():
    """Of sum's 50 ms 0.2 are its own and 0.4 sklearn's; of sklearn's 20 all are told: 0.4 its own, the rest sum's."""
    table = profile()
    table = replace(
        table,
        edge_caller=np.array([0, 3, 2], np.int64),
        edge_callee=np.array([3, 2, 3], np.int64),
        edge_total_ns=np.array([20, 20, 20], np.int64) * MS,
    )
    assert python_shares(table)[0].sum() == pytest.approx((10 + 20) / 100, rel=1e-4)


@pytest.mark.parametrize(("depth", "share"), [(60, 1.0), (2000, 64 / 2001)])
def test_libraries_are_followed_as_deep_as_programs_go(depth: int, share: float):
    """Each function calls the next and takes 1 ms itself; of what lies below the 64th nothing is claimed."""
    left_ns = np.arange(depth, -1, -1) * MS
    table = FunctionTable(
        file=("/home/me/train.py", *["/lib/python3.11/site-packages/sympy/core.py"] * depth),
        line=np.arange(depth + 1),
        name=("simplify", *(f"part{place}" for place in range(depth))),
        calls=np.ones(depth + 1, np.int64),
        self_ns=np.full(depth + 1, MS),
        total_ns=left_ns + MS,
        edge_caller=np.arange(depth),
        edge_callee=np.arange(1, depth + 1),
        edge_total_ns=left_ns[:-1],
        edge_calls=np.ones(depth, np.int64),
    )
    assert python_shares(table)[0].tolist() == pytest.approx([share, 0.0])


def test_gaps_without_frames_are_python_as_far_as_cprofile_says():
    """6.1 ms of each 10 lie between operators; cProfile knows 73 % of the step as the program's: all of the gap."""
    known, unknown = StepLedger.of(Rank(recorded(profile()))), StepLedger.of(Rank(recorded(None)))
    assert unknown.mean_ns("unexplained") == 6 * MS
    assert (known.mean_ns("py_stack"), known.mean_ns("unexplained")) == (6 * MS, 0)
    quick = replace(profile(), self_ns=profile().self_ns * np.array([0, 0, 0, 0, 10, 1, 0, 1]))
    partly = StepLedger.of(Rank(recorded(quick)))  # step's own 5 ms of 135: 3.7 % of 10 ms
    assert partly.mean_ns("py_stack") == pytest.approx(5 / 135 * 10 * MS, rel=1e-6)


def test_the_place_is_the_line_that_ran_most():
    """The generator first; a function's line comes from samples unless it calls torch, whose time they see too."""
    samples = (
        StackSample("main", "/home/me/train.py", 8, "evaluate", 9),
        StackSample("main", "/home/me/train.py", 22, "step", 9),
    )
    gaps = OwnPython.of(Rank(replace(recorded(profile()), stacks=samples))).gaps
    assert [(site.location.function, site.location.line) for site in gaps.sites] == [
        ("<genexpr>", 6),
        ("evaluate", 8),
        ("step", 20),
    ]
    assert gaps.sites[0].share == pytest.approx(40 / 73)
    assert gaps.share_of_step == pytest.approx(0.73)


def test_python_is_named_where_cprofile_alone_saw_it():
    """The rule finds the generator; without a profile, or with one of a whole program, it could not look."""
    report = analyze_recordings([recorded(profile())])
    (found,) = [one for one in report.findings if one.rule == "python-between-ops"]
    assert (found.location.line, found.location.function) == (6, "<genexpr>")
    assert found.cost_ns_per_step == 6 * MS
    assert outcome_of("per-step-logging", report) == "not assessed"
    for blind in (recorded(None), replace(recorded(profile()), run=None)):
        with pytest.raises(MissingEvidence):
            OwnPython.of(Rank(blind))


def test_what_the_window_with_frames_shows_to_be_waiting_is_no_gap() -> None:
    """A server gets its requests from a queue for 16 of 20 ms, four fifths of the step, so 8 of 10 ms are no riddle."""
    (light,) = sketch("steps 2 x 10ms\n  main 0ms..2ms aten::mm\n")
    (deep,) = sketch(
        "with stacks\nsteps 1 x 20ms\n  main 0ms..20ms serve.py(8): main\n  main 0ms..4ms aten::mm\n"
        "  main 4ms..20ms queue.py(171): get\n"
    )
    told = StepLedger.of(Rank(replace(light, deep=deep)))
    assert told.mean_ns("unrecorded") == pytest.approx(8_000_000, abs=2)
    assert told.mean_ns("unexplained", "py_stack") == pytest.approx(0, abs=2)
