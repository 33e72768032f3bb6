"""A kernel's name as a sentence takes it: without what the compiler added."""

import re

_MOST = 72
"""A name with its template arguments that is longer stands without them."""
_PART = re.compile(r"(\d+)(?=[A-Za-z_])")


def short(name: str) -> str:
    """Return a kernel's name without its type, parameters and long template arguments; of a mangled one its parts.

    ``void at::f<int>(float*)`` is ``at::f<int>``, ``_ZN2at1fIiEEvPf`` is ``at::f``.
    """
    if name.startswith("_Z"):
        return _demangled(name) or name
    text = name.removeprefix("void ")
    if text.endswith(")"):
        text = text[: _opening(text)] or text
    return text if len(text) <= _MOST or "<" not in text else f"{text.partition('<')[0]}<…>"


def _opening(text: str) -> int:
    """Return where the bracket opens that a text ends in; its length where none does."""
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text)


def _demangled(name: str) -> str:
    """Return the qualified name of a function mangled by the Itanium rules: each part after its length."""
    parts: list[str] = []
    place = 3 if name.startswith("_ZN") else 2
    while found := _PART.match(name, place):
        end = found.end() + int(found[1])
        parts.append(name[found.end() : end])
        place = end
    return "::".join(parts)
