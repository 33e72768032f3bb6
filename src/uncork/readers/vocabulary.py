"""The words of every vendor and version in one table, and their translation to Kineto's newest."""

import re

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.readers.columns import Scanned, distinct
from uncork.readers.metadata import TrackNames

CATEGORIES: dict[str, Kind] = {
    # Kineto today
    "cpu_op": Kind.CPU_OP,
    "user_annotation": Kind.USER_ANNOTATION,
    "python_function": Kind.PYTHON_FUNCTION,
    "cuda_runtime": Kind.RUNTIME,
    "cuda_driver": Kind.RUNTIME,
    "kernel": Kind.KERNEL,
    "concurrent_kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.GPU_MEMCPY,
    "gpu_memset": Kind.GPU_MEMSET,
    "gpu_user_annotation": Kind.GPU_USER_ANNOTATION,
    "cuda_sync": Kind.SYNC,
    "cuda_event": Kind.SYNC,
    "cpu_instant_event": Kind.OTHER,  # its memory records are told by name; "[OutOfMemory]" is none
    "overhead": Kind.OVERHEAD,
    "collective_comm": Kind.KERNEL,
    "python_gc": Kind.GC,
    "gc": Kind.GC,
    # Kineto in torch 1.8 to 1.10
    "operator": Kind.CPU_OP,
    "runtime": Kind.RUNTIME,
    "memcpy": Kind.GPU_MEMCPY,
    "memset": Kind.GPU_MEMSET,
    "python": Kind.PYTHON_FUNCTION,
    # AMD, Intel, Meta's MTIA, Habana, other back ends (Kineto's ActivityType.cpp, 2026-08)
    "hip_runtime": Kind.RUNTIME,
    "hip_driver": Kind.RUNTIME,
    "xpu_runtime": Kind.RUNTIME,
    "xpu_driver": Kind.RUNTIME,
    "xpu_sync": Kind.SYNC,
    "mtia_runtime": Kind.RUNTIME,
    "mtia_ccp_events": Kind.KERNEL,
    "mtia_workloadd": Kind.OTHER,
    "mtia_insight": Kind.OTHER,
    "glow_runtime": Kind.RUNTIME,
    "hpu_op": Kind.KERNEL,
    "privateuse1_runtime": Kind.RUNTIME,
    "privateuse1_driver": Kind.RUNTIME,
    "mps_op": Kind.KERNEL,
    # Ascend's torch_npu
    "enqueue": Kind.RUNTIME,
    "dequeue": Kind.RUNTIME,
    "gc_collect": Kind.GC,
}

PROCESSES: dict[str, Kind] = {
    # Events without a category: the name of their process tells (legacy autograd exports, Ascend).
    "CPU functions": Kind.CPU_OP,
    "CUDA functions": Kind.KERNEL,
    "CANN": Kind.RUNTIME,
    "AscendCL": Kind.RUNTIME,
    "Ascend Hardware": Kind.KERNEL,
}

ASCEND_COMMUNICATION = ("HCCL", "Communication")
"""Processes whose threads named ``Group …`` hold whole collectives; their other threads hold the pieces of them."""

TASK_TYPES: dict[str, Kind] = {
    # Ascend's "Task Type" of rows on the device.
    "EVENT_WAIT": Kind.SYNC,
    "EVENT_RECORD": Kind.SYNC,
    "NOTIFY_WAIT": Kind.SYNC,
    "NOTIFY_RECORD": Kind.SYNC,
    "MEMCPY_ASYNC": Kind.GPU_MEMCPY,
    "SDMA": Kind.GPU_MEMCPY,
}

FLOWS: dict[str, str] = {
    # A launch and its work on the device.
    "async": "ac2g",
    "async_gpu": "ac2g",
    "async_cpu_to_gpu": "ac2g",
    "cpu_to_cuda": "ac2g",
    "HostToDevice": "ac2g",
}

ARGS: dict[str, str] = {
    "Input dims": "Input Dims",
    "external id": "External id",
    "External Id": "External id",
    "externalId": "External id",
    "correlationId": "correlation",
    "connection_id": "correlation",
    "Stream Id": "stream",
    "Sequence Number": "Sequence number",
}

