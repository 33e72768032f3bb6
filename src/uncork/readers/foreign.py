"""Names the formats of other tools and things that are no recordings, and says what to do instead."""

import re
from pathlib import Path
from typing import NoReturn

from uncork.errors import UnreadableError
from uncork.records import dataclass

ORDER = 20
"""Asked before the trace reader, which takes any JSON."""


@dataclass(frozen=True)
class Foreign:
    """A format that is recognised but not read.

    Args:
        id: Of the text that names it and says what to do instead, ``error.foreign_<id>``.
        starts: Found at the first byte that is not blank.
        holds: All found somewhere in the head.
        suffixes: Ends of the file's name, for binary forms without a mark of their own.
    """

    id: str
    starts: re.Pattern[bytes]
    holds: tuple[bytes, ...] = ()
    suffixes: tuple[str, ...] = ()


_OBJECT = re.compile(rb"\{")
_LIST = re.compile(rb"\[")
_EITHER = re.compile(rb"[\[{]")
_NO_JSON = re.compile(rb"[^\[{]")

FORMATS = (
    Foreign("git_lfs", re.compile(rb"version https://git-lfs\.github\.com/spec")),
    Foreign("vector_picture", re.compile(rb"<(?:svg|\?xml)", re.IGNORECASE), (b"<svg",)),
    Foreign("web_page", re.compile(rb"<(?:!doctype html|!--|html|head|body|error>|\?xml)", re.IGNORECASE)),
    Foreign("chakra", re.compile(rb'\{\s*"(?:schema|nodes|pid|time)"'), (b'"nodes"', b'"ctrl_deps"')),
    Foreign("chakra", re.compile(rb'\{\s*"schema"\s*:\s*"[^"]{0,40}"'), (b'"nodes"',)),
    Foreign("chakra", _NO_JSON, suffixes=(".et",)),
    Foreign("rocprof", _OBJECT, (b'"otherData"', b"HSASystemAttributes")),
    Foreign("rocprof", _OBJECT, (b"HIP API", b'"BeginNs"')),
    Foreign("rocprof", re.compile(rb'"?Index"?,"?KernelName"?,"?gpu-id')),
    Foreign("rocprof", re.compile(rb'"?Name"?,"?Calls"?,"?TotalDuration(?:Ns|\(ns\))')),
    Foreign("rocprof", re.compile(rb'"?(?:Kind|Domain)"?,[^\n]*"?(?:Agent_Id|Function|Correlation_Id)"?,')),
    Foreign("rocprofiler_sdk", _OBJECT, (b'"rocprofiler-sdk', b'"buffer_records"')),
    Foreign("horovod", _LIST, (b"NEGOTIATE_",)),
    Foreign("horovod", _LIST, (b"CYCLE_START",)),
    Foreign("sqlite", re.compile(rb"SQLite format 3\0")),
    Foreign("nsight_systems", _NO_JSON, suffixes=(".nsys-rep", ".qdrep")),
    Foreign("nsight_compute", _NO_JSON, suffixes=(".ncu-rep",)),
    Foreign("browser", _EITHER, (b'"DevTools"',)),
    Foreign("browser", _EITHER, (b'"devtools.timeline',)),
    Foreign("browser", _OBJECT, (b'"preprocessedProfileVersion"',)),  # Firefox
    Foreign("browser", _OBJECT, (b'"geckoProfileVersion"',)),
    Foreign("browser", _OBJECT, (b'"nodes"', b'"callFrame"', b'"functionName"')),
    Foreign("browser", _OBJECT, (b'"snapshot"', b'"node_fields"')),
    Foreign("browser", _EITHER, (b'"__metadata"', b'"num_cpus"')),
    Foreign("xplane", _NO_JSON, suffixes=(".xplane.pb",)),
    Foreign("pprof", re.compile(rb"\n.\x08.\x10", re.DOTALL)),
    Foreign(
        "perfetto",
        re.compile(rb"\n(?:[\x80-\xff]{0,3}[\x01-\x7f])(?:[\x12\x18\x32\x40\x50\x5a]|[\x8a\xa2\xca\xe2][\x02-\x06])"),
    ),
    Foreign("perfetto", _NO_JSON, suffixes=(".pftrace", ".perfetto-trace")),
    Foreign("speedscope", _OBJECT, (b"speedscope.app/file-format-schema",)),
    Foreign("viztracer", _OBJECT, (b'"viztracer_metadata"',)),
    Foreign("perf", re.compile(rb"PERFILE2|2ELIFREP")),
    Foreign("memray", re.compile(rb"memray\0|\x04\x22\x4d\x18.{7,16}memray\0", re.DOTALL)),
    Foreign("callgrind", re.compile(rb"(?:# callgrind format|version: 1\s|creator: )")),
    Foreign("scalene", _OBJECT, (b'"elapsed_time_sec"', b'"samples"')),
    Foreign("pyinstrument", _OBJECT, (b'"frame_tree"',)),
    Foreign("pyinstrument", _OBJECT, (b'"start_call_stack"', b'"sample_count"')),
    Foreign("parquet", re.compile(rb"PAR1|ARROW1|FEA1")),
    Foreign("hdf5", re.compile(rb"\x89HDF\r\n")),
    Foreign("numpy", re.compile(rb"\x93NUMPY")),
    Foreign("notebook", _OBJECT, (b'"cells"', b'"nbformat"')),
    Foreign("safetensors", re.compile(rb".\0{0,2}.{0,3}\0{4,6}\{\"", re.DOTALL)),
    Foreign("tensorboard", re.compile(rb".{9,40}brain\.Event:2", re.DOTALL)),
    Foreign("torch_save", re.compile(re.escape(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."))),  # before torch 1.6
    Foreign("folded_stacks", re.compile(rb'(?:[^\n;{\["]+ \d+\r?\n)*[^\n;{\["]+;[^\n]* \d+\r?\n')),
    Foreign("printed_table", re.compile(rb"-{5,}  -{5,}"), (b"CPU total",)),
    Foreign("program", re.compile(rb"\x7fELF|MZ\x90")),
    Foreign(
        "document", re.compile(rb"\x89PNG|%PDF|\xff\xd8\xff|GIF8|RIFF....WEBP|BM.{4}\0{4}|II\*\0|MM\0\*", re.DOTALL)
    ),
    Foreign("document", re.compile(rb"\0\0\0.ftyp", re.DOTALL)),
    Foreign("archive", re.compile(rb".{257}ustar", re.DOTALL)),
    Foreign("archive", re.compile(rb"\x1f\x8b|PK\x03\x04|\x28\xb5\x2f\xfd")),  # packed twice
    Foreign("archive", re.compile(rb"\x04\x22\x4d\x18|7z\xbc\xaf|Rar!|BZh|\xfd7zXZ|\x1f\xa0")),
)

_OWN = (b'"schemaVersion"', b'"deviceProperties"')
"""What Kineto writes at the top of every trace; a file with both is no foreign one, whatever names it holds."""


def claims(head: bytes, path: Path) -> bool:
    """Return whether the file is of a format of another tool."""
    return _recognised(head, path) is not None


def read(path: Path) -> NoReturn:
    """Stop, saying what the file is and what to give instead."""
    from uncork.readers.source import head_of

    found = _recognised(head_of(path), path)
    raise UnreadableError(f"foreign_{found.id}" if found else "no_recording", path=path)


def _recognised(head: bytes, path: Path) -> Foreign | None:
    if all(mark in head for mark in _OWN):
        return None
    text = head.lstrip()
    for form in FORMATS:
        if (
            (form.starts.match(text) or form.starts.match(head))
            and all(mark in head for mark in form.holds)
            and (not form.suffixes or path.name.lower().endswith(form.suffixes))
        ):
            return form
    return None
