"""SecondSources: what was sampled of the device beside the recording, against what the recording says of it."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.memory_use import recorded_memory
from uncork.measure.step_ledger import StepLedger
from uncork.records import dataclass

LEAST_SAMPLES = 3
"""Fewer samples within the steps say nothing of their mean."""


@dataclass(frozen=True)
class SecondSources(Measurement):
    """Two figures for the same thing; None where one of them is not known.

    Args:
        busy_share: Mean share of the time in which the device had work, as the driver says (nvidia-smi's figure).
        recorded_busy_share: The same by the recorded kernels; of steps as long as recorded and as unobserved, between
            which the samples fall, whichever is nearer.
        used_bytes: Most memory used on the device by all processes, as the driver says.
        reserved_bytes: Most that PyTorch's allocator reserved.
    """

    busy_share: float | None
    recorded_busy_share: float | None
    used_bytes: int | None
    reserved_bytes: int | None

    @classmethod
    def of(cls, rank: Rank) -> "SecondSources":
        """Return both figures of a rank; of several devices the one whose figure is nearest speaks for it."""
        busy = [float(values.mean()) for values in _sampled(rank, "gpu_busy_share")]
        used = [int(values.max()) for values in _sampled(rank, "gpu_memory_used_bytes")]
        if not busy and not used:
            raise MissingEvidence("samples")
        bounds = _recorded(rank)
        reserved = next((found.reserved_peak_bytes for found in recorded_memory(rank)), None)
        pairs = [(one, min(max(one, bounds[0]), bounds[1])) for one in busy] if bounds else []
        sampled, recorded = min(pairs, key=lambda pair: abs(pair[0] - pair[1]), default=(None, None))
        return cls(
            busy_share=sampled,
            recorded_busy_share=recorded,
            used_bytes=min((one for one in used if one >= (reserved or 0)), default=None),
            reserved_bytes=reserved,
        )


def _recorded(rank: Rank) -> tuple[float, float] | None:
    """Return the least and the largest busy share that the kernels allow: of recorded steps, and of unobserved ones."""
    ledger, run = rank.made(StepLedger), rank.recording.run
    if not ledger.on_device:
        return None
    quiet = next((one.step_ns for one in run.windows if one.name == run.quiet_window), ()) if run else ()
    longer = ledger.mean_step_ns / max(float(np.mean(quiet)), 1.0) if quiet else 1.0
    return ledger.busy_share, min(ledger.busy_share * max(longer, 1.0), 1.0)


def _sampled(rank: Rank, name: str) -> Iterator[npt.NDArray[np.float64]]:
    """Yield a figure of each device, cut to the steps that were watched with next to no profiler."""
    samples, run = rank.recording.samples, rank.recording.run
    quiet = [one for one in run.windows if one.name.startswith(("baseline", "light"))] if run else []
    spans = [(one.start_ns, one.start_ns + sum(one.step_ns)) for one in quiet if one.start_ns is not None]
    for key, (times_ns, values) in (samples.series if samples else {}).items():
        inside = np.any(
            [(times_ns >= start) & (times_ns <= end) for start, end in spans or [rank.timeline.window]], axis=0
        )
        if key.partition("/")[0] == name and np.count_nonzero(inside) >= LEAST_SAMPLES:
            yield values[inside]
