"""Which findings of two reports are the same one: by rule and place, or by what they say of another layer."""

import re
from collections.abc import Iterable, Mapping

from uncork.findings import Finding
from uncork.report import finding_texts

_Key = tuple[str, str | None, str | None]
# Numbers of a title, not those in names.
_FIGURES = re.compile(r"(?<![\w.])[\d.,]+(?!\w)")


def by_place(findings: Iterable[Finding], program: str) -> dict[_Key, Finding]:
    """Return findings by what makes them the same: rule, module and file; lines move when code is edited.

    Args:
        findings: A report's.
        program: Name of the program's own file, the same under another name: a mended copy often has one.
    """
    found: dict[_Key, Finding] = {}
    for one in findings:
        file = one.location.file
        own = file is not None and file.replace("\\", "/").rpartition("/")[2] == program
        found.setdefault((one.rule, one.location.module, "" if own else file), one)
    return found


def under_old_keys(was: Mapping[_Key, Finding], now: Mapping[_Key, Finding]) -> dict[_Key, Finding]:
    """Return what is found now, by the key that it had where it says the same of another layer of its file.

    Where most calls are, say, moves between layers; figures apart, the title stays.
    """

    def words(key: _Key, one: Finding) -> set[tuple[str, str, str | None]]:
        title = _FIGURES.sub("", finding_texts(one, "en")["title"])
        return {(one.rule, title, file) for file in (key[2], one.location.file)}

    left = {key: words(key, one) for key, one in was.items() if key not in now}
    found: dict[_Key, Finding] = {}
    for key, one in now.items():
        said = words(key, one)
        old = key if key in was else next((other for other, before in left.items() if before & said), key)
        left.pop(old, None)  # two that say the same stay two
        found[old] = one
    return found
