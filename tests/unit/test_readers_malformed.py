"""Every deliberately broken trace ends as its manifest says: repaired and counted, or refused in one line."""

import json
from pathlib import Path

import numpy as np
import pytest

from uncork import readers
from uncork.errors import UnreadableError
from uncork.events import Kind
from uncork.locale import say
from uncork.pipeline import analyze

# file → (events that remain, repairs that are counted); worked out by hand from the files.
READ: dict[str, tuple[int, dict[str, int]]] = {
    "01-quotes-in-name.json": (12, {"quotes": 1}),
    "03-raw-newline-in-string.json": (12, {"control_characters": 1}),
    "04-nan-inf.json": (11, {"bare_words": 3, "not_a_number": 1}),
    "06-array-no-closing-bracket.json": (12, {}),
    "07-trailing-comma.json": (12, {"commas": 1}),
    "12-legacy-missing-quote.json": (2, {"quotes": 1}),
    "13-unquoted-values.json": (12, {"bare_words": 2}),
    "15-two-documents.json": (12, {"second_document": 1}),
    "16-nested-wrapper.json": (12, {"nested_wrapper": 1}),
    "18-utf8-bom.json": (12, {}),
    "19-utf16.json": (12, {}),
    "21-plain-text-named-gz.json.gz": (12, {}),
    "22-gzip-named-json.json": (12, {}),
    "24-zip-container.json.zip": (12, {}),
    "30-negative-duration.json": (11, {"negative_duration": 1}),
    "31-zero-timestamp-kernel.json": (13, {"lost_records": 1}),
    "33-duration-runs-over-next.json": (6, {"spilling_kernels": 1}),
    "34-partial-overlap-same-thread.json": (4, {}),
    "36-times-as-text.json": (12, {"text_times": 24}),
    "37-nanoseconds.json": (12, {"nanoseconds": 12}),
    "39-base-time-rank0.json": (12, {}),
    "39-base-time-rank1.json": (12, {}),
    "41-graph-one-launch-many-kernels.json": (22, {}),
    "42-no-profiler-step.json": (9, {}),
    "44-step-not-finished.json": (12, {"unfinished": 1}),
    "45-kernels-without-launch.json": (9, {}),
    "47-first-steps-lost-kernels.json": (22, {}),
    "48-no-distributed-info.json": (13, {}),
    "51-begin-end-unbalanced.json": (2, {"unpaired": 2}),
    "53-odd-fields.json": (12, {"odd_events": 6, "no_time": 1, "odd_args": 2}),
    "54-duplicate-keys.json": (12, {}),
    "56-mangled-kernel-name.json": (12, {}),
    "60-one-event.json": (1, {}),
}

# file → words the one line of refusal must hold
REFUSED = {
    "09-no-events.json": "nothing was recorded",
    "10-metadata-only.json": "nothing was recorded",
    "25-lfs-pointer.json": "git lfs pull",
    "50-merged-two-ranks-same-pid.json": "mixed under one process id",
    "57-other-tool-chakra.json": "Chakra",
    "59-other-tool-browser.json": "browser",
}


# file → what the report says about it unasked, where more than a triviality was mended or guessed
TOLD = {
    "04-nan-inf.json": "Events whose duration is no number were left out: 1.",
    "15-two-documents.json": "only the first was read",
    "30-negative-duration.json": "Events that end before they begin were left out: 1.",
    "31-zero-timestamp-kernel.json": "Device records without a time were left out: 1.",
    "34-partial-overlap-same-thread.json": "were cut there so that no time counts twice: 2.",
    "37-nanoseconds.json": "Times were written in nanoseconds",
    "44-step-not-finished.json": "Events that never ended were left out: 1.",
    "45-kernels-without-launch.json": "100 % of the device's records have no launch",
    "47-first-steps-lost-kernels.json": "First steps without any record of the kernels that they launched: 2.",
    "48-no-distributed-info.json": "does not say which rank it is",
    "51-begin-end-unbalanced.json": "ends without a beginning, were left out: 2.",
    "53-odd-fields.json": "Entries that are no events were skipped: 6.",
}


@pytest.fixture(params=["fastest", "portable"])
def any_scanner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Read with the scanner of this installation, then with the portable one."""
    if request.param == "portable":
        monkeypatch.setattr("uncork.readers.engine._compiled", lambda: None)
    return str(request.param)


def test_the_manifest_is_covered(shared: Path) -> None:
    """Each trace of the manifest is in one of the two tables here."""
    manifest = json.loads((shared / "corpus/malformed/MANIFEST.json").read_text())
    traces = {entry["file"] for entry in manifest if not entry["file"].endswith(".pickle")}
    assert traces == READ.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", READ)
def test_repaired(shared: Path, name: str, any_scanner: str) -> None:
    """What can be saved is saved, and each repair is counted."""
    del any_scanner
    (recording,) = readers.read(shared / "corpus" / "malformed" / name)
    count, repairs = READ[name]
    assert recording.events is not None
    assert len(recording.events) == count
    found = dict(recording.repairs)
    if name.startswith("04"):
        found.pop("text_times", None)
    assert found == repairs


@pytest.mark.parametrize("name", TOLD)
def test_what_is_lost_or_guessed_is_told_unasked(shared: Path, name: str) -> None:
    """The report's warnings say what was left out, cut, or taken for granted."""
    report = analyze([shared / "corpus" / "malformed" / name])
    said = [say("en", f"quality.{one.id}", one.params) for one in report.quality if one.severity != "info"]
    assert TOLD[name] in " ".join(said)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(shared: Path, name: str, any_scanner: str) -> None:
    """What cannot be read is refused in one line that says what to do."""
    del any_scanner
    with pytest.raises(UnreadableError, match=REFUSED[name]) as refusal:
        readers.read(shared / "corpus" / "malformed" / name)
    assert "\n" not in str(refusal.value)
    assert name in refusal.value.told("zh")


def test_nanoseconds_are_not_a_thousand_times_too_long(shared: Path) -> None:
    """The first step of the trace written in ns lasts 980 µs."""
    (recording,) = readers.read(shared / "corpus/malformed/37-nanoseconds.json")
    events = recording.events
    assert events is not None
    assert events.dur_ns[events.name_is("ProfilerStep#5")].tolist() == [980_000]


def test_a_spilling_kernel_is_clipped(shared: Path) -> None:
    """No kernel runs beyond the next one of its stream."""
    (recording,) = readers.read(shared / "corpus/malformed/33-duration-runs-over-next.json")
    events = recording.events
    assert events is not None
    kernels = events.of_kind(Kind.KERNEL)
    order = np.argsort(events.ts_ns[kernels])
    assert (events.end_ns[kernels][order][:-1] <= events.ts_ns[kernels][order][1:]).all()


def test_base_times_are_added(shared: Path) -> None:
    """Two ranks whose times look alike are a year apart once their bases are added."""
    starts = []
    for rank in (0, 1):
        (recording,) = readers.read(shared / f"corpus/malformed/39-base-time-rank{rank}.json")
        assert recording.events is not None
        assert recording.rank == rank
        starts.append(int(recording.events.ts_ns.min()))
    assert starts == [1735689600000000000 + 1_000_000, 1767225600000000000 + 1_000_000]
