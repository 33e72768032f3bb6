"""OwnPython: the program's own Python between operators, by the frames of a trace, else by cProfile."""

from dataclasses import replace

from uncork.findings import Location
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.profiled import calls_torch, python_shares
from uncork.measure.python_gaps import MOST_SITES, GapSite, PythonGaps
from uncork.measure.sampled import sampled_line
from uncork.recording import FunctionTable
from uncork.records import dataclass


@dataclass(frozen=True)
class OwnPython(Measurement):
    """Where the program's own Python runs.

    Args:
        gaps: What frames tell; where a step has too many calls to record them, what cProfile tells of own work.
        framed: Frames told it, so that what stands in short gaps between operators is known too.
    """

    gaps: PythonGaps
    framed: bool

    @classmethod
    def of(cls, rank: Rank) -> "OwnPython":
        """Return the Python time of a rank; without frames and cProfile its places are unknown."""
        try:
            return cls(rank.made(PythonGaps), framed=True)
        except MissingEvidence:
            table = rank.recording.functions
            if table is None or rank.recording.run is None:
                raise
        shares = {place: float(own) for place, (own, _) in python_shares(table).items() if own}
        whole = sum(shares.values())
        if not whole:
            raise MissingEvidence("stacks")
        largest = sorted(shares, key=lambda place: (-shares[place], place))[:MOST_SITES]
        sites = tuple(GapSite("", _location(rank, table, place), shares[place] / whole) for place in largest)
        return cls(PythonGaps(sites, min(whole, 1.0)), framed=False)


def _location(rank: Rank, table: FunctionTable, place: int) -> Location:
    """Return where a function's own Python is: its line that was sampled most, if PyTorch is not called from it."""
    found = Location(file=table.file[place], line=int(table.line[place]) or None, function=table.name[place])
    if calls_torch(table, place):
        return replace(found, line=None) if table.name[place] == "<module>" else found
    return replace(
        found, line=sampled_line(table.file[place], found.line or 0, table.name[place], rank.recording.stacks) or None
    )
