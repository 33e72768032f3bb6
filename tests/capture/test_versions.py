"""What differs between versions of torch and Python."""

import sys
from types import SimpleNamespace

import pytest

from uncork.capture import versions
from uncork.capture.versions import let_collectives_end, why_no_stacks


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
