"""The errors uncork shows to people: what happened, and what to type next."""


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
