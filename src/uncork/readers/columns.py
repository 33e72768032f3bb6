"""Scanned: a trace document as raw columns, the same from either scanner, before anything is interpreted."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

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
        ph: Phase letter of each event as its byte, 0 where missing, uint8 (events,).
        cat: Index of the category in `strings`, -1 where missing or no text, int32 (events,).
        name: Index of the name, likewise, int32 (events,).
        pid: Index of the process id as text, likewise, int32 (events,).
        tid: Index of the thread id as text, likewise, int32 (events,).
        ts_ns: Start in ns as written, base not yet added; `ABSENT` or `NOT_A_NUMBER`, int64 (events,).
        dur_ns: Duration, likewise, int64 (events,).
        args: The events' ``args`` by key as written; ``@id`` and ``@bp`` are the flow fields.
        strings: The distinct texts.
        header: Top-level values beside the events.
        repairs: Kind of repair → how often.
        whole_numbers: No time had a fraction.
        huge_times: Starts so large that they can only be ns; they are kept as ns.
    """

    ph: npt.NDArray[np.uint8]
    cat: npt.NDArray[np.int32]
    name: npt.NDArray[np.int32]
    pid: npt.NDArray[np.int32]
    tid: npt.NDArray[np.int32]
    ts_ns: IntArray
    dur_ns: IntArray
    args: Mapping[str, ArgColumn]
    strings: Strings
    header: dict[str, object]
    repairs: Counter[str] = field(default_factory=Counter)
    whole_numbers: bool = False
    huge_times: int = 0

    def __len__(self) -> int:
        """Return the number of events, metadata included."""
        return len(self.ph)

    def index_of(self, text: str) -> int:
        """Return the index of a text, or -2 where no event has it."""
        if self._places is None:
            self._places = {}
            for index in np.unique(np.concatenate([self.cat, self.name, self.pid, self.tid])).tolist():
                if index >= 0:
                    self._places.setdefault(self.strings.text(index), index)
        return self._places.get(text, -2)

    _places: dict[str, int] | None = None
