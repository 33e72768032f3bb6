"""Whose place stands for Python time between operators: the user's, or a library's that makes the steps."""

import pytest

from uncork.frames import is_others_frame
from uncork.pipeline import analyze_recordings
from uncork.testing import sketch

LIBRARY = """
with stacks
main python -2ms..42ms train.py(30): <module>
main python -1ms..41ms fastai/learner.py(266): fit
steps 4 x 10ms
  main 0ms..2ms aten::mm
  {inside}
  main 8.95ms..9.9ms aten::mm
"""
USERS_LOOP = """
with stacks
main python -2ms..42ms train.py(30): main
steps 4 x 10ms
  main 0ms..2ms aten::mm
  main python 2.5ms..8.9ms torchmetrics/metric.py(5): update
  main 8.95ms..9.9ms aten::mm
"""
CALLBACK = "main python 2.5ms..8.9ms fastai/callback/core.py(60): __call__"


@pytest.mark.parametrize(
    ("text", "file", "advice"),
    [
        (LIBRARY.format(inside=CALLBACK), "fastai/callback/core.py", "less"),
        (LIBRARY.format(inside=f"{CALLBACK}\n  main python 2.6ms..8.8ms train.py(5): after_step"), "train.py", "move"),
        (USERS_LOOP, "train.py", "move"),
    ],
    ids=["library", "users-callback", "users-loop"],
)
def test_the_library_that_makes_the_steps_is_told_by_its_function(text: str, file: str, advice: str):
    """Its user wrote one line for the whole training; a callback of the user's is their own again."""
    report = analyze_recordings(sketch(text))
    (found,) = [one for one in report.findings if one.rule == "python-between-ops"]
    assert found.location.file == file
    assert found.advice[0] == advice


def test_frames_of_others_are_neither_the_users_nor_torchs_nor_pythons():
    """By the name a trace gives them, with and without the folder of installed packages."""
    others = ["fastai/learner.py(3): fit", "site-packages/strangelib/a.py(1): f", "site-packages/onefile.py(1): f"]
    assert all(map(is_others_frame, others))
    rest = [
        "train.py(3): main", "torch/nn/modules/module.py(1): f", "site-packages/torch/a.py(1): f",
        "json/decoder.py(1): f",
        "/usr/lib/python3.11/json/decoder.py(1): f", "<built-in method sum>", "nn.Module: Linear_0", "aten::mm",
        "/venv/lib/python3.11/site-packages/torch/a.py(1): f", "uncork/capture/hooks.py(1): f",
    ]  # fmt: skip
    assert not any(map(is_others_frame, rest))
