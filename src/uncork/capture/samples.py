"""HostSampler: the machine and the program's processes, sampled from outside the program."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import psutil

PERIOD_S = 0.2
SAMPLES_MOST = 3000
"""Samples per series: after ten minutes the period grows with the run."""
CHILDREN_EVERY_S = 1.0
"""Finding the children costs milliseconds, so it is done rarely (capture study, section 8)."""


class HostSampler:
    """Appends ``time_ns,series,value`` lines to a file, as often as the length of the run allows.

    Args:
        path: The file.
        pid: The program's first process.
    """

    def __init__(self, path: Path, pid: int) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._file.write("time_ns,series,value\n")
        self._begun = self._last = time.monotonic()
        self._root = psutil.Process(pid)
        self._processes: dict[int, psutil.Process] = {pid: self._root}
        self._children_at = 0.0
        self._rates: dict[str, tuple[float, float]] = {}
        self._gpu = _gpu_reader()
        psutil.cpu_percent(percpu=True)

    def wait_s(self) -> float:
        """Return the time until the next sample is due."""
        period = max(PERIOD_S, (time.monotonic() - self._begun) / SAMPLES_MOST)
        return max(0.0, self._last + period - time.monotonic())

    def take(self) -> None:
        """Take one sample of everything that can be read."""
        self._last = time.monotonic()
        now_ns = time.time_ns()
        values: dict[str, float] = {}
        for read in (self._host, self._program, self._gpu):
            with contextlib.suppress(Exception):
                values.update(read())
        with contextlib.suppress(OSError):  # a full disk costs samples, not the watch over the program
            self._file.write("".join(f"{now_ns},{name},{value:.6g}\n" for name, value in values.items()))

    def close(self) -> None:
        """End the file."""
        with contextlib.suppress(OSError):
            self._file.close()

    def _host(self) -> dict[str, float]:
        found = {f"cpu_core_share/{n}": share / 100 for n, share in enumerate(psutil.cpu_percent(percpu=True))}
        memory = psutil.virtual_memory()
        found["host_memory_used_bytes"] = float(memory.total - memory.available)
        for name, counters in (("disk", psutil.disk_io_counters()), ("network", psutil.net_io_counters())):
            if counters is None:
                continue
            for way, total in _ways(counters):
                found[f"{name}_{way}_bytes_per_s"] = self._rate(f"{name}_{way}", float(total))
        return found

    def _program(self) -> dict[str, float]:
        if self._last - self._children_at > CHILDREN_EVERY_S:
            self._children_at = self._last
            alive = {child.pid: child for child in self._root.children(recursive=True)}
            self._processes = {self._root.pid: self._root, **alive}
        resident = cpu = threads = 0.0
        for process in list(self._processes.values()):
            with contextlib.suppress(psutil.Error), process.oneshot():
                resident += process.memory_info().rss
                times = process.cpu_times()
                cpu += times.user + times.system
                threads += process.num_threads()
        return {
            "process_rss_bytes": resident,
            "process_cpu_cores": self._rate("process_cpu", cpu),
            "process_threads": threads,
            "processes": float(len(self._processes)),
        }

    def _rate(self, name: str, total: float) -> float:
        """Return the change per second since the last sample; 0 for the first."""
        before, at = self._rates.get(name, (total, self._last))
        self._rates[name] = (total, self._last)
        return max(0.0, total - before) / (self._last - at) if self._last > at else 0.0


def _ways(counters: object) -> list[tuple[str, int]]:
    names = (("read", "read_bytes"), ("write", "write_bytes"), ("receive", "bytes_recv"), ("send", "bytes_sent"))
    return [(way, getattr(counters, name)) for way, name in names if hasattr(counters, name)]


def _gpu_reader() -> Callable[[], dict[str, float]]:
    """Return a function that reads every NVIDIA device through NVML, or nothing where there is none."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(pynvml.nvmlDeviceGetCount())]
    except Exception:
        return dict

    def read() -> dict[str, float]:
        found: dict[str, float] = {}
        for number, handle in enumerate(handles):
            for name, value in _gpu_figures(pynvml, handle):
                with contextlib.suppress(Exception):
                    found[f"{name}/{number}"] = float(value())
        return found

    return read


def _gpu_figures(nvml: object, handle: object) -> list[tuple[str, Callable[[], float]]]:
    """Return the figures of one device: name and how to read it; NVML's "utilization" is time with any kernel."""
    ask = nvml.__dict__
    return [
        ("gpu_busy_share", lambda: ask["nvmlDeviceGetUtilizationRates"](handle).gpu / 100),
        ("gpu_memory_used_bytes", lambda: ask["nvmlDeviceGetMemoryInfo"](handle).used),
        ("gpu_power_w", lambda: ask["nvmlDeviceGetPowerUsage"](handle) / 1000),
        ("gpu_clock_hz", lambda: ask["nvmlDeviceGetClockInfo"](handle, 1) * 1e6),
        ("gpu_throttle_reasons", lambda: ask["nvmlDeviceGetCurrentClocksThrottleReasons"](handle)),
        ("gpu_pcie_send_bytes_per_s", lambda: ask["nvmlDeviceGetPcieThroughput"](handle, 0) * 1024),
        ("gpu_pcie_receive_bytes_per_s", lambda: ask["nvmlDeviceGetPcieThroughput"](handle, 1) * 1024),
    ]
