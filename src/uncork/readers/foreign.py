"""Names the formats of other tools and things that are no recordings, and says what to do instead."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from uncork.errors import UnreadableError

ORDER = 20
"""Asked before the trace reader, which takes any JSON."""


@dataclass(frozen=True)
class Foreign:
    """A format that is recognised but not read.

    Args:
        name: What it is, as a phrase after "is".
        hint: What to do instead.
        starts: Found at the first byte that is not blank.
        holds: All found somewhere in the head.
    """

    name: str
    hint: str
    starts: re.Pattern[bytes] = re.compile(b"")
    holds: tuple[bytes, ...] = ()


_GIVE_TRACE = "Give the trace written by torch.profiler (export_chrome_trace or tensorboard_trace_handler)."

FORMATS = (
    Foreign(
        "a Git LFS pointer, not the file itself",
        "Type: git lfs pull",
        re.compile(rb"version https://git-lfs\.github\.com/spec"),
    ),
    Foreign(
        "a web page, not a trace: the download went wrong",
        "Download the file itself (on GitHub: the Raw button).",
        re.compile(rb"<(?:!doctype html|html|head|\?xml)", re.IGNORECASE),
    ),
    Foreign(
        "an execution trace (Chakra), which holds what ran but no times",
        "Give the profiler's trace of the same run.",
        re.compile(rb'\{\s*"(?:schema|nodes|pid|time)"'),
        (b'"nodes"', b'"ctrl_deps"'),
    ),
    Foreign(
        "an execution trace (Chakra), which holds what ran but no times",
        "Give the profiler's trace of the same run.",
        re.compile(rb'\{\s*"schema"\s*:\s*"[^"]{0,40}"'),
        (b'"nodes"',),
    ),
    Foreign("a trace of rocprof", _GIVE_TRACE, re.compile(rb"\{"), (b'"otherData"', b"HSASystemAttributes")),
    Foreign("a trace of rocprof", _GIVE_TRACE, re.compile(rb"\{"), (b"HIP API", b'"BeginNs"')),
    Foreign(
        "a trace of rocprof (rocprofiler-sdk)",
        _GIVE_TRACE,
        re.compile(rb"\{"),
        (b'"rocprofiler-sdk', b'"buffer_records"'),
    ),
    Foreign("a Horovod timeline", _GIVE_TRACE, re.compile(rb"\["), (b"NEGOTIATE_",)),
    Foreign("a Horovod timeline", _GIVE_TRACE, re.compile(rb"\["), (b"CYCLE_START",)),
    Foreign(
        "a database, as Nsight Systems exports one",
        f"uncork does not read it. {_GIVE_TRACE}",
        re.compile(rb"SQLite format 3\0"),
    ),
    Foreign("a browser's trace: it holds no PyTorch events", _GIVE_TRACE, re.compile(rb"[\[{]"), (b'"DevTools"',)),
    Foreign(
        "a browser's trace: it holds no PyTorch events", _GIVE_TRACE, re.compile(rb"[\[{]"), (b'"devtools.timeline',)
    ),
    Foreign(
        "a speedscope profile, which py-spy and others write",
        _GIVE_TRACE,
        re.compile(rb"\{"),
        (b"speedscope.app/file-format-schema",),
    ),
    Foreign("a trace of VizTracer", _GIVE_TRACE, re.compile(rb"\{"), (b'"viztracer_metadata"',)),
    Foreign("a notebook", _GIVE_TRACE, re.compile(rb"\{"), (b'"cells"', b'"nbformat"')),
    Foreign("a model in the safetensors format", _GIVE_TRACE, re.compile(rb".\0{0,2}.{0,3}\0{4,6}\{\"", re.DOTALL)),
    Foreign(
        "a log of TensorBoard events",
        "Give the *.pt.trace.json files beside it.",
        re.compile(rb".{9,40}brain\.Event:2", re.DOTALL),
    ),
    Foreign("a program or library", _GIVE_TRACE, re.compile(rb"\x7fELF|MZ\x90")),
    Foreign("a picture or a document", _GIVE_TRACE, re.compile(rb"\x89PNG|%PDF|\xff\xd8\xff|GIF8")),
    Foreign("an archive", "Unpack it and give the folder.", re.compile(rb"7z\xbc\xaf|Rar!|BZh|\xfd7zXZ|\x1f\xa0")),
)

_OWN = (b'"schemaVersion"', b'"deviceProperties"')
"""What Kineto writes at the top of every trace; a file with both is no foreign one, whatever names it holds."""


def claims(head: bytes, path: Path) -> bool:
    """Return whether the file is of a format of another tool."""
    del path
    return _recognised(head) is not None


def read(path: Path) -> NoReturn:
    """Stop, saying what the file is and what to give instead."""
    from uncork.readers.source import head_of

    found = _recognised(head_of(path))
    name, hint = (found.name, found.hint) if found else ("of an unknown format", _GIVE_TRACE)
    raise UnreadableError(f"{path}: is {name}.", hint)


def _recognised(head: bytes) -> Foreign | None:
    if all(mark in head for mark in _OWN):
        return None
    text = head.lstrip()
    for form in FORMATS:
        if form.starts.match(text) and all(mark in head for mark in form.holds):
            return form
    return None
