"""One measurement per file: a small frozen dataclass with ``of(rank)``, picklable, kilobytes.

Axes: measurements are made per rank; `Ranks` puts the same measurement of all ranks side by side, so that one
process is simply ``ranks = 1``. A file here needs no registration: every subclass of `Measurement` in it is found.
"""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar, Generic, TypeVar, overload

from uncork.calltree import CallTree
from uncork.errors import strict
from uncork.ledger import Ledger, partition
from uncork.recording import Recording
from uncork.records import dataclass
from uncork.timeline import Timeline

T = TypeVar("T")
M = TypeVar("M", bound="Measurement")


class MissingEvidence(Exception):  # noqa: N818 - not an error: the recording lacks what a measurement needs
    """A measurement cannot be made; `what` are ids of the catalogue (``missing.<id>``, ``record.<id>``)."""

    def __init__(self, *what: str) -> None:
        super().__init__(", ".join(what))
        self.what = what


@dataclass(frozen=True)
class Missing:
    """Stands where a measurement could not be made.

    Args:
        what: Ids of what was missing.
    """

    what: tuple[str, ...]


class Rank:
    """What measurements of one rank are made from; views are built once, on first use.

    Args:
        recording: The rank's recording.
        number: Its rank in the job (0 where the recording does not say).
    """

    def __init__(self, recording: Recording, number: int = 0) -> None:
        self.recording = recording
        self.number = number
        self._made: dict[object, object] = {}

    def made(self, kind: "type[M]") -> "M":
        """Return a measurement of the rank, made once; raises `MissingEvidence` where it cannot be made."""
        if kind not in self._made:
            try:
                self._made[kind] = kind.of(self)
            except MissingEvidence as lack:
                self._made[kind] = lack
        found = self._made[kind]
        if isinstance(found, MissingEvidence):
            raise found
        return found  # type: ignore[return-value]  # the dictionary holds each kind under itself

    @cached_property
    def timeline(self) -> Timeline:
        """Return the order of its events; raises `MissingEvidence` where there are none."""
        if self.recording.events is None or not len(self.recording.events):
            raise MissingEvidence("events")
        return Timeline(self.recording)

    @cached_property
    def ledger(self) -> Ledger:
        """Return where the time of its steps went."""
        return partition(self.timeline)

    @cached_property
    def calltree(self) -> CallTree:
        """Return who called whom in its events."""
        return CallTree(self.timeline)

    @cached_property
    def deep(self) -> Timeline:
        """Return the timeline that knows places (stacks, shapes): the deep window's, else the only one."""
        deep = self.recording.deep
        if deep is not None and deep.events is not None and len(deep.events):
            return Timeline(deep)
        return self.timeline

    @cached_property
    def deep_ledger(self) -> Ledger:
        """Return where the time went in the recording that knows places."""
        return self.ledger if self.deep is self.timeline else partition(self.deep)

    @cached_property
    def deep_calltree(self) -> CallTree:
        """Return who called whom in the recording that knows places."""
        return self.calltree if self.deep is self.timeline else CallTree(self.deep)


class Measurement:
    """A figure about one rank; subclasses are frozen dataclasses of numbers, texts and small arrays.

    Attributes:
        view: True for what only the page draws: measured when a page is asked for, and kept out of the JSON.
        table: Name of the report's table that ``rows()`` fills, or empty; people see those of `uncork.render.tables`.
        section: Name of the report's section (``memory``) that ``content()`` fills, or empty.
    """

    view: ClassVar[bool] = False
    table: ClassVar[str] = ""
    section: ClassVar[str] = ""

    @classmethod
    def of(cls, rank: Rank) -> "Measurement":
        """Return the measurement of a rank; raises `MissingEvidence` where its recording lacks what is needed."""
        raise NotImplementedError

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the report's table that this measurement fills; values are plain, units in the names."""
        return ()

    def content(self) -> Mapping[str, Any]:
        """Return the report's section that this measurement fills; values are plain, units in the names."""
        return {}


class Ranks(Sequence[T], Generic[T]):
    """The same measurement of several ranks side by side.

    Args:
        values: One per rank.
        numbers: The rank each belongs to.
    """

    def __init__(self, values: Sequence[T], numbers: Sequence[int]) -> None:
        self.values = tuple(values)
        self.numbers = tuple(numbers)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        """Return the measurement at a place (not: of a rank number)."""
        return self.values[index]

    def __len__(self) -> int:
        """Return the number of ranks."""
        return len(self.values)

    def __iter__(self) -> Iterator[T]:
        """Yield the measurements in order of rank."""
        return iter(self.values)


Measured = Mapping[type[Measurement], Measurement | Missing]
"""The measurements of one rank, or what each lacks."""


def present(measured: Sequence[Measured], kind: type[M]) -> list[M]:
    """Return a measurement of the ranks that have it, in their order."""
    return [value for one in measured if isinstance(value := one.get(kind), kind)]


@cache
def measurements(*, views: bool = True) -> tuple[type[Measurement], ...]:
    """Return every measurement, found by looking through this folder; without `views` not all that the page draws."""
    found = (pkgutil.walk_packages if views else pkgutil.iter_modules)(__path__, f"{__name__}.")
    for module in found:
        importlib.import_module(module.name)
    return tuple(sorted(Measurement.__subclasses__(), key=lambda kind: kind.__module__))


def measure(recording: Recording, number: int = 0, *, views: bool = False) -> Measured:
    """Return every measurement of one rank, or what each lacks; with `views`, also what only the page draws."""
    rank = Rank(recording, number)
    done: dict[type[Measurement], Measurement | Missing] = {}
    for kind in measurements(views=views):
        if kind.view and not views:
            continue
        try:
            done[kind] = rank.made(kind)
        except MissingEvidence as lack:
            done[kind] = Missing(lack.what)
        except Exception:
            if strict():
                raise
            done[kind] = Missing(("fault",))
    return done
