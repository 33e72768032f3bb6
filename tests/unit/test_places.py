"""Places: the line of a call, where the trace's frames name functions only."""

from dataclasses import replace

import numpy as np
import pytest

from uncork.calltree import CallTree
from uncork.findings import Location
from uncork.measure import Rank
from uncork.measure.host_pieces import where
from uncork.measure.whereabouts import busiest_lines
from uncork.places import Place, is_library_frame, sampled_lines
from uncork.recording import Moments
from uncork.testing import sketch
from uncork.timeline import Timeline

CALLS = """
with stacks
steps 1 x 10ms
  main 0ms..10ms train.py(3): <module>
  main 0.1ms..9.9ms train.py(40): step
  main 1ms..3ms <built-in method mm of type object at 0x1>
  main 1.1ms..2.9ms aten::mm
  main 4ms..6ms <built-in method sort of Tensor object at 0x2>
  main 4.1ms..5.9ms aten::sort
  main 7ms..8ms <built-in method cat of type object at 0x1>
  main 7.1ms..7.9ms aten::cat
"""


def places_with(moments: list[tuple[float, int]], sites: tuple[tuple[str, int, str], ...]) -> dict[str, Place]:
    """Return the place of each operator of `CALLS`, with samples at (ms, index of a site)."""
    (recording,) = sketch(CALLS)
    assert recording.events is not None
    start_ns = int(recording.events.ts_ns.min())
    when, site = zip(*((start_ns + int(at * 1e6), index) for at, index in moments), strict=True)
    sampled = Moments(np.array(when, np.int64), np.array(site, np.int64), sites)
    tree = CallTree(Timeline(replace(recording, moments=sampled)))
    names = tree.timeline.events.names(tree.host.row)
    return {
        name: tree.places[tree.place[at]]
        for at, name in enumerate(names)
        if name.startswith("aten::") and tree.place[at] >= 0
    }


def test_a_call_has_the_line_that_ran_while_it_lasted():
    """Of two moments inside mm both show line 44; sort was seen on 47; cat never: the first line of step."""
    sites = (("/home/me/train.py", 44, "step"), ("/home/me/train.py", 47, "step"))
    found = places_with([(1.5, 0), (2.5, 0), (5, 1)], sites)
    assert found["aten::mm"] == Place("train.py", 44, "step", exact=True)
    assert found["aten::sort"] == Place("train.py", 47, "step", exact=True)
    assert found["aten::cat"] == Place("train.py", 40, "step", exact=False)


def test_moments_that_disagree_or_belong_to_another_function_name_no_line():
    """One of two moments (half, fewer than four fifths) is no line; a callee's line is not the caller's."""
    sites = (("/home/me/train.py", 44, "step"), ("/home/me/train.py", 45, "step"), ("/home/me/other.py", 9, "step"))
    found = places_with([(1.5, 0), (2.5, 1), (5, 2)], sites)
    assert not found["aten::mm"].exact
    assert not found["aten::sort"].exact


def test_code_outside_functions_has_no_line_of_its_own():
    """Torch writes the line where recording began into the frame of the module: that is said to be unknown."""
    (recording,) = sketch(
        "with stacks\nsteps 1 x 10ms\n  main 0ms..10ms train.py(3): <module>\n  main 1ms..2ms aten::mm\n"
    )
    tree = CallTree(Timeline(recording))
    (place,) = {tree.places[index] for index in tree.place if index >= 0}
    assert place == Place("train.py", None, "<module>", exact=False)
    assert place.text == "train.py <module>"


def test_four_of_five_moments_are_enough():
    """Lines 7, 7, 7, 7, 8: seven. Lines 7, 7, 7, 8: none, for three of four is less."""
    sites = (("a.py", 7, "f"), ("a.py", 8, "f"))
    calls = np.array([0, 100], np.int64), np.array([50, 150], np.int64), np.array([0, 1], np.int64)
    when = np.array([1, 2, 3, 4, 5, 101, 102, 103, 104, 160], np.int64)
    seen = Moments(when, np.array([0, 0, 0, 0, 1, 0, 0, 0, 1, 1], np.int64), sites)
    assert sampled_lines(seen, *calls, ["a.py(1): f", "a.py(1): f"]).tolist() == [7, 0]


def test_the_operator_named_with_a_line_is_called_there() -> None:
    """Of the module that most operators are in: 40 relu of 8 µs, not 40 views of 9, nor 40 products of 25 µs.

    Longer than 20 µs is work, not a call, and autograd's wrappers go with others; 30 sums of 15 µs are of no module.
    """
    (recording,) = sketch("""
with stacks modules
steps 2 x 10ms
  main python 0ms..9ms train.py(8): step
  main 0ms..1ms nn.Module: body
  main 0ms..0.9ms aten::conv2d
  main 1ms..8ms nn.Module: head
  main 1ms..1.009ms x40 every 0.1ms aten::view
  main 1.01ms..1.018ms x40 every 0.1ms aten::relu
  main 5.2ms..5.225ms x40 every 0.03ms aten::mm
  main 6.5ms..6.519ms x40 every 0.03ms autograd::engine::evaluate_function: ReluBackward0
  main 8ms..8.015ms x30 every 0.02ms aten::add
""")
    (calls,) = busiest_lines(Rank(recording))
    location = calls.location
    assert (location.file, location.line, location.module, location.op) == ("train.py", 8, "head", "aten::relu")
    assert (calls.turns, calls.share) == (40, 151 / 191)  # autograd's wrappers are of no line


@pytest.mark.parametrize(("layers", "first"), [(48, "ema.py"), (80, "model.py")])
def test_of_two_places_that_call_as_much_the_one_that_repeats_itself_is_named(layers: int, first: str) -> None:
    """40 times mul beside 24 or 40 relu and as many tanh: 40 of 48 are nearly as many, 40 of 80 are not."""
    (recording,) = sketch(f"""
with stacks
steps 2 x 10ms
  main 0ms..4.9ms model.py(8): forward
  main 0ms..0.008ms x{layers // 2} every 0.1ms aten::relu
  main 0.05ms..0.058ms x{layers // 2} every 0.1ms aten::tanh
  main 5ms..9.9ms ema.py(11): update
  main 5ms..5.008ms x40 every 0.1ms aten::mul
""")
    found = busiest_lines(Rank(recording))
    assert {one.location.file: round(one.share * (layers + 40)) for one in found} == {"model.py": layers, "ema.py": 40}
    assert found[0].location.file == first


def test_the_recorder_is_no_place() -> None:
    """Where a program has no file (``python -c``), a library's frame may be all there is, but none of ours."""
    frames = ["lib/trainer/loop.py(3): fit", "uncork/capture/hooks.py(9): in_region", "torch/nn/module.py(1): f"]
    assert [is_library_frame(frame) for frame in frames] == [True, False, False]


def test_a_place_whose_line_nothing_tells_is_named_by_its_file():
    """Of what ran at a script's top level, a trace has no line."""
    assert where(Location(file="/home/me/train.py", function="<module>")) == "train.py (<module>)"
    assert where(Location(file="/home/me/train.py", line=7)) == "train.py:7"
