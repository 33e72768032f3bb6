"""BusyMachine: how much of the machine's cores other programs took while the steps were recorded."""

import numpy as np

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.records import dataclass


@dataclass(frozen=True)
class BusyMachine(Measurement):
    """What ran beside the program, from the recorder's samples.

    Args:
        others_share: Share of all cores that other programs used, mean over the samples.
        idle_share: Share of all cores that nobody used.
    """

    others_share: float
    idle_share: float

    @classmethod
    def of(cls, rank: Rank) -> "BusyMachine":
        """Return the shares on a rank's machine; needs samples of the cores and of the process."""
        samples = rank.recording.samples
        series = samples.series if samples else {}
        cores = [values for name, (_, values) in series.items() if name.startswith("cpu_core_share/")]
        own = series.get("process_cpu_cores")
        if not cores or own is None or len(own[1]) < 2:
            raise MissingEvidence("samples")
        # The first sample of a rate covers no time yet.
        used = float(np.mean([values[1:].mean() for values in cores if len(values) > 1]))
        mine = float(own[1][1:].mean()) / len(cores)
        return cls(others_share=max(used - mine, 0.0), idle_share=max(1.0 - used, 0.0))
