"""Steps of too many operators, which the recorder cuts: what is said of them, and what their piece cannot carry."""

from dataclasses import replace

import pytest

from tests.unit.test_quality import SOUND, found
from uncork.findings import Bottleneck
from uncork.pipeline import analyze_recordings
from uncork.recording import RunInfo
from uncork.testing import sketch


def test_a_step_that_was_cut_is_not_told_to_be_unmarked() -> None:
    """The recorder knows the steps; one of too many operators was cut inside, which `uncork run` again cannot mend."""
    (unmarked,) = sketch(SOUND.replace("steps 4 x 10ms", "steps 4 x 10ms unmarked"))
    assert "step-cut" not in found(replace(unmarked, run=RunInfo()))
    told = found(replace(unmarked, run=RunInfo(notes=("window-cut",))))
    assert ("step-cut" in told, "no-steps" in told) == (True, False)


def test_a_step_that_was_cut_before_its_batch_came_carries_no_verdict() -> None:
    """Ten milliseconds inside the loader are no "100 % waits": what the step does with the batch was not seen."""
    text = "steps 1 x 10ms unmarked\n  main 0ms..9.9ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n"
    text += "  main 1ms..1.1ms x40 every 0.2ms aten::select\n"
    cut, seen = (
        analyze_recordings([replace(sketch(one)[0], run=RunInfo(notes=("window-cut",)))])
        for one in (text, text.replace("0ms..9.9ms", "0ms..5ms"))
    )
    assert cut.ledger[0].share > 0.95
    assert (cut.verdict.bottleneck, cut.verdict.summary.id) == (
        Bottleneck.UNDETERMINED,
        "verdict.undetermined.step-cut",
    )
    assert "starved" in {one.rule for one in cut.not_assessed if "whole_step" in one.missing}
    assert not [one for one in cut.findings if one.share]
    assert seen.verdict.summary.id != "verdict.undetermined.step-cut"


@pytest.mark.parametrize(("notes", "words"), [(("window-cut",), "smaller batch"), ((), "make more steps")])
def test_one_step_beside_one_that_was_cut_is_not_for_want_of_steps(notes: tuple[str, ...], words: str) -> None:
    """The program made more; the second was too large, and more of them would be too."""
    (one,) = sketch(SOUND.replace("steps 4", "steps 1"))
    report = analyze_recordings([replace(one, format="run", run=RunInfo(notes=notes, steps_seen=40))])
    (issue,) = (told for told in report.quality if told.id == "too-short")
    assert words in report.how_to_mend(issue, "en")
