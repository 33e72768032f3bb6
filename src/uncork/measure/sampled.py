"""The line of a function that ran most, by samples of stacks beside the program."""

from collections.abc import Iterable

from uncork.recording import StackSample


def sampled_line(file: str, line: int, function: str, samples: Iterable[StackSample]) -> int:
    """Return the line of a function that was seen most often, else the line given.

    Args:
        file: The function's source file, as any recording spells it.
        line: What to return where the function was never seen.
        function: Its name.
        samples: The samples.
    """
    seen = [one for one in samples if one.function == function and same_file(one.file, file)]
    return max(seen, key=lambda one: one.count).line if seen else line


def same_file(left: str, right: str) -> bool:
    """Return whether two spellings of a path mean the same file: traces cut the front of it."""
    left, right = left.replace("\\", "/"), right.replace("\\", "/")
    return bool(left and right) and (left == right or left.endswith("/" + right) or right.endswith("/" + left))
