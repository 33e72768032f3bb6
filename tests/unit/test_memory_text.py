"""The memory section as people read it in a terminal, in both languages and at several widths."""

import pickle
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.unit.test_memory_choices import FAILED
from tests.unit.test_snapshot import memory_of
from uncork import readers
from uncork.pipeline import analyze_recordings
from uncork.render import Options, renderers
from uncork.testing import sketch

GIB = 1 << 30


def text_of(lines: list[str], options: Options) -> str:
    """Return the terminal's text on a sketched snapshot."""
    return renderers()["terminal"](analyze_recordings(sketch("\n".join(f"snapshot {line}" for line in lines))), options)


def test_a_failure_is_told_with_line_bytes_and_remedy():
    """What was asked, where, in which phase, what was free and short; what would have been enough, and where."""
    text = text_of(FAILED, Options(width=120))
    assert "Failed  512 MiB asked for in the forward pass  gpt.py:46 forward" in text
    assert "128 MiB free on the device · 768 MiB idle in the reserve (pieces: 1, the largest 768 MiB)" in text
    assert "short of 384 MiB" in text
    # 18 allocations and 18 frees of two actions each, then 24 allocations, a millisecond apart: 77 after the first.
    assert "forward pass · 77.0 ms into the recording" in text
    row = next(line for line in text.splitlines() if line.strip().startswith("recompute the modules"))
    assert row.split("  ")[-1] == "gpt.py:88 forward · 8 calls · enough"
    assert "  1  −864 MiB…1.00 GiB  Out of memory" in text
    assert "recompute the modules called at one line: frees 864 MiB … 1.00 GiB at the peak" in text
    assert "from torch.utils.checkpoint import checkpoint" in text


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_wider_than_the_terminal(lang: str, width: int, verbose: bool):
    """Numbers stay whole at eighty columns, in Chinese too."""
    text = text_of(FAILED, Options(lang=lang, width=width, verbose=verbose))
    assert max(map(cell_len, text.splitlines())) <= width
    assert "864 MiB … 1.00 GiB" in text


def segments() -> list[dict[str, object]]:
    """Return a segment that is full, one that is free, and one with a free gap between two blocks."""
    used = {"state": "active_allocated", "frames": []}
    states = ([(3, used)], [(3, {"state": "inactive"})], [(1, used), (1, {"state": "inactive"}), (1, used)])
    found = []
    for place, parts in enumerate(states):
        at, blocks = place * 10 * GIB, []
        for size, state in parts:
            blocks.append({"address": at, "size": size * GIB, "requested_size": size * GIB, **state})
            at += size * GIB
        found.append({"device": 0, "address": place * 10 * GIB, "total_size": 3 * GIB, "blocks": blocks})
    return found


def test_segments_are_counted_by_what_is_free_in_them(tmp_path: Path):
    """One full, one free with 3 GiB that empty_cache gives back, one with 1 GiB between blocks, which is drawn."""
    path = tmp_path / "segments.pickle"
    action = {"action": "alloc", "addr": 0, "size": 3 * GIB, "frames": []}
    path.write_bytes(pickle.dumps({"segments": segments(), "device_traces": [[action]]}))
    recordings = readers.read(path)
    told = memory_of(recordings[0].snapshot).content()["segments"]
    assert (told["full"], told["free"], told["free_bytes"]) == (1, 1, 3 * GIB)
    assert (told["part"], told["part_free_bytes"]) == (1, GIB)
    text = renderers()["terminal"](analyze_recordings(recordings), Options(width=46, verbose=True))
    bars = [line.split()[-1] for line in text.splitlines() if "░" in line]
    assert bars == ["█" * 10 + "░" * 10 + "█" * 10]


def test_growth_is_told_beside_the_peak():
    """100 MiB more with each of five steps stand in the head of the section."""
    step = "torch/optim/adam.py:400:_multi_tensor_adam < torch/optim/adam.py:200:step < train.py:30:main"
    lines = ["old 1GiB"]
    for number in range(5):
        lines += [f"alloc k{number} 100MiB train.py:20:main", f"alloc s{number} 1MiB {step}", f"free s{number} {step}"]
    assert "100 MiB more with each step" in text_of(lines, Options(width=160))


def test_a_list_of_segments_says_that_it_has_no_history():
    """What is in use is no peak then; how to keep a history is said."""
    text = text_of(["reserved 8GiB", "old 6GiB", "without history"], Options(width=160))
    assert "Memory in use  6.00 GiB" in text
    assert "no history: neither the peak nor most owners are known" in text
    assert "_record_memory_history()" in text


def test_a_limit_of_the_programs_own_is_told_as_that():
    """4 GiB were left for a request of 1: no change of the model is called enough, the limit is named."""
    lines = ["reserved 3GiB", "old 2GiB", "oom 1GiB free 4GiB train.py:9:main"]
    text = text_of(lines, Options(width=160, verbose=True))
    assert "the device had enough: a limit of the program's own was reached" in text
    assert "set_per_process_memory_fraction" in text
    assert "short of" not in text
