"""The line of a function that ran most, by samples of stacks beside the program."""

from collections.abc import Iterable

from uncork.frames import same_file
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
