"""What the page's views share: names with their category of colour, and texts made safe to show."""

import re
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from uncork.calltree import BACKWARD_NODE, MODULE
from uncork.events import EventTable, IntArray, Kind
from uncork.kernels import BANDWIDTH, kernel_class
from uncork.operators import ALLOCATOR_CALL, COPY_CALL, WAIT_CALL, operator_class

_MOST_CHARACTERS = 400
MOST_IN_ALL = 3_000_000
"""Characters of all names of a view: beyond, each is cut, so that no recording's names outgrow the page."""
_FEWEST_CHARACTERS = 16
_KEYS = ("cause.", "page.")
"""What names begin with that are keys of the catalogue."""
# Characters that would hide, reorder or break what follows them: controls and marks of direction.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
# Where an object lay in memory differs from run to run and tells nobody anything.
_ADDRESS = re.compile(r"( of type)?( object)? at 0x[0-9a-f]{6,16}\b")
_OPERATOR_CATEGORY = {
    "loader": "data",
    "compile": "compile",
    "comm": "comm",
    "optimizer": "optimizer",
    "region": "region",
}
_KIND_BITS = 5


def printable(text: str) -> str:
    """Return a text in which nothing is hidden: controls and marks of direction spelt out, very long ones cut.

    Addresses of objects are left out.
    """
    if len(text) > _MOST_CHARACTERS:
        text = text[: _MOST_CHARACTERS - 1] + "…"
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", _ADDRESS.sub("", text))


def category(name: str, kind: int) -> str:
    """Return the category (a key of the page's palette) that an event's colour stands for."""
    if kind == Kind.KERNEL:
        does = kernel_class(name)
        return "bandwidth" if does in BANDWIDTH else "other_kernel" if does == "other" else does
    if kind == Kind.PYTHON_FUNCTION:
        return "module" if name.startswith(MODULE) else "python"
    if kind == Kind.RUNTIME:
        return next((text for text, pattern in _CALLS.items() if pattern.search(name)), "runtime")
    if kind in (Kind.CPU_OP, Kind.USER_ANNOTATION):
        if name.startswith(MODULE):
            return "module"
        return "backward" if BACKWARD_NODE.search(name) else _OPERATOR_CATEGORY.get(operator_class(name), "op")
    return _OTHER_KINDS.get(kind, "unknown")


_CALLS = {"sync": WAIT_CALL, "copy": COPY_CALL, "allocator": ALLOCATOR_CALL}
_OTHER_KINDS: dict[int, str] = {
    Kind.GPU_MEMCPY: "copy",
    Kind.GPU_MEMSET: "fill",
    Kind.GC: "gc",
    Kind.OVERHEAD: "overhead",
}


class Names:
    """Distinct names with their category, numbered in the order in which they were first asked for."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.categories: list[str] = []
        self._known: dict[tuple[str, str], int] = {}

    def number(self, text: str, of_category: str) -> int:
        """Return the number of a name."""
        key = (text, of_category)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self.texts)
            self.texts.append(text)
            self.categories.append(of_category)
        return known

    def numbers(self, table: EventTable, rows: IntArray, shown: Callable[[str], str] = printable) -> IntArray:
        """Return the numbers of some events' names; each distinct name is looked at once."""
        codes = (table.name[rows].astype(np.int64) << _KIND_BITS) | table.kind[rows]
        used, back = np.unique(codes, return_inverse=True)
        numbers = []
        for code in used.tolist():
            text = table.strings.text(code >> _KIND_BITS)
            numbers.append(self.number(shown(text), category(text, code & ((1 << _KIND_BITS) - 1))))
        return np.array(numbers, np.int64)[back] if len(used) else np.empty(0, np.int64)

    def keep(self, *columns: IntArray) -> list[IntArray]:
        """Forget the names that no column holds, and return the columns with the new numbers."""
        used, columns_now = _kept(columns)
        self.texts = _cut([self.texts[one] for one in used])
        self.categories = [self.categories[one] for one in used]
        self._known.clear()
        return columns_now

    def category_codes(self) -> tuple[list[str], npt.NDArray[np.uint8]]:
        """Return the categories that occur, and each name's place among them."""
        kinds = sorted(set(self.categories))
        return kinds, np.array([kinds.index(one) for one in self.categories], np.uint8)


class Texts:
    """Distinct texts, numbered; 0 is the empty text."""

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        self._known: dict[str, int] = {"": 0}

    def number(self, text: str) -> int:
        """Return the number of a text, made safe to show."""
        text = printable(text)
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = len(self.texts)
            self.texts.append(text)
        return known

    def keep(self, *columns: IntArray) -> list[IntArray]:
        """Forget the texts that no column holds, the empty one excepted, and return the columns renumbered."""
        used, columns_now = _kept((np.zeros(1, np.int64), *columns))
        self.texts = _cut([self.texts[one] for one in used])
        self._known.clear()
        return columns_now[1:]


def _kept(columns: Sequence[IntArray]) -> tuple[list[int], list[IntArray]]:
    """Return the numbers that some columns hold, and the columns as places among them."""
    used = np.unique(np.concatenate(columns)) if columns else np.empty(0, np.int64)
    return used.tolist(), [np.searchsorted(used, column) for column in columns]


def _cut(texts: list[str]) -> list[str]:
    """Return texts, shortened where all together are longer than a page has room for."""
    if sum(map(len, texts)) <= MOST_IN_ALL:
        return texts
    most = max(_FEWEST_CHARACTERS, MOST_IN_ALL // len(texts))
    return [text if len(text) <= most or text.startswith(_KEYS) else text[: most - 1] + "…" for text in texts]
