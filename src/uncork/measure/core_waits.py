"""CoreWaits: what a thread's own work takes by the clock against what a core gave it, and who had the cores instead."""

from collections.abc import Sequence

import numpy as np

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.machine import Machine
from uncork.recording import CoreTime, RunInfo
from uncork.records import dataclass

OPERATORS = ("compute", "memop", "tiny", "optimizer")
OWN_WORK = (*OPERATORS, "bandwidth", "py_prep", "py_short", "py_stack")
"""Causes of the ledger in which the steps' thread means to run; in all others it may wait for something, rightly."""
CHILDREN_NS_LEAST = 50_000_000
"""The system tells a child's CPU time in hundredths of a second: below five of them their share is a guess."""
QUOTA_SHARE = 0.5
"""A group stopped for its quota this much of the time that the thread stood in the queue explains it: outsiders, who
have quotas of their own, do not."""


@dataclass(frozen=True)
class CoreWaits(Measurement):
    """The steps' thread on the cores of a machine, where no device works; per step, and in cores kept busy.

    Args:
        step_ns: A step by the clock.
        work_ns: Of it, what the ledger gives to the thread's own work.
        operators_ns: Of this, operators.
        stalled_ns: Of the step, calls that stood still, which is waiting altogether.
        thread_ns: CPU time of the thread.
        queued_ns: Time in which it was ready and no core was free; None where the system does not count that.
        own_cores: Cores that its process kept busy.
        pool_cores: Cores that its other threads did, and its children where they are no workers.
        worker_cores: Cores that its children did, where they are the loader's workers.
        other_cores: Cores that everything else did, of those that the program may use.
        cores: Cores that the program may use.
        workers: Workers of the DataLoader.
        threads: Threads that one operator uses; those that it waits for are not this thread's time.
        throttled: Whether a quota of the control group stopped the program.
    """

    step_ns: int
    work_ns: int
    operators_ns: int
    stalled_ns: int
    thread_ns: int
    queued_ns: int | None
    own_cores: float
    pool_cores: float
    worker_cores: float
    other_cores: float
    cores: int
    workers: int
    threads: int
    throttled: bool

    @classmethod
    def of(cls, rank: Rank) -> "CoreWaits":
        """Return the waits of a rank that computes on the CPU; only `uncork run` on Linux counts them."""
        ledger, machine, run = rank.ledger, rank.made(Machine), rank.recording.run
        if ledger.on_device:
            raise MissingEvidence("cpu_work")
        told = _told(run)
        light = told.get("light")
        if run is None or light is None or not machine.cores or not len(ledger.step_ns):
            raise MissingEvidence("core_time")
        step_ns = int(ledger.step_ns.mean())
        mean_ns = dict(zip(ledger.causes, ledger.ns.mean(axis=1).tolist(), strict=True))
        workers, threads = machine.num_workers or 0, run.settings.get("threads")
        throttled = (light.throttled_ns or 0) > QUOTA_SHARE * (light.queued_ns or 0)
        own, pool, children, others = _cores_of(list(told.values()), machine.cores)
        return cls(
            step_ns=step_ns,
            work_ns=int(sum(mean_ns.get(cause, 0.0) for cause in OWN_WORK)),
            operators_ns=int(sum(mean_ns.get(cause, 0.0) for cause in OPERATORS)),
            stalled_ns=int(mean_ns.get("stall", 0.0)),
            thread_ns=round(step_ns * min(_ran_share(run, light), 1.0)),
            queued_ns=None if light.queued_ns is None else round(step_ns * min(light.queued_ns / light.span_ns, 1.0)),
            own_cores=own,
            pool_cores=pool if workers else pool + children,
            worker_cores=children if workers else 0.0,
            other_cores=0.0 if throttled else others,
            cores=machine.cores,
            workers=workers,
            threads=threads if isinstance(threads, int) else 0,
            throttled=throttled,
        )

    @property
    def waited_ns(self) -> int:
        """Return how much of what it meant to do is waiting for a core: what two counts bear out, each by itself.

        It stood in the queue so long, and its work took so much longer than the thread ran in the whole step.
        """
        return min(self.queued_ns or 0, max(self.work_ns + self.stalled_ns - self.thread_ns, 0))

    @property
    def waited_in_work_ns(self) -> int:
        """Return the waiting that the ledger counts as work: calls that stood still took theirs first."""
        return max(self.waited_ns - self.stalled_ns, 0)

    def taken_share(self, cause: str) -> float:
        """Return the share of a cause's time in which the thread waited for a core that the loader's workers had."""
        if cause == "stall":
            waited, whole = self.waited_ns - self.waited_in_work_ns, self.stalled_ns
        else:
            waited, whole = self.waited_in_work_ns, self.work_ns if cause in OWN_WORK else 0
        return self.workers_share * waited / whole if whole else 0.0

    @property
    def workers_share(self) -> float:
        """Return the loader's workers' part of what kept the cores from the thread."""
        return self._part(self.worker_cores)

    @property
    def by_workers_ns(self) -> int:
        """Return the waiting that is put down to the loader's workers, as their part of the cores taken."""
        return round(self.waited_ns * self.workers_share)

    @property
    def by_others_ns(self) -> int:
        """Return the waiting that is put down to other programs."""
        return round(self.waited_ns * self._part(self.other_cores))

    def _part(self, cores: float) -> float:
        """Return the part of some cores in those that others than the thread had: it stands behind each alike."""
        taken = self.worker_cores + self.pool_cores + self.other_cores
        return cores / taken if taken > 0 else 0.0

    @property
    def by_others_share(self) -> float:
        """Return the same as a share of the step."""
        return self.by_others_ns / self.step_ns if self.step_ns else 0.0

    @property
    def crowded_share(self) -> float:
        """Return the share of the step that the ledger counts as work, and that is a wait for others' cores."""
        waited_ns = self.waited_in_work_ns * self._part(self.other_cores)
        return waited_ns / self.step_ns if self.step_ns else 0.0

    @property
    def off_core_ns(self) -> int:
        """Return how long operators on this thread alone neither ran nor, as far as is known, waited for a core."""
        return max(self.operators_ns - self.thread_ns - (self.queued_ns or 0), 0) if self.threads == 1 else 0


def _ran_share(run: RunInfo, light: CoreTime) -> float:
    """Return the share of the recorded steps in which their thread ran; between them it may do something else."""
    steps = next(one for one in run.windows if one.name == "light")
    if steps.cpu_ns and any(steps.step_ns):
        return sum(steps.cpu_ns) / sum(steps.step_ns)
    return light.thread_ns / light.span_ns


def _told(run: RunInfo | None) -> dict[str, CoreTime]:
    """Return who had the cores, by the name of the window."""
    return {one.name: one.cores for one in run.windows if one.cores is not None} if run else {}


def _cores_of(told: Sequence[CoreTime], cores: int) -> tuple[float, float, float, float]:
    """Return the cores that a process, its further threads, its children and all else kept busy over all windows.

    Beside a program that may not use all cores, others can only be in its way on those that it may use.
    """
    rows = [(one.span_ns, one.process_ns, one.thread_ns, one.children_ns or 0, one.machine_ns or 0) for one in told]
    span_ns, own_ns, thread_ns, children_ns, machine_ns = np.sum(rows, axis=0).tolist()
    if children_ns < CHILDREN_NS_LEAST:
        children_ns = 0
    program = (own_ns + children_ns) / span_ns
    others = max(min(machine_ns / span_ns, cores) - program, 0.0)
    return own_ns / span_ns, max(own_ns - thread_ns, 0) / span_ns, children_ns / span_ns, others
