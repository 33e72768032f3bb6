"""The timeline's row of causes: what frames and sizes of the recorder's other steps tell of it, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from uncork.locale import LANGUAGES
from uncork.measure import Rank
from uncork.measure.step_ledger import StepLedger
from uncork.measure.views.by_frames import by_frames
from uncork.measure.views.flame_view import FlameView
from uncork.measure.views.packed import unpack
from uncork.measure.views.timeline_view import TimelineView
from uncork.pipeline import analyze_recordings
from uncork.render.page_data import page_data
from uncork.testing import sketch

MS = 1_000_000


def test_frames_of_the_deep_window_name_the_longest_gaps() -> None:
    """Gaps of 2 and 6 ms in each step of 10; in a deep window 12 of 20 ms are Python's: 12 of both steps' 16 are told.

    The two gaps of 6 ms take them up; those of 2 stay unexplained. Without frames elsewhere nothing is named.
    """
    (light,) = sketch("steps 2 x 10ms\n  main 0ms..1ms aten::mm\n  main 3ms..4ms aten::mm\n")
    (deep,) = sketch("with stacks\nsteps 1 x 20ms\n  main 0ms..20ms train.py(8): main\n  main 0ms..8ms aten::mm\n")
    ledger, notes = by_frames(Rank(replace(light, deep=deep)))
    assert notes == [{"id": "page.timeline.told.py_stack"}]
    assert np.diff(ledger.intervals["py_stack"]).ravel().tolist() == [6 * MS, 6 * MS]
    assert np.diff(ledger.intervals["unexplained"]).ravel().tolist() == [2 * MS, 2 * MS]
    assert by_frames(Rank(light))[1] == []


def test_operators_on_large_tensors_do_not_cost_the_timeline() -> None:
    """Additions of 3 × 16 MiB are memory-bound, a cause that only the step ledger knows; gaps still get names."""
    add = 'aten::add {"Input Dims": [[4194304], [4194304]], "Input type": ["float", "float"]}'
    (light,) = sketch(f"steps 2 x 10ms\n  main 0ms..2ms {add}\n")
    (deep,) = sketch(f"with stacks shapes\nsteps 1 x 20ms\n  main 0ms..20ms train.py(8): main\n  main 0ms..2ms {add}\n")
    rank = Rank(replace(light, deep=deep))
    assert "bandwidth" in rank.made(StepLedger).causes
    assert "bandwidth" not in rank.ledger.causes
    ledger, notes = by_frames(rank)
    assert notes == [{"id": "page.timeline.told.py_stack"}]
    assert ledger.intervals["bandwidth"].tolist() == rank.ledger.intervals["compute"].tolist()
    assert not len(ledger.intervals["compute"])
    meta, _ = unpack(TimelineView.of(rank).block)
    assert meta["left_out"] == [{"id": "page.timeline.told.py_stack"}]


@pytest.mark.parametrize(("view", "key"), [(TimelineView, "page.timeline.empty"), (FlameView, "page.flame.empty")])
def test_a_view_that_breaks_is_not_taken_for_one_that_was_not_recorded(monkeypatch, view, key):
    """A view that raises is said to have failed, in its place on the page; the other view is drawn as ever."""
    monkeypatch.setenv("UNCORK_STRICT", "")
    whole = page_data(analyze_recordings(sketch("steps 2 x 10ms\n  main 0ms..6ms aten::mm"), views=True))

    def breaks(_rank: Rank) -> object:
        raise KeyError("an oversight")

    monkeypatch.setattr(view, "of", breaks)
    data = page_data(analyze_recordings(sketch("steps 2 x 10ms\n  main 0ms..6ms aten::mm"), views=True))
    for lang in LANGUAGES:
        changed = {name for name, text in data["texts"][lang].items() if text != whole["texts"][lang][name]}
        assert changed == {key}
    assert data["texts"]["en"][key].startswith("This view could not be made")
    assert data["steps"] == whole["steps"]
