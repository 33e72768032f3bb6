"""Scanned: a trace document as raw columns, the same from either scanner, before anything is interpreted."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from uncork.events import ArgColumn, Strings

IntArray = npt.NDArray[np.int64]
ABSENT = np.iinfo(np.int64).min
"""Stands for a time that is missing."""
NOT_A_NUMBER = ABSENT + 1
"""Stands for a time that is no number (``NaN``, ``null``, a word)."""


@dataclass(eq=False)
class Scanned:
    """One trace document: a row per event in file order, metadata events included.

    Args:
        form: Index in `forms`, int32 (events,).
        forms: The distinct (phase, category): the phase letter as its byte, 0 where missing; the category as an index
            in `strings`, -1 where missing or no text; int64 (forms, 2).
        name: Index of the name in `strings`, -1 where missing or no text, int32 (events,).
        track: Index in `tracks`, int32 (events,).
        tracks: The distinct (process id, thread id), each an index in `strings`, -1 where missing; int64 (tracks, 2).
        ts_ns: Start in ns as written, base not yet added; `ABSENT` or `NOT_A_NUMBER`, int64 (events,).
        dur_ns: Duration, likewise, int64 (events,).
        args: The events' ``args`` by key as written; ``@id`` and ``@bp`` are the flow fields.
        strings: The distinct texts.
        header: Top-level values beside the events.
        repairs: Kind of repair → how often.
        whole_numbers: No time had a fraction.
        huge_times: Starts so large that they can only be ns; they are kept as ns.
    """

    form: npt.NDArray[np.int32]
    forms: IntArray
    name: npt.NDArray[np.int32]
    track: npt.NDArray[np.int32]
    tracks: IntArray
    ts_ns: IntArray
    dur_ns: IntArray
    args: dict[str, ArgColumn]
    strings: Strings
    header: dict[str, object] = field(default_factory=dict)
    repairs: Counter[str] = field(default_factory=Counter)
    whole_numbers: bool = False
    huge_times: int = 0

    def __len__(self) -> int:
        """Return the number of events, metadata included."""
        return len(self.form)

    def in_phase(self, letters: str) -> npt.NDArray[np.bool_]:
        """Return which events are in one of some phases, (events,)."""
        found = np.zeros(len(self), bool)
        for letter in letters:
            found |= self._phase == ord(letter)
        return found

    @cached_property
    def _phase(self) -> npt.NDArray[np.uint8]:
        """The phase letter of each event, (events,)."""
        return self.forms[:, 0].astype(np.uint8)[self.form]

    def text(self, index: int) -> str:
        """Return a text, empty for -1."""
        return self.strings.text(index) if index >= 0 else ""


def distinct(indices: npt.NDArray[np.integer], count: int) -> list[int]:
    """Return the distinct values among indices from -1 to count - 1, ascending, without sorting them all."""
    seen = np.zeros(count + 1, bool)
    seen[indices] = True
    found: list[int] = np.flatnonzero(seen[:count]).tolist()
    return [-1, *found] if seen[count] else found
