"""The errors uncork shows to people: what happened, and what to type next."""

import os


class UncorkError(Exception):
    """A problem told in one line on standard error; the command ends with exit code 2.

    Args:
        message: What happened, in one line.
        hint: What to type or do next, in one line; may be empty.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Return the one line that people see."""
        return f"{self.message} {self.hint}".strip()


class UsageError(UncorkError):
    """The words of the command do not fit together."""


class UnreadableError(UncorkError):
    """A file is not a recording, is damaged beyond repair, or is of a kind that uncork does not read."""


def strict() -> bool:
    """Return whether a fault of uncork's own is to be raised (tests) instead of told in a line (people).

    One broken measurement or rule must not cost people the rest of a report; it is named as not assessed.
    """
    return bool(os.environ.get("UNCORK_STRICT"))
