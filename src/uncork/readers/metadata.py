"""What a trace says beside its events: names of tracks, devices, flags, versions, ranks and groups."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from uncork.events import EventTable, Kind
from uncork.readers.columns import Scanned, distinct
from uncork.recording import Device, Flags
from uncork.records import dataclass

_MODULE = re.compile("^nn\\.Module: ")
_DIGIT = re.compile(rb"[1-9]")
_ASCEND_RANK = re.compile(r"profiler_info_(\d+)\.json$")
_RANK_IN_NAME = re.compile(r"rank[-_.]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class TrackNames:
    """Names that metadata events give, by id as text.

    Args:
        processes: Process id → name.
        labels: Process id → label (``CPU``, ``GPU 0``).
        threads: (process id, thread id) → name.
    """

    processes: Mapping[str, str]
    labels: Mapping[str, str]
    threads: Mapping[tuple[str, str], str]


def track_names(scanned: Scanned) -> TrackNames:
    """Return the names of processes and threads."""
    found: dict[str, dict[tuple[str, str], str]] = {"process_name": {}, "process_labels": {}, "thread_name": {}}
    metadata = scanned.in_phase("M")
    for argument in ("name", "labels"):
        column = scanned.args.get(argument)
        if column is None or column.texts is None:
            continue
        rows, values = column.texts
        wanted = metadata[rows]
        for row, value in zip(rows[wanted].tolist(), values[wanted].tolist(), strict=True):
            key = scanned.text(int(scanned.name[row]))
            if key in found and (key == "process_labels") == (argument == "labels"):
                pid, tid = scanned.tracks[scanned.track[row]].tolist()
                found[key][scanned.text(pid), scanned.text(tid)] = scanned.text(value)
    return TrackNames(
        processes={pid: name for (pid, _), name in found["process_name"].items()},
        labels={pid: name for (pid, _), name in found["process_labels"].items()},
        threads=found["thread_name"],
    )


def devices_of(header: Mapping[str, object]) -> tuple[Device, ...]:
    """Return the accelerators a header lists."""
    listed = header.get("deviceProperties")
    devices = []
    for place, entry in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(entry, dict):
            name = str(entry.get("name", ""))
            major, minor = _whole(entry.get("computeMajor")), _whole(entry.get("computeMinor"))
            index = _whole(entry.get("id"))
            devices.append(
                Device(
                    index=place if index is None else index,
                    name=name,
                    memory_bytes=_whole(entry.get("totalGlobalMem")),
                    compute_capability=(major, minor)
                    if None not in (major, minor) and not _is_amd(name, header)
                    else None,  # type: ignore[arg-type]
                    multiprocessors=_whole(entry.get("numSms")),
                )
            )
    return tuple(devices)


def _is_amd(name: str, header: Mapping[str, object]) -> bool:
    return "hip_runtime_version" in header or "roctracer_version" in header or name.startswith("AMD")


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def versions_of(header: Mapping[str, object]) -> dict[str, str]:
    """Return the versions a header states."""
    found = {}
    cuda, hip = _whole(header.get("cuda_runtime_version")), _whole(header.get("hip_runtime_version"))
    if cuda:
        found["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}"
    if hip:
        found["hip"] = f"{hip // 10_000_000}.{hip // 100_000 % 100}.{hip % 100_000}"
    for key, name in (("torch_version", "torch"), ("pytorch_version", "torch"), ("python_version", "python")):
        if isinstance(header.get(key), str):
            found[name] = str(header[key])
    return found


def flags_of(header: Mapping[str, object], events: EventTable) -> Flags:
    """Return what the recording holds: by its header's word, else by what is in it."""
    operators = bool(events.of_kind(Kind.CPU_OP).any())

    def flag(key: str, seen: bool) -> bool | None:
        if seen or header.get(key) in (1, True):
            return True
        return False if operators else None

    functions = events.of_kind(Kind.PYTHON_FUNCTION)
    modules = bool(functions.any()) and bool(events.fitting(_MODULE, Kind.PYTHON_FUNCTION).any())
    return Flags(
        shapes=flag("record_shapes", _has_shapes(events)),
        memory=flag("profile_memory", bool(events.of_kind(Kind.MEMORY).any())),
        stacks=flag("with_stack", bool(functions.any()) or _has_text(events, "Call stack")),
        modules=flag("with_modules", modules or _has_text(events, "Module Hierarchy")),
        flops=flag("with_flops", "flops" in events.args),
    )


def _has_shapes(events: EventTable) -> bool:
    column = events.args.get("Input Dims")
    if column is None or column.nested is None:
        return False
    return any(
        _DIGIT.search(events.strings.raw(index)) for index in distinct(column.nested[1], len(events.strings))[:4096]
    )


def _has_text(events: EventTable, key: str) -> bool:
    column = events.args.get(key)
    return (
        column is not None
        and column.texts is not None
        and any(events.strings.raw(index) for index in distinct(column.texts[1], len(events.strings))[:64])
    )


def rank_of(header: Mapping[str, object], path: Path) -> int | None:
    """Return the rank a header or else the file's name states."""
    info = header.get("distributedInfo")
    rank = _whole(info.get("rank")) if isinstance(info, dict) else None
    if rank is None:
        named = _RANK_IN_NAME.findall(path.name) or _ascend_rank(path)
        rank = int(named[-1]) if named and len(named[-1]) < 7 else None
    return rank


def _ascend_rank(path: Path) -> list[str]:
    """Return the rank that torch_npu writes into the name of a file beside the trace's folder."""
    if path.parent.name != "ASCEND_PROFILER_OUTPUT":
        return []
    return [found[1] for file in path.parent.parent.iterdir() if (found := _ASCEND_RANK.match(file.name))]


def world_size_of(header: Mapping[str, object]) -> int | None:
    """Return the number of ranks a header states."""
    info = header.get("distributedInfo")
    return _whole(info.get("world_size")) if isinstance(info, dict) else None


def groups_of(header: Mapping[str, object], events: EventTable) -> dict[str, tuple[int, ...]]:
    """Return the process groups: as the header lists them, else as the collectives name them."""
    info = header.get("distributedInfo")
    listed = info.get("pg_config") if isinstance(info, dict) else None
    groups: dict[str, tuple[int, ...]] = {}
    entries = list(listed.values()) if isinstance(listed, dict) else listed
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("ranks"), list) and "pg_name" in entry:
            groups[str(entry["pg_name"])] = tuple(rank for rank in entry["ranks"] if isinstance(rank, int))
    return groups or _groups_of_collectives(events)


def _groups_of_collectives(events: EventTable) -> dict[str, tuple[int, ...]]:
    if "Process Group Name" not in events.args:
        return {}
    names, ranks = events.texts("Process Group Name"), events.texts("Process Group Ranks")
    both = np.flatnonzero((names >= 0) & (ranks >= 0))
    groups: dict[str, tuple[int, ...]] = {}
    if len(both):
        pairs = np.unique(np.stack([names[both], ranks[both]]), axis=1)
        for name, index in pairs.T.tolist():
            text = events.strings.text(index)
            if "..." not in text:
                groups[events.strings.text(name)] = tuple(int(number) for number in re.findall(r"\d{1,7}", text))
    return groups
