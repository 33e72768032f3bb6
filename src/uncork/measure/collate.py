"""Collate: the share of loading that puts items together into a batch."""

from typing import TypeVar

from uncork.findings import Location
from uncork.frames import is_users
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.loader import LoaderWait
from uncork.measure.loader_code import LoaderCode
from uncork.measure.loader_stages import LoaderStages
from uncork.records import dataclass

T = TypeVar("T", bound=Measurement)


@dataclass(frozen=True)
class Collate(Measurement):
    """Putting items together.

    Args:
        share: Of the time to make a batch.
        location: The collate function's place, where it is the user's.
        source: ``stages`` (the recorder's times), ``code`` (frames, cProfile, samples), or ``operators`` (stacking
            tensors under the loader's next: the least it can be).
        of_library: The function is known, and is PyTorch's or another library's.
    """

    share: float
    location: Location
    source: str
    of_library: bool = False

    @classmethod
    def of(cls, rank: Rank) -> "Collate":
        """Return the share for a rank, by the best source it has."""
        code = _or_none(LoaderCode, rank)
        top = code.top("collate") if code else None
        location, of_library = (top.location, False) if top else _told(rank)
        stages = _or_none(LoaderStages, rank)
        if stages is not None and stages.makers:
            made = stages.mean_ns("fetch_ns") + stages.mean_ns("collate_ns")
            return cls(stages.mean_ns("collate_ns") / made if made else 0.0, location, "stages", of_library)
        if code is not None:
            return cls(code.share("collate"), location, "code", of_library)
        wait = rank.made(LoaderWait)
        if wait.iterator == "multi":
            raise MissingEvidence("loader_stages")
        return cls(wait.collate_ns / wait.mean_ns if wait.mean_ns else 0.0, location, "operators", of_library)


def _told(rank: Rank) -> tuple[Location, bool]:
    """Return the collate function as the recorder saw it on the loader, placed if it is the user's, and whether not."""
    settings = rank.recording.run.settings if rank.recording.run else {}
    file, line, name = (settings.get(f"collate_{part}") for part in ("file", "line", "function"))
    function = name if isinstance(name, str) else None
    if not isinstance(file, str):
        return Location(op="collate_fn"), False
    if not is_users(file):
        return Location(op="default_collate" if function == "default_collate" else "collate_fn"), True
    return Location(file=file, line=line if isinstance(line, int) else None, function=function, op="collate_fn"), False


def _or_none(kind: type[T], rank: Rank) -> T | None:
    """Return a measurement, or None where the recording lacks what it needs."""
    try:
        made = rank.made(kind)
    except MissingEvidence:
        return None
    return made
