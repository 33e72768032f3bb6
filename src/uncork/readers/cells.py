"""A recording made in a notebook, with its cells in place of the file names that the kernel gave them."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from uncork.events import EventTable, Strings
from uncork.recording import Recording

MOST_CELLS = 1000


def with_cells(recording: Recording, cells: Mapping[str, object]) -> Recording:
    """Return a recording of a run with ``In [2]`` for the file of a cell, so that a place reads ``In [2]:6``.

    Args:
        recording: As read.
        cells: File → number of the cell, as the recorder saw them.
    """
    if not cells:
        return recording
    named = islice(cells.items(), MOST_CELLS)
    names = {file: f"In [{number}]" for file, number in named if file and type(number) is int}
    functions, deep = recording.functions, recording.deep
    if functions is not None:
        functions = replace(functions, file=tuple(names.get(file, file) for file in functions.file))
    if deep is not None and deep.moments is not None:
        sites = tuple((names.get(file, file), line, function) for file, line, function in deep.moments.sites)
        deep = replace(deep, moments=replace(deep.moments, sites=sites))
    return replace(
        recording,
        events=_renamed(recording.events, names),
        deep=replace(deep, events=_renamed(deep.events, names)) if deep else None,
        functions=functions,
        stacks=tuple(replace(one, file=names.get(one.file, one.file)) for one in recording.stacks),
    )


def _renamed(table: EventTable | None, names: Mapping[str, str]) -> EventTable | None:
    """Return events whose texts (frames, mostly) name cells."""
    if table is None or not names:
        return table
    strings = table.strings
    cells = {
        json.dumps(file, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass"): name.encode()
        for file, name in names.items()
    }
    # In one pass, so that no name of a cell is taken for a file; the longest first.
    pattern = re.compile(b"|".join(map(re.escape, sorted(cells, key=len, reverse=True))))
    if not pattern.search(bytes(strings.blob)):
        return table
    texts = (strings.raw(index) for index in range(len(strings)))
    return replace(table, strings=Strings.of_raw([pattern.sub(lambda found: cells[found[0]], text) for text in texts]))
