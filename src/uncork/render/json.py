"""JSON: the report as schema 1 lays down (``uncork/report.schema.json``)."""

from uncork.render import Options
from uncork.report import Report, dumps


def render(report: Report, options: Options) -> str:
    """Return the report as JSON text."""
    return dumps(report, options.lang)
