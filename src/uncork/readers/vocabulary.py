"""The words of every vendor and version in one table, and their translation to Kineto's newest."""

import re
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.readers.columns import Scanned

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
    "cpu_instant_event": Kind.MEMORY,
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

_OLD_OPERATORS = frozenset({"Operator", ""})


def kinds_of(scanned: Scanned, process_names: Mapping[int, str], group_tracks: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """Return the `Kind` of each event, uint8 (events,).

    Args:
        scanned: The raw columns.
        process_names: Index of a process id in the strings → its name.
        group_tracks: Events on a thread that holds whole Ascend collectives, (events,).
    """
    by_category = np.zeros(len(scanned.strings) + 1, np.uint8)
    old = np.zeros(len(scanned.strings) + 1, bool)
    for index in np.unique(scanned.cat).tolist():
        text = scanned.strings.text(index) if index >= 0 else ""
        by_category[index] = CATEGORIES.get(text.lower(), Kind.OTHER)
        old[index] = text in _OLD_OPERATORS
    kind = by_category[scanned.cat]
    nameless = scanned.cat < 0
    if nameless.any():
        by_process = np.zeros(len(scanned.strings) + 1, np.uint8)
        for index in np.unique(scanned.pid[nameless]).tolist():
            name = process_names.get(index) or (scanned.strings.text(index) if index >= 0 else "")
            by_process[index] = PROCESSES.get(name, Kind.OTHER)
        kind[nameless] = by_process[scanned.pid[nameless]]
        kind[group_tracks & nameless] = Kind.KERNEL
        _apply_task_types(scanned, kind)
    _apply_old_regions(scanned, kind, old)
    return _apply_phases(scanned, kind)


def _apply_task_types(scanned: Scanned, kind: npt.NDArray[np.uint8]) -> None:
    column = scanned.args.get("Task Type")
    if column and column.texts:
        rows, values = column.texts
        for index in np.unique(values).tolist():
            wanted = TASK_TYPES.get(scanned.strings.text(index))
            if wanted is not None:
                kind[rows[values == index]] = wanted


def _apply_old_regions(scanned: Scanned, kind: npt.NDArray[np.uint8], old: npt.NDArray[np.bool_]) -> None:
    candidates = np.flatnonzero((kind == Kind.CPU_OP) & old[scanned.cat] & (scanned.name >= 0))
    names = scanned.name[candidates]
    for index in np.unique(names).tolist():
        if ANNOTATION.match(scanned.strings.text(index)):
            kind[candidates[names == index]] = Kind.USER_ANNOTATION


def _apply_phases(scanned: Scanned, kind: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the kinds with flows, counters and instants set right."""
    phase = scanned.ph
    kind[phase == ord("s")] = Kind.FLOW_START
    kind[phase == ord("f")] = Kind.FLOW_END
    kind[phase == ord("C")] = Kind.COUNTER
    lasting = np.isin(phase, np.frombuffer(b"XBEsfC", np.uint8))
    kind[~lasting & (kind != Kind.MEMORY)] = Kind.OTHER
    memory = scanned.index_of("[memory]")
    kind[np.isin(phase, np.frombuffer(b"iI", np.uint8)) & (scanned.name == memory)] = Kind.MEMORY
    return kind
