"""The errors uncork shows to people: what happened, and what to type next."""

import os
import re

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What a file's name must not tell a terminal to do."""


class UncorkError(Exception):
    """A problem told in one line on standard error; the command ends with exit code 2.

    Args:
        id: Of the text in the catalogue, ``error.<id>``: what happened, and what to type or do next.
        **params: What fills the text's placeholders; another of these errors is told in the same language.
    """

    exit_code = 2

    def __init__(self, id: str, **params: object) -> None:  # noqa: A002 - as everything in the catalogue is called
        super().__init__(id)
        self.id = id
        self.params = params

    def told(self, lang: str) -> str:
        """Return the one line that people see; a text that is no id is told as it is."""
        from uncork.locale import catalogue, fill

        params = {
            key: value.told(lang) if isinstance(value, UncorkError) else str(value)
            for key, value in self.params.items()
        }
        line = " ".join(fill(catalogue(lang).get(f"error.{self.id}", self.id), params).splitlines())
        return _CONTROL.sub("\ufffd", line)

    def __str__(self) -> str:
        """Return the line in English."""
        return self.told("en")


class UsageError(UncorkError):
    """The words of the command do not fit together."""


class UnreadableError(UncorkError):
    """A file is not a recording, is damaged beyond repair, or is of a kind that uncork does not read."""


def strict() -> bool:
    """Return whether a fault of uncork's own is to be raised (tests) instead of told in a line (people).

    One broken measurement or rule must not cost people the rest of a report; it is named as not assessed.
    """
    return bool(os.environ.get("UNCORK_STRICT"))
