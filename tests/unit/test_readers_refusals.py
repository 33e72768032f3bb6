"""What is no trace is named, and what is one beyond use is refused, each in one clear line; profiles are read alike."""

import cProfile
import gzip
import json
import marshal
import zipfile
from pathlib import Path

import pytest

from tests.unit.test_readers_kineto import events_of, recordings_of, slice_of
from uncork import readers
from uncork.errors import UnreadableError
from uncork.readers import pstats


@pytest.mark.parametrize(
    ("head", "word"),
    [
        (b"", "empty"),
        (b"hello", "no recording"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"SQLite format 3\0" + b"\0" * 100, "Nsight Systems"),
        (b'{"$schema": "https://www.speedscope.app/file-format-schema.json"}', "speedscope"),
        (b'{"a": 1}', "no trace"),
        (b"\x89PNG\r\n", "picture"),
        (b"%PDF-1.7", "document"),
        (b"PAR1\x15\x00", "Parquet"),
        (b"ARROW1\0\0", "Arrow"),
        (b"\x93NUMPY\x01\0", "NumPy"),
        (b"PERFILE2" + b"\0" * 90, "Linux perf"),
        (b"memray\0\x0c\0\0\0", "memray"),
        (b"version: 1\ncreator: yappi\n", "callgrind"),
        (b'<?xml version="1.0"?>\n<svg version="1.1">', "py-spy"),
        (b"\n\x17\x92\x01\x14\x0a\x12", "no recording"),
        (b"\n\x0c\x40\x83\xf2\x8f\xb9\x05\x52\x02\x18\x01", "Perfetto"),
        (b"\n\x04\x08\x01\x10\x02\n\x04", "pprof"),
        (b'{"session": {"frame_tree": null}}', "pyinstrument"),
        (b'{"start_time": 1.5, "sample_count": 4, "start_call_stack": ["MainThread"]}', "pyinstrument"),
        (b"\x04\x22\x4d\x18\x40\x40\xc0\x71\x36\0\0\xfa\x04memray\0\x0d", "memray"),
        (b"prog.py" + bytes(250) + b"ustar\x0000", "archive"),
        (b"PK\x03\x04broken", "zip"),
        (b"PK\x05\x06" + bytes(18), "nothing in it"),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", "torch.save"),
        (b"train.py(3): step 7\ntrain.py(3): step;nn.Module: Linear_0;aten::addmm 1200\n", "export_stacks"),
        (b"-----------  ----------\n       Name    Self CPU   CPU total\n", "key_averages"),
        (b"\x1f\x8bbroken", "gzip"),
        (gzip.compress(gzip.compress(b"[]", mtime=0), mtime=0), "archive"),
        (b"<!-- saved from url=(0019)https://a.example -->\n<html>", "web page"),
        (b"<Error><Code>NoSuchKey</Code></Error>", "web page"),
        (b'"Index","KernelName","gpu-id","queue-id"\n0,"add.kd",2,0\n', "rocprof"),
        (b'"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n', "rocprof"),
        (b'"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id"\n', "rocprof"),
        (b'{"meta": {"product": "Firefox", "preprocessedProfileVersion": 48}}', "browser"),
        (b'{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"}}]}', "browser"),
        (b'{"traceEvents":[{"ph":"M","cat":"__metadata","name":"num_cpus","pid":1}]}', "browser"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "picture"),
        (b'[{"frame": {"name": "ROOT"}}, {"CUDA": {}}]', "no list of events"),
    ],
)
def test_other_files_are_named(tmp_path: Path, head: bytes, word: str) -> None:
    """What is no recording is refused in one line that says what it is."""
    path = tmp_path / "trace.json"
    path.write_bytes(head)
    with pytest.raises(UnreadableError, match=word) as refusal:
        readers.read(path)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("a.nsys-rep", "Nsight Systems"),
        ("b.ncu-rep", "Nsight Compute"),
        ("c.xplane.pb", "JAX"),
        ("d.0.et", "Chakra"),
    ],
)
def test_binary_forms_without_a_mark_are_named_by_the_file(tmp_path: Path, name: str, word: str) -> None:
    """Where the content cannot tell, the name may say what to refuse; never what to read."""
    path = tmp_path / name
    path.write_bytes(bytes(range(1, 200)))
    with pytest.raises(UnreadableError, match=word):
        readers.read(path)
    path.write_text(json.dumps([slice_of("aten::mm", "cpu_op", 1, 1)]))
    assert len(readers.read(path)) == 1


def test_calls_of_unitrace_are_no_operators(tmp_path: Path) -> None:
    """Intel's unitrace writes its calls with PyTorch's category; the name of the process tells."""
    named = {"ph": "M", "name": "process_name", "pid": 7, "ts": 1, "args": {"name": "RANK 0 HOST<node1>"}}
    with pytest.raises(UnreadableError, match="unitrace"):
        recordings_of(tmp_path, [slice_of("zeCommandListAppendLaunchKernel", "cpu_op", 5, 3, pid=7), named])


@pytest.mark.parametrize(
    ("members", "word"),
    [
        (("x.npy", "y.npy"), "NumPy"),
        (("[Content_Types].xml", "xl/workbook.xml"), "no recording"),
        (("a.json", "b.json", "c.txt"), "holds 2 files"),
    ],
)
def test_archives_without_one_trace_are_told(tmp_path: Path, members: tuple[str, ...], word: str) -> None:
    """An archive of something else is not said to hold recordings."""
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            archive.writestr(member, b"x")
    with pytest.raises(UnreadableError, match=word):
        readers.read(path)


