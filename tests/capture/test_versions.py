"""What differs between versions of torch and Python."""

import sys
from types import SimpleNamespace

import pytest

from uncork.capture import versions
from uncork.capture.versions import OpenMarks, as_written, let_collectives_end, open_marks, why_no_stacks


@pytest.mark.parametrize(
    ("python", "torch", "note"),
    [
        ((3, 11, 9), "2.3.1", ""),
        ((3, 12, 0), "2.15.0+cu132", "stacks-lost-calls"),
        ((3, 12, 4), "2.3.1", "stacks-lost-calls"),
        ((3, 12, 5), "2.3.1", ""),
        ((3, 13, 0), "2.7.1", "stacks-crash"),
        ((3, 13, 0), "2.8.0", ""),
        ((3, 14, 0), "2.15.0a0+git1234", ""),
    ],
)
def test_where_stacks_cannot_be_had(
    python: tuple[int, int, int], torch: str, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only Python 3.12.0 to 3.12.4, and from 3.13 on torch before 2.8, go without, and each says why."""
    monkeypatch.setattr(sys, "version_info", python)
    assert why_no_stacks(SimpleNamespace(__version__=torch)) == note


@pytest.mark.parametrize(("begun", "waits_s"), [(False, []), (True, [versions.LAST_WORDS_S])])
def test_threads_of_collectives_have_their_say(
    begun: bool, waits_s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a program with ranks waits before the profiler stops."""
    waited: list[float] = []
    monkeypatch.setattr(versions.time, "sleep", waited.append)
    let_collectives_end(SimpleNamespace())
    let_collectives_end(
        SimpleNamespace(distributed=SimpleNamespace(is_available=lambda: True, is_initialized=lambda: begun))
    )
    assert waited == waits_s


@pytest.mark.parametrize(
    ("torch", "regions", "operators"),
    [
        ("2.3.1", "zero", "stack"),
        ("2.4.1", "zero", "stack"),
        ("2.5.1+cpu", "zero", "stack"),
        ("2.6.0", "end", "stack"),
        ("2.7.1", "word", "stack"),
        ("2.8.0", "word", "word"),
        ("2.15.0+cu132", "word", "word"),
    ],
)
def test_how_traces_show_what_is_open(torch: str, regions: str, operators: str) -> None:
    """Each of these versions was tried: regions came to a word two versions before operators."""
    assert open_marks(SimpleNamespace(__version__=torch)) == OpenMarks(regions, operators)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("part 'one'", 'part "one"'),
        ("back/slash", "back\\slash"),
        ("newline", "new\nline"),
        ("unknown", "第一"),
        ("unknown", "tab\t"),
        ("第一", "第一"),
        ("<b>&amp;", "<b>&amp;"),
    ],
)
def test_names_can_be_compared(written: str, name: str) -> None:
    """What a version of torch writes and what the program wrote become the same."""
    assert as_written(written) == as_written(name)
    assert as_written(name) != as_written(name + "x") or as_written(name) == "unknown"
