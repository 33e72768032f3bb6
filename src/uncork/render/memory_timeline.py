"""Memory timeline: the page opened at who held memory over time (what ``export_memory_timeline`` drew)."""

from uncork.errors import UncorkError
from uncork.render import Options
from uncork.render.html import render_at
from uncork.report import Report


def render(report: Report, options: Options) -> str:
    """Return the report's page, opened at its memory.

    Raises:
        UncorkError: The recording holds no memory.
    """
    # What modules hold is known of every run; what was held when, only where allocations were recorded.
    if not report.memory or "source" not in report.memory:
        raise UncorkError("export_without_memory")
    return render_at("memory", report, options)
