"""Settings: facts about model, loader, optimiser, machine, read from the live objects without touching them."""

import functools
import inspect
import os
import platform
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from uncork.capture.holdings import distinct, size_bytes
from uncork.capture.job import this_job
from uncork.capture.packages import packages

ALLOCATORS = re.compile(r"jemalloc|tcmalloc|mimalloc|hoard|snmalloc|tbbmalloc")
"""Libraries that take the place of the C library's allocator, by their file's name."""
KEEPING = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_MAX_")
"""Variables that say what glibc's allocator keeps (mallopt(3))."""
TUNED = re.compile(r"glibc\.malloc\.(?:mmap_threshold|trim_threshold|top_pad|mmap_max)=[^:]*")
"""The same as tunables."""


def rank(torch: Any) -> tuple[int, int]:
    """Return this process's rank and the number of ranks: what torch.distributed says, else the launcher."""
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()), int(distributed.get_world_size())
    job = this_job()
    return job.rank, job.world


def loader_depth(seen: Mapping[str, Any]) -> int:
    """Return how many batches the workers of the program's loader hold ready."""
    told = seen.get("loader", {})
    return int((told.get("num_workers") or 0) * (told.get("prefetch_factor") or 2))


def facts(torch: Any, seen: Mapping[str, Any], modules: Mapping[str, Any]) -> dict[str, Any]:
    """Return versions, host, devices and settings; a fact that cannot be read is left out."""
    parts: dict[str, Callable[[], dict[str, Any] | list[dict[str, Any]]]] = {
        "versions": lambda: _versions(torch, modules),
        "host": host,
        "devices": lambda: _devices(torch),
        "packages": lambda: packages(modules),
        "settings": lambda: {
            **seen.get("loader", {}),
            **_attempt(lambda: _model(_alive(seen.get("model")))),
            **_attempt(lambda: _optimizer([_alive(one) for one in seen.get("optimizers", ())])),
            **_attempt(lambda: _switches(torch)),
            **_attempt(_tracer),
            **_attempt(_malloc),
        },
    }
    found: dict[str, Any] = {}
    for name, read in parts.items():
        try:
            found[name] = read()
        except Exception:
            found[name] = {}
    return found


_BF16 = frozenset({"amx_bf16", "avx512_bf16", "bf16"})
"""Flags of processors that multiply in bf16: Intel's and AMD's (Linux, cpufeatures.h), the last Arm's."""


def _system() -> str:
    """Return what system this is; ``platform.platform()`` would start a process in the program's name to tell."""
    return f"{platform.system()}-{platform.release()}-{platform.machine()}"