ANNOTATION = re.compile(
    r"^(?:ProfilerStep[#*]|Optimizer\.(?:step|zero_grad)#|enumerate\(DataLoader\)|"
    r"DistributedDataParallel\.forward$|PyTorch Profiler|FullyShardedDataParallel\.)"
)
"""Regions that old versions write under the operators' category."""

MEMORY = re.compile(r"^\[memory\]$")
COLLECTION = re.compile(r"^Python GC$")
"""Garbage collections as torch 2.13 writes them among Python's functions, and the recorder among the operators."""

PHASES = {"s": Kind.FLOW_START, "f": Kind.FLOW_END, "C": Kind.COUNTER}

Kinds = npt.NDArray[np.uint8]


def kinds_of(scanned: Scanned, names: TrackNames) -> Kinds:
    """Return the `Kind` of each event, uint8 (events,)."""
    by_form = np.array(
        [_kind_of_form(scanned, phase, category) for phase, category in scanned.forms.tolist()], np.uint8
    )
    kind: Kinds = by_form[scanned.form] if len(by_form) else np.zeros(0, np.uint8)
    lasting = (scanned.forms[:, :1] == np.array(list(b"XBE"))).any(axis=1)
    bare = (lasting & (scanned.forms[:, 1] < 0))[scanned.form]
    if bare.any():
        by_track = np.array(
            [_kind_of_track(scanned, names, pid, tid) for pid, tid in scanned.tracks.tolist()], np.uint8
        )
        kind[bare] = by_track[scanned.track[bare]]
        _apply_task_types(scanned, kind)
    _apply_names(scanned, kind, bare)
    return kind


def _kind_of_form(scanned: Scanned, phase: int, category: int) -> Kind:
    """Return the kind that phase and category alone tell."""
    if chr(phase) in "XBE":
        return CATEGORIES.get(scanned.text(category).lower(), Kind.OTHER)
    return PHASES.get(chr(phase), Kind.OTHER)


def _kind_of_track(scanned: Scanned, names: TrackNames, pid: int, tid: int) -> Kind:
    """Return the kind of slices without a category by the process they lie on."""
    process = names.processes.get(scanned.text(pid)) or scanned.text(pid)
    if process in ASCEND_COMMUNICATION:
        thread = names.threads.get((scanned.text(pid), scanned.text(tid)), "")
        return Kind.KERNEL if thread.startswith("Group") else Kind.OTHER
    return PROCESSES.get(process, Kind.OTHER)


def _apply_task_types(scanned: Scanned, kind: Kinds) -> None:
    column = scanned.args.get("Task Type")
    if column and column.texts:
        rows, values = column.texts
        for index in np.unique(values).tolist():
            wanted = TASK_TYPES.get(scanned.text(index))
            if wanted is not None:
                kind[rows[values == index]] = wanted


def _apply_names(scanned: Scanned, kind: Kinds, bare: npt.NDArray[np.bool_]) -> None:
    """Set right what only the name tells: regions under the operators' category, memory records without one."""
    old = np.array([scanned.text(category) == "Operator" for category in scanned.forms[:, 1].tolist()], bool)
    old_rows = (kind == Kind.CPU_OP) & bare
    if old.any():
        old_rows |= old[scanned.form]
    instants = scanned.in_phase("iI") & (kind == Kind.OTHER)
    callables = (kind == Kind.CPU_OP) | (kind == Kind.PYTHON_FUNCTION)
    for rows, fits, wanted in (
        (np.flatnonzero(old_rows), ANNOTATION.match, Kind.USER_ANNOTATION),
        (np.flatnonzero(instants), MEMORY.match, Kind.MEMORY),
        (np.flatnonzero(callables), COLLECTION.match, Kind.GC),
    ):
        names = scanned.name[rows]
        fitting = np.zeros(len(scanned.strings), bool)
        for index in distinct(names, len(scanned.strings)):
            fitting[index] = bool(fits(scanned.text(index)))
        kind[rows[fitting[names]]] = wanted
