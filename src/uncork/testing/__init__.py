"""For people who write rules, readers and renderers: recordings from a text sketch, rule pages as tests."""

from uncork.testing.kineto import traces, write_traces
from uncork.testing.pages import check_page, examples, outcome_of, page_of
from uncork.testing.recordings import sketch
from uncork.testing.sketch import SketchError, read_sketch

__all__ = [
    "SketchError",
    "check_page",
    "examples",
    "outcome_of",
    "page_of",
    "read_sketch",
    "sketch",
    "traces",
    "write_traces",
]
