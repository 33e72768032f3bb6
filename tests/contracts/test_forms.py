"""Every reader and every renderer keeps the promises of its kind, those to come included."""

import json
import os
import re
from pathlib import Path
from types import ModuleType

import pytest

from uncork import readers, report
from uncork.errors import UncorkError
from uncork.locale import LANGUAGES, catalogue
from uncork.pipeline import analyze_recordings
from uncork.render import Options, renderers
from uncork.report import Report
from uncork.testing import sketch, write_traces

HOSTILE = '</script><script>alert(1)</script>"\\`[x](http://x)\x1b]0;title\x07'
SLOW = f"""device NVIDIA A100-SXM4-80GB
with stacks memory
steps 6 x 10ms
  main 0ms..10ms train.py(40): train
  main 8.1ms [memory] {{"Bytes": 1048576, "Total Allocated": 2097152, "Device Type": 1, "Device Id": 0}}
  main 0ms..8ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  main 0.2ms..7.8ms data.py(23): __getitem__{HOSTILE}
  main 8ms..8.5ms aten::conv2d -> stream 7 8.1ms..9.9ms cudnn{HOSTILE}
"""
KEY_SHOWN = re.compile(r"\b(?:missing|record|quality|cause|metric|note|repair)\.[a-z_]+")


@pytest.fixture(scope="module")
def slow() -> Report:
    """Return a report with findings, on a recording whose names try to break out of every form."""
    return analyze_recordings(sketch(SLOW), views=True)


@pytest.mark.parametrize("reader", readers.READERS, ids=lambda reader: reader.__name__.rpartition(".")[2])
def test_a_reader_leaves_alone_what_is_not_its_own(reader: ModuleType, tmp_path: Path):
    """Nothing, noise and prose belong to nobody; a claim is a plain truth value."""
    for head in (b"", bytes(range(256)) * 4, b"Dear reader,\n" * 40):
        path = tmp_path / "file"
        path.write_bytes(head)
        claimed = reader.claims(head, path)
        assert isinstance(claimed, bool)
        assert not claimed


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 100, b"[]", b"{}", b'{"traceEvents": ', b'{"name": "package"}', os.urandom(200)]
)
def test_what_is_no_recording_is_refused_in_one_line(content: bytes, tmp_path: Path):
    """An error of our own, with one line and the file's name; never another exception."""
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(UncorkError) as refused:
        readers.read(path)
    assert "\n" not in str(refused.value)
    assert "file.json" in str(refused.value)


def test_times_are_integers_and_rows_agree(tmp_path: Path):
    """All columns of a table have one length, times are int64, no duration is negative."""
    (path,) = write_traces(SLOW, tmp_path, compress=True)
    (recording,) = readers.read(path)
    events = recording.events
    assert events is not None
    assert (events.ts_ns.dtype, events.dur_ns.dtype) == ("int64", "int64")
    assert {len(column) for column in (events.ts_ns, events.dur_ns, events.kind, events.name, events.track)} == {
        len(events)
    }
    assert (events.dur_ns >= 0).all()
    assert events.track.max() < len(events.tracks)
    assert events.name.max() < len(events.strings)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", list(renderers()))
def test_a_renderer_is_a_plain_function(name: str, lang: str, slow: Report):
    """Text comes back, the same each time, and the report is as it was."""
    before = report.dumps(slow)
    shown = renderers()[name](slow, Options(lang=lang))
    assert isinstance(shown, str)
    assert shown.strip()
    assert renderers()[name](slow, Options(lang=lang)) == shown
    assert report.dumps(slow) == before


@pytest.mark.parametrize("name", ["terminal", "markdown", "html"])
def test_names_from_a_recording_command_nothing(name: str, slow: Report):
    """Names with markup and terminal commands stay names in every form that people open."""
    shown = renderers()[name](slow, Options(lang="en", verbose=True, top=20, color=True))
    assert "alert(1)" in shown, "the name is there at all"
    assert "\x1b]" not in shown
    assert "\x07" not in shown
    if name == "html":
        assert "<script>alert(1)" not in shown
    if name == "markdown":
        outside = re.sub(r"`[^`]*`", "", shown)
        assert "<script>" not in outside


@pytest.mark.parametrize("name", [name for name in renderers() if name in ("json", "perfetto", "speedscope")])
def test_forms_for_programs_are_json(name: str, slow: Report):
    """What other programs read can be read, whatever the names are."""
    assert "alert(1)" in json.dumps(json.loads(renderers()[name](slow, Options())))


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", [name for name in renderers() if name in ("terminal", "markdown")])
def test_nobody_is_shown_a_key_of_the_catalogue(name: str, lang: str, slow: Report):
    """A text that is missing shows as its key; none does."""
    shown = renderers()[name](slow, Options(lang=lang, verbose=True, top=20))
    assert [key for key in KEY_SHOWN.findall(shown) if key not in json.dumps(sorted(catalogue(lang).values()))] == []