@pytest.mark.parametrize("factor", [1e-3, 1e-6])
def test_times_in_ms_or_s_are_refused(tmp_path: Path, factor: float) -> None:
    """Operators of 2 µs whose times were written in ms or s would take 2 ns or none, which no operator does."""
    took_us = [2.0] * 30 + [9000.0]
    document = [slice_of("aten::mm", "cpu_op", 9_000_000.5 + 10 * i, took_us[i] * factor) for i in range(31)]
    with pytest.raises(UnreadableError, match="not in microseconds"):
        recordings_of(tmp_path, document)


def test_short_times_in_whole_microseconds_are_read(tmp_path: Path) -> None:
    """Old versions cut what is below 1 µs to 0: that is no other unit."""
    document = [slice_of("aten::view", "cpu_op", 9_000_000 + 10 * i, i % 2) for i in range(60)]
    assert len(events_of(tmp_path, document)) == 60
    document = [slice_of("aten::view", "cpu_op", 9_000_000.5 + 10 * i, 0) for i in range(60)]
    assert len(events_of(tmp_path, document)) == 60


def test_times_that_lost_their_digits_are_refused(tmp_path: Path) -> None:
    """A spreadsheet's 1.71219E+15 is the same for all events of a minute: no order is left to judge."""
    document = [slice_of("aten::mm", "cpu_op", 1.71219e15, 5 + i) for i in range(30)]
    with pytest.raises(UnreadableError, match="begin at the same time"):
        recordings_of(tmp_path, document)
    document += [slice_of("aten::mm", "cpu_op", 1.71219e15 + 10 * i, 5) for i in range(1, 40)]
    assert len(events_of(tmp_path, document)) == 69


@pytest.mark.parametrize("time", ["12 us", "1,5", "twelve"])
def test_unreadable_times_are_not_called_an_empty_recording(tmp_path: Path, time: str) -> None:
    """Where every event's time is beyond reading that is said, not that the profiler recorded nothing."""
    with pytest.raises(UnreadableError, match="3 events have no start"):
        recordings_of(tmp_path, [slice_of("aten::mm", "cpu_op", time, 5) for _ in range(3)])


@pytest.mark.parametrize("unpacked", [True, False], ids=["plain", "gzip"])
def test_a_file_cut_before_its_first_event_is_not_called_an_empty_recording(tmp_path: Path, unpacked: bool) -> None:
    """Wherever the file ends in its head or first event, it is cut; the profiler's schedule is not to blame."""
    head = b'{"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": [{"ph": "M", "name": "process"}, '
    event = b'{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5, "args": {}}'
    path = tmp_path / "trace.json"
    whole = head + event
    for end in (*range(1, len(head), 7), *range(len(head), len(whole))):
        path.write_bytes(whole[:end] if unpacked else gzip.compress(whole[:end]))
        with pytest.raises(UnreadableError) as refusal:
            readers.read(path)
        assert refusal.value.id == "trace_cut", whole[:end]
    path.write_bytes(whole)
    assert readers.read(path)[0].repairs == {"cut_file": 1}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"traceEvents": []}', "trace_empty"),
        ("[{", "trace_cut"),
        ("[", "trace_cut"),
        ('{"a": 1}', "json_without_events"),
        ('{"a" 1}', "json_without_events"),
    ],
)
def test_only_what_is_not_whole_is_called_cut(tmp_path: Path, text: str, told: str) -> None:
    """A whole file without events is told as before; a list in which nothing stands has not been written to its end."""
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(UnreadableError) as refusal:
        readers.read(path)
    assert refusal.value.id == told


def test_profiles_are_unpacked_by_content(tmp_path: Path) -> None:
    """A cProfile file is read packed too, whatever its name."""
    profile = cProfile.Profile()
    profile.runcall(sorted, [3, 1, 2])
    plain, packed = tmp_path / "a.json", tmp_path / "b.prof"
    profile.dump_stats(plain)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    (one,), (two,) = readers.read(plain), readers.read(packed)
    assert one.functions is not None
    assert two.functions is not None
    assert one.functions.name == two.functions.name
    assert any("sorted" in name for name in two.functions.name)


@pytest.mark.parametrize(
    "bomb", [b"{" + b"(" * 5_000, b"{)\x01(\xff\xff\xff\x7f", b"{)\x02l\xff\xff\xff\xff11[\xff\xff\xff\x7f"]
)
def test_profiles_that_promise_more_than_they_hold_are_refused(tmp_path: Path, bomb: bytes) -> None:
    """A tuple said to have billions of items gets no room made for it: refused before memory is asked for."""
    path = tmp_path / "a.prof"
    path.write_bytes(bomb)
    with pytest.raises(UnreadableError, match="cut off"):
        readers.read(path)
    assert not pstats._holds_what_it_says(bomb)


def test_profiles_of_odd_names_are_read(tmp_path: Path) -> None:
    """A name that looks like a long tuple is a name, whatever numbers and lengths stand around it."""
    key = ("C:\\Program Files (x86)\\[abcd].py", 3, "(wxyz" + "ü" * 300)
    path = tmp_path / "a.prof"
    path.write_bytes(marshal.dumps({key: (2**40, -(2**40), 0.5, 1.5, {key: (1, 1, 0.5, 0.5)})}))
    (recording,) = readers.read(path)
    assert recording.functions is not None
    assert recording.functions.name == (key[2],)
    assert pstats._HUGE.search(path.read_bytes())