@functools.cache
def host() -> dict[str, Any]:
    """Return what is known about the machine."""
    found: dict[str, Any] = {"cores": os.cpu_count(), "platform": _system(), "name": platform.node()}
    if hasattr(os, "sched_getaffinity"):
        found["cores_allowed"] = len(os.sched_getaffinity(0))
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        found["memory_bytes"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            found |= _processor(file)
    return found


def _processor(cpuinfo: Iterable[str]) -> dict[str, Any]:
    """Return name and bf16 instructions of the first processor; the latter are left out where none are listed."""
    about: dict[str, str] = {}
    for line in cpuinfo:
        if not line.strip() and about:
            break
        name, _, value = line.partition(":")
        about[name.strip()] = value.strip()
    flags = (about.get("flags") or about.get("Features") or "").split()
    found: dict[str, Any] = {"cpu": about.get("model name", "")}
    return {**found, "cpu_bf16": sorted(_BF16.intersection(flags))} if flags else found


def _attempt(read: Any) -> dict[str, Any]:
    try:
        return dict(read())
    except Exception:
        return {}


def _alive(reference: Any) -> Any:
    return reference() if reference is not None else None


def _versions(torch: Any, modules: Mapping[str, Any]) -> dict[str, str]:
    found = {"python": platform.python_version(), "torch": str(torch.__version__)}
    for name, value in (("cuda", torch.version.cuda), ("hip", getattr(torch.version, "hip", None))):
        if value:
            found[name] = str(value)
    for name in ("lightning", "pytorch_lightning", "transformers", "accelerate", "deepspeed", "numpy", "torchvision"):
        version = getattr(modules.get(name), "__version__", None)
        if version:
            found[name] = str(version)
    return found


def _devices(torch: Any) -> list[dict[str, Any]]:
    """Return the accelerators the program has started; none is started to be asked."""
    cuda = torch.cuda
    if not cuda.is_initialized() or not cuda.is_available():
        return []
    found = []
    for index in range(cuda.device_count()):
        about = cuda.get_device_properties(index)
        found.append(
            {
                "index": index,
                "name": about.name,
                "memory_bytes": about.total_memory,
                "compute_capability": [about.major, about.minor],
                "multiprocessors": about.multi_processor_count,
            }
        )
    return found


_ORDERS = {"RandomSampler": True, "SequentialSampler": False}
"""What DataLoader makes of ``shuffle``; any other sampler is the program's own."""


def of_loader(loader: Any) -> dict[str, Any]:
    """Return the settings of a DataLoader; it may be gone when they are written, since its iterator outlives it."""
    asked, loader = loader, loader if hasattr(loader, "batch_sampler") else getattr(loader, "d", loader)  # fastai's
    found = {
        name: getattr(asked, name, None)
        for name in ("num_workers", "batch_size", "pin_memory", "persistent_workers", "prefetch_factor", "drop_last")
    }
    if found["batch_size"] is None:
        found["batch_size"] = getattr(getattr(loader, "batch_sampler", None), "batch_size", getattr(loader, "bs", None))
    sampler = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    found["shuffle"] = _ORDERS.get(type(sampler).__name__) if getattr(loader, "batch_size", None) else None
    context = getattr(asked, "multiprocessing_context", None)
    if context is not None:
        found["start_method"] = context.get_start_method()
    try:
        found["batches"] = len(loader)
    except (TypeError, AttributeError):
        found["batches"] = None  # an iterable dataset has no length
    dataset = getattr(loader, "dataset", None)
    found["dataset"] = type(dataset).__name__
    reader = getattr(type(dataset), "__getitem__", None) or getattr(type(dataset), "__iter__", None)
    for name, function in (("dataset", reader), ("collate", getattr(loader, "collate_fn", None))):
        code = _code(function)
        if code is not None:
            found[f"{name}_file"], found[f"{name}_line"] = code.co_filename, code.co_firstlineno
            found[f"{name}_function"] = code.co_name
    return found


def _code(function: Any) -> types.CodeType | None:
    """Return what a function, a partial one, or an object that can be called runs; None for built-in ones."""
    while isinstance(function, functools.partial):
        function = function.func
    if function is None or isinstance(function, type):
        return None
    function = function if inspect.isroutine(function) else type(function).__call__
    return getattr(inspect.unwrap(function), "__code__", None)


def _model(model: Any) -> dict[str, Any]:
    if model is None:
        return {}
    parameters = list(model.parameters())
    trained = [one for one in parameters if one.requires_grad]
    return {
        "model": type(model).__name__,
        "parameters": sum(one.numel() for one in parameters),
        "parameters_trained": sum(one.numel() for one in trained),
        "parameter_bytes": _size(parameters),
        "gradient_bytes": _size(one.grad for one in parameters),
        "parameter_dtypes": sorted({str(one.dtype).removeprefix("torch.") for one in parameters}),
        "device_kinds": sorted({one.device.type for one in parameters}),
        "training": bool(model.training),
    }


def _optimizer(optimizers: Iterable[Any]) -> dict[str, Any]:
    alive = distinct(one for one in optimizers if one is not None)
    if not alive:
        return {}
    first = alive[0]
    states = [value for one in alive for state in one.state.values() for value in state.values()]
    return {
        "optimizer": type(first).__name__,
        "optimizers": len(alive),
        "optimizer_foreach": first.defaults.get("foreach"),
        "optimizer_fused": first.defaults.get("fused"),
        "optimizer_state_bytes": _size(states),
    }


def parameter_count(module: Any) -> int:
    """Return how many parameters a module has, lazy ones (which have no shape yet) left out.

    They are counted by torch's own books: what ``parameters()`` returns, a program may define as it likes.
    """
    modules: set[int] = set()
    parameters: dict[int, Any] = {}
    todo = [module]
    while todo:
        one = todo.pop()
        if one is not None and id(one) not in modules:
            modules.add(id(one))
            todo += one._modules.values()
            parameters.update((id(part), part) for part in one._parameters.values() if part is not None)
    total = 0
    for part in parameters.values():
        try:
            total += part.numel()
        except ValueError:  # a lazy parameter has no shape yet
            total += 0
    return total


def _size(tensors: Iterable[Any]) -> int:
    return sum(size_bytes(one) for one in tensors)


def _tracer() -> dict[str, str]:
    """Return which package Python calls for every line of this thread, where there is one.

    Python hides from profilers what runs inside such a function, so no window shows it.
    """
    trace, monitoring = sys.gettrace(), getattr(sys, "monitoring", None)
    if trace is not None:
        return {"tracer": (getattr(trace, "__module__", None) or type(trace).__module__).partition(".")[0]}
    name = monitoring.get_tool(monitoring.DEBUGGER_ID) if monitoring else None
    return {"tracer": name} if name else {}


def _malloc() -> dict[str, Any]:
    """Return which C library allocates, and what was set before the program began that changes how."""
    preloaded = re.split(r"[\s:]+", os.environ.get("LD_PRELOAD", ""))
    names = [os.path.basename(one) for one in preloaded if ALLOCATORS.search(os.path.basename(one))]
    tuned = TUNED.findall(os.environ.get("GLIBC_TUNABLES", ""))
    variables = [f"{name}={os.environ[name]}" for name in KEEPING if name in os.environ]
    return {"libc": os.confstr("CS_GNU_LIBC_VERSION") or "", "malloc": [*names, *variables, *tuned]}


def _switches(torch: Any) -> dict[str, Any]:
    found = {
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
        "compiled": "torch._dynamo" in sys.modules and bool(getattr(torch._dynamo.utils, "counters", {}).get("frames")),
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
    }
    found["anomaly_detection"] = torch.is_anomaly_enabled()
    return found
