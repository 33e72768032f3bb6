"""Modules whose gradients nobody applies: a teacher is one, what is trained in any way is none."""

from collections.abc import Callable

import pytest

from uncork.capture.unheld import STEPS_APART, Unheld

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class Teaching(torch.nn.Module):
    """A teacher and a student, both linear."""

    def __init__(self) -> None:
        super().__init__()
        self.teacher = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        self.student = torch.nn.Linear(4, 2)


def told(
    before: Callable[[Teaching], object] | None = None,
    each: Callable[[Teaching], object] | None = None,
    steps: int = STEPS_APART,
) -> list[str] | None:
    """Return what a second look tells of a distillation loop.

    Args:
        before: What is done before the loop; returns an optimiser beside the student's, or nothing.
        each: What is done after each update.
        steps: Steps between the looks.
    """
    model, looks = Teaching(), Unheld()
    more = before(model) if before else None
    optimizers = [torch.optim.SGD(model.student.parameters(), lr=0.1), *([more] if more else [])]
    answer = None
    for step in range(steps + 1):
        for one in optimizers:
            one.zero_grad()
        x = torch.randn(16, 4)
        (model.teacher(x) - model.student(x)).square().mean().backward()
        for one in optimizers:
            one.step()
        if step in (0, steps):
            answer = looks.look(model.named_modules(), optimizers, step)
        if each:
            each(model)
    return answer


def sgd(model: Teaching) -> object:
    """Return an optimiser of the teacher."""
    return torch.optim.SGD(model.teacher.parameters(), lr=0.1)


def by_hand(model: Teaching) -> None:
    """Apply the teacher's gradients as old tutorials do, which no version tells."""
    for one in model.teacher.parameters():
        one.data -= 0.1 * one.grad


def averaged(model: Teaching) -> None:
    """Move the teacher a little, as an average of weights does."""
    with torch.no_grad():
        for one in model.teacher.parameters():
            one.mul_(0.99)


def share(model: Teaching) -> None:
    """Let the student use a part of the teacher."""
    model.student = model.teacher[0]
    model.teacher.append(torch.nn.Linear(2, 8))


def test_a_teacher_is_named_once_its_gradients_were_seen_to_change_nothing() -> None:
    """By its outermost module, and only when the looks lie some steps apart."""
    assert told() == ["teacher"]
    assert told(steps=STEPS_APART - 1) is None


@pytest.mark.parametrize("each", [by_hand, averaged], ids=["by hand", "averaged"])
def test_what_changes_without_an_optimizer_is_not_named(each: Callable[[Teaching], object]) -> None:
    """Somebody may use the gradients."""
    assert told(each=each) == []


@pytest.mark.parametrize(
    "before",
    [sgd, lambda model: model.teacher.requires_grad_(False) and None, share],
    ids=["of another optimizer", "frozen", "shared"],
)
def test_what_is_held_frozen_or_shared_is_not_named(before: Callable[[Teaching], object]) -> None:
    """A second optimiser may have its turn in other steps; a layer that the student uses too is trained."""
    named = told(before)
    assert named is not None
    assert not {"teacher", "teacher.0", "student"} & set(named)


def test_only_the_part_that_no_optimizer_holds_is_named() -> None:
    """The head's optimiser holds the last layer of the teacher: the first one is named, the whole is not."""
    assert told(lambda model: torch.optim.SGD(model.teacher[2].parameters(), lr=0.1)) == ["teacher.0"]


def test_of_two_modules_with_one_path_both_must_be_unheld() -> None:
    """Teacher and student may be of one class, which is the path of both."""
    model, looks = Teaching(), Unheld()
    optimizer = torch.optim.SGD(model.student.parameters(), lr=0.1)
    (model.teacher(torch.ones(1, 4)) - model.student(torch.ones(1, 4))).sum().backward()
    named = [("Net", model.teacher), ("Net", model.student), ("0", model.teacher[0])]
    assert looks.look(named, [optimizer], 1) is None
    assert looks.look(named, [optimizer], 1 + STEPS_APART) == ["0"]


def test_where_no_optimizer_lacks_a_gradient_one_look_is_enough() -> None:
    """Nothing waits for a second look."""
    model, looks = Teaching(), Unheld()
    model.student(torch.ones(1, 4)).sum().backward()
    optimizer = torch.optim.SGD(model.student.parameters(), lr=0.1)
    assert looks.look(model.named_modules(), [optimizer], 1) == []
    assert not looks.is_due(100)


def test_a_copy_in_single_precision_may_be_what_an_optimizer_holds() -> None:
    """Its small changes do not show in 16 bits; an optimiser that holds something else says nothing of 32 bits."""
    for dtype, expected in ((torch.bfloat16, []), (torch.float32, ["norm"])):
        norm, looks = torch.nn.Linear(4, 4, dtype=dtype), Unheld()
        norm(torch.ones(1, 4, dtype=dtype)).sum().backward()
        optimizer = torch.optim.SGD([torch.ones(20)], lr=0.1)
        assert looks.look([("norm", norm)], [optimizer], 1) is None
        assert looks.look([("norm", norm)], [optimizer], 1 + STEPS_APART) == expected
