"""The dataclass whose methods are shared behaves as the standard one."""

import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field, replace
from functools import cached_property

import pytest

from uncork.records import dataclass


@dataclass(frozen=True)
class Pair:
    """Two values and what follows from them."""

    left: int
    right: list[int] = field(default_factory=list)

    @cached_property
    def total(self) -> int:
        """Return the sum of both."""
        return self.left + sum(self.right)


@dataclass(frozen=True)
class Triple(Pair):
    """A pair and a third value that tells itself."""

    third: str = ""

    def __repr__(self) -> str:
        return f"<{self.third}>"


@dataclass(frozen=True, eq=False)
class Columns:
    """Something that equals only itself."""

    values: tuple[int, ...] = ()


def test_fields_are_written_once() -> None:
    """A field can neither be set again nor deleted, as in the standard frozen dataclass."""
    pair = Pair(1, [2])
    with pytest.raises(FrozenInstanceError):
        pair.left = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del pair.left
    assert (pair.left, pair.total) == (1, 3)


def test_equal_by_class_and_fields() -> None:
    """Instances of one class with equal fields are equal and hash alike; a subclass's is another thing."""
    assert Pair(1, [2]) == Pair(1, [2])
    assert Pair(1, [2]) != Pair(1, [3])
    assert Pair(1) != Triple(1)
    assert len({Triple(1, (), "a"), Triple(1, (), "a"), Triple(1, (), "b")}) == 2  # type: ignore[arg-type]
    assert Columns((1,)) != Columns((1,))
    assert len({Columns(), Columns()}) == 2


def test_texts_are_those_of_the_standard_one() -> None:
    """The text names the class and its fields; a class that has a text of its own keeps it."""
    standard = dataclasses.make_dataclass("Pair", [("left", int), ("right", list)], frozen=True)
    assert repr(Pair(1, [2])) == repr(standard(1, [2])) == "Pair(left=1, right=[2])"
    assert repr(Triple(1, [], "own")) == "<own>"


def test_works_with_what_the_standard_library_offers() -> None:
    """Fields can be listed, replaced, turned into a dictionary, pickled and matched."""
    triple = Triple(1, [2], "c")
    assert [one.name for one in dataclasses.fields(triple)] == ["left", "right", "third"]
    assert replace(triple, left=5) == Triple(5, [2], "c")
    assert dataclasses.asdict(triple) == {"left": 1, "right": [2], "third": "c"}
    assert pickle.loads(pickle.dumps(triple)) == triple
    match triple:
        case Triple(left, right, third):
            assert (left, right, third) == (1, [2], "c")
