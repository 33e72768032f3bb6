"""One rank's Recording, and the names of the files in a run folder."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from uncork.events import EventTable
from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Device:
    """An accelerator as the recording describes it; None where it does not say.

    Args:
        index: Device index on its host.
        name: The driver's name of it (``NVIDIA H100 80GB HBM3``); may be empty.
        memory_bytes: Capacity.
        compute_capability: (major, minor) for NVIDIA devices.
        multiprocessors: Streaming multiprocessors or compute units.
    """

    index: int
    name: str = ""
    memory_bytes: int | None = None
    compute_capability: tuple[int, int] | None = None
    multiprocessors: int | None = None


@dataclass(frozen=True)
class Flags:
    """What the recording was asked to hold: True, False, or None where it does not say and nothing shows it."""

    shapes: bool | None = None
    memory: bool | None = None
    stacks: bool | None = None
    modules: bool | None = None
    flops: bool | None = None


@dataclass(frozen=True, eq=False)
class FunctionTable:
    """Python functions as cProfile counts them, one row per function, with the edges between them.

    Args:
        file: Source file of each function (``~`` for built-ins), length (functions,).
        line: First line, int64 (functions,).
        name: Function names, length (functions,).
        calls: Calls, int64 (functions,).
        self_ns: Time in the function itself, int64 (functions,).
        total_ns: Time including what it calls, int64 (functions,).
        edge_caller: Index of the calling function, int64 (edges,).
        edge_callee: Index of the called function, int64 (edges,).
        edge_total_ns: Time in the callee and below when called from that caller, int64 (edges,).
        edge_calls: Calls along the edge, int64 (edges,).
    """

    file: tuple[str, ...]
    line: IntArray
    name: tuple[str, ...]
    calls: IntArray
    self_ns: IntArray
    total_ns: IntArray
    edge_caller: IntArray
    edge_callee: IntArray
    edge_total_ns: IntArray
    edge_calls: IntArray


@dataclass(frozen=True, eq=False)
class SpanTable:
    """Times the recorder measured itself (loader stages, windows), one row per span.

    Args:
        stage: What was timed: index into `stages`, int64 (spans,).
        stages: ``next fetch item_max collate serialise deserialise pin startup idle wait`` …
        worker: DataLoader worker of each span, -1 for the main process, int64 (spans,).
        start_ns: Start since the epoch, int64 (spans,).
        dur_ns: Duration, int64 (spans,).
        value: A figure that goes with the stage (items, bytes, batches ready), int64 (spans,).
    """

    stages: tuple[str, ...]
    stage: IntArray
    worker: IntArray
    start_ns: IntArray
    dur_ns: IntArray
    value: IntArray


@dataclass(frozen=True, eq=False)
class SampleTable:
    """Figures sampled beside the program: per name, times and values.

    Args:
        series: name → (time since the epoch in ns, int64; value, float64). Names carry their unit:
            ``cpu_core_share/3``, ``process_rss_bytes``, ``gpu_busy_share/0``, ``disk_read_bytes_per_s`` …
    """

    series: Mapping[str, tuple[IntArray, npt.NDArray[np.float64]]]


@dataclass(frozen=True)
class StackSample:
    """Where Python was, by sampling: the user's frames that were seen, and how often.

    Args:
        where: ``main``, or ``worker`` for DataLoader workers.
        file: Source file of the frame.
        line: Line that was running.
        function: Function of the frame.
        count: Samples in which this was the innermost frame of the user's own code.
    """

    where: str
    file: str
    line: int
    function: str
    count: int


@dataclass(frozen=True, eq=False)
class Moments:
    """Which line of the user's own code ran at moments of a window with stacks: torch's frames name functions only.

    Args:
        time_ns: When, since the epoch, ascending, int64 (moments,).
        site: Index in `sites`, int64 (moments,).
        sites: (file, line, function) of each line that was seen.
    """

    time_ns: IntArray
    site: IntArray
    sites: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True)
class Paging:
    """What the system counted of the whole process in a window without a profiler.

    Args:
        faults: Pages of memory that had to be given to it (minor page faults).
        system_ns: CPU time that the system took for it.
        cpu_ns: All its CPU time, the system's included.
        growth_pages: By how many pages more it held at the end.
    """

    faults: int
    system_ns: int
    cpu_ns: int
    growth_pages: int


@dataclass(frozen=True)
class CoreTime:
    """Who had the machine's cores during a window, as the system counted it; None where it did not.

    Args:
        span_ns: Wall time from the window's begin to its end.
        thread_ns: CPU time of the thread that makes the steps.
        process_ns: CPU time of its process, all threads together.
        queued_ns: Time in which that thread was ready to run, and no core was free for it.
        children_ns: CPU time of the process's children: the loader's workers, and what else it started.
        machine_ns: Time that all cores of the machine worked, for whomever.
        throttled_ns: Time in which the control group was stopped since its quota was used up, over all cores.
    """

    span_ns: int
    thread_ns: int
    process_ns: int
    queued_ns: int | None = None
    children_ns: int | None = None
    machine_ns: int | None = None
    throttled_ns: int | None = None


@dataclass(frozen=True)
class Window:
    """One stretch of steps that the recorder observed in one way.

    Args:
        name: ``warmup baseline light deep functions baseline2``, or ``unwatched`` for all steps outside these.
        step_ns: Durations of its steps in ns.
        start_ns: When it began, ns since the epoch; None where nothing says.
        paging: What the system counted; None where it was not asked.
        cores: Who had the cores; None where nothing says.
        cpu_ns: CPU time of the steps' thread in each of its steps; empty where it is not known of every one.
    """

    name: str
    step_ns: tuple[int, ...]
    start_ns: int | None = None
    paging: Paging | None = None
    cores: CoreTime | None = None
    cpu_ns: tuple[int, ...] = ()


def quiet_window(steps: Mapping[str, int]) -> str:
    """Return the name of the window without a profiler that tells what a step takes, empty where there is none.

    Of the two the later, if it is no shorter: the first steps of a program still touch new memory.

    Args:
        steps: Number of steps of each window by its name.
    """
    first, later = steps.get("baseline", 0), steps.get("baseline2", 0)
    return "" if not first else "baseline2" if later >= first else "baseline"


@dataclass(frozen=True)
class Collected:
    """What Python's garbage collector took of the steps that no profiler observed, told by Python itself.

    Args:
        steps: Steps that were watched.
        steps_ns: Their time in all.
        collections: Collections in them.
        dur_ns: Their time in all.
        longest_ns: The longest one.
    """

    steps: int
    steps_ns: int
    collections: int
    dur_ns: int
    longest_ns: int


@dataclass(frozen=True)
class Between:
    """What passed between steps that no profiler observed: validation, checkpoints, whatever the loop does beside them.

    Args:
        steps: Steps that were watched.
        steps_ns: Their time in all.
        between_ns: Time between them in all.
    """

    steps: int
    steps_ns: int
    between_ns: int


@dataclass(frozen=True)
class RunInfo:
    """What the recorder knows about the run, from ``recording.json``.

    Args:
        command: The program and its arguments.
        exit_code: The program's own exit code, or None while unknown.
        step_rule: How steps were found: ``loader optimizer optimizer_in_backward backward inference mark time none``.
        steps_seen: Steps the program made in all.
        windows: What was observed, in order.
        first_baseline: The first window without a profiler, which a longer one may have replaced among these.
        user_profiler: The program used a profiler of its own, so windows were left out.
        notes: Ids of what went wrong or was left out while recording, each a key of the catalogue ``note.<id>``.
        settings: Figures about model and loader read from the live objects (``num_workers``, ``pin_memory``,
            ``batch_size``, ``persistent_workers``, ``parameters``, ``parameter_bytes``, ``optimizer``, ``threads`` …).
        garbage: What Python's garbage collector took; None where it was not watched.
        between: What passed between steps; None where too few follow one another.
        threads: What the model did on threads that were not recorded: how many (``others``), ``forwards`` (beside a
            thread that trains, those that fell into its windows), ``backwards updates``; empty where it ran on one.
        startup: Times since the epoch: ``python_ns`` Python began, ``torch_ns`` the import of torch began,
            ``torch_ended_ns``, ``step_ns`` the first step began (absent where a loop does not show it),
            ``step_ended_ns``.
        modules: Path → bytes of parameters, gradients and optimiser state of each module, those inside it included.
        steps_ended_ns: When the last step ended, ns since the epoch; None where nothing says.
    """

    command: tuple[str, ...] = ()
    exit_code: int | None = None
    step_rule: str = "none"
    steps_seen: int = 0
    windows: tuple[Window, ...] = ()
    first_baseline: Window | None = None
    user_profiler: bool = False
    notes: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    modules: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    garbage: Collected | None = None
    between: Between | None = None
    threads: Mapping[str, object] = field(default_factory=dict)
    startup: Mapping[str, int] = field(default_factory=dict)
    steps_ended_ns: int | None = None

    @property
    def quiet_window(self) -> str:
        """Return the name of the window that tells what a step takes, as `quiet_window` does."""
        return quiet_window({window.name: len(window.step_ns) for window in self.windows})


@dataclass(frozen=True, eq=False)
class Recording:
    """Everything known about one rank.

    Args:
        source: Where it came from, as shown to people.
        format: ``kineto legacy ascend run snapshot pstats memory-timeline``.
        events: The events durations are taken from; None for recordings without a timeline (pstats, snapshots).
        rank: Rank of the process, or None where nothing says.
        world_size: Ranks of the job, or None.
        deep: A second recording of the same loop with stacks, shapes and memory: for places, never for durations.
        devices: Accelerators listed.
        host: Facts about the host: ``cores``, ``memory_bytes``, ``cpu``, ``platform``.
        flags: What was recorded.
        versions: ``torch cuda hip python`` → version.
        groups: Process groups: name → ranks.
        repairs: Kind of repair (catalogue ``repair.<kind>``) → how often.
        functions: cProfile's view.
        loader: The recorder's times of the DataLoader.
        samples: Figures sampled beside the program.
        stacks: Sampled Python frames.
        moments: Lines that ran while this recording was made.
        snapshot: A memory snapshot (`uncork.snapshot.MemorySnapshot`).
        run: What the recorder knows.
    """

    source: str
    format: str
    events: EventTable | None = None
    rank: int | None = None
    world_size: int | None = None
    deep: "Recording | None" = None
    devices: tuple[Device, ...] = ()
    host: Mapping[str, object] = field(default_factory=dict)
    flags: Flags = field(default_factory=Flags)
    versions: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    repairs: Mapping[str, int] = field(default_factory=dict)
    functions: FunctionTable | None = None
    loader: SpanTable | None = None
    samples: SampleTable | None = None
    stacks: tuple[StackSample, ...] = ()
    moments: Moments | None = None
    snapshot: object | None = None
    run: RunInfo | None = None


class RunFolder:
    """The names of the files in a run folder; docs/run-folder.md describes each.

    One folder per run, one folder ``rank<N>`` in it per process that made steps.

    Args:
        path: The folder.
    """

    RECORDING = "recording.json"
    REPORT_JSON = "report.json"
    REPORT_HTML = "report.html"
    SAMPLES = "samples.csv"
    LIGHT = "light.trace.json.gz"
    DEEP = "deep.trace.json.gz"
    FUNCTIONS = "functions.pstats"
    SPANS = "spans.jsonl"
    STACKS = "stacks.json"
    MOMENTS = "moments.json"
    STEPS = "steps.json"
    SNAPSHOT = "snapshot.pickle"

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def is_one(path: Path) -> bool:
        """Return whether a folder is a run folder."""
        return path.is_dir() and (path / RunFolder.RECORDING).is_file()

    def ranks(self) -> list[Path]:
        """Return the folders of the ranks, in order of rank."""
        found = [folder for folder in self.path.glob("rank*") if folder.name[4:].isdecimal() and folder.is_dir()]
        return sorted(found, key=lambda folder: int(folder.name[4:]))
