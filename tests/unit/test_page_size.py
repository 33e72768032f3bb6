"""A report stays below 25 MB, whatever was recorded: the largest views and the longest rows that there can be."""

from dataclasses import replace

import numpy as np

from tests.unit.reports import starved_report
from uncork.measure.views.flame_view import FlameView
from uncork.measure.views.timeline_view import MOST_BLOCK_BYTES, TimelineView
from uncork.render import Options
from uncork.render.html import render
from uncork.render.page_data import page_data
from uncork.render.tables import COLUMNS

MOST_BYTES = 25_000_000


def test_the_fullest_report_there_can_be_is_small_enough() -> None:
    """Three ranks with blocks of the most bytes, and six tables of 2,000 rows of texts of 400 characters.

    One rank's blocks fit, 10 and 2 MB that packing cannot make smaller; the others' do not. Nothing is silent about it:
    the ranks are named, the rows that are left out counted.
    """
    noise = np.random.default_rng(1)
    views = {
        number: {
            "TimelineView": TimelineView(noise.bytes(MOST_BLOCK_BYTES), 1_500_000, 0),
            "FlameView": FlameView(noise.bytes(2_000_000), {}),
        }
        for number in (4, 7, 9)
    }
    row = {"name": "x" * 400, "module": "m" * 400, "shapes": "s" * 400, "calls": 1, "total_ns": 5, "device_ns": 5}
    report = replace(
        starved_report(), views={**views[4], "Shown": views}, tables={name: [row] * 2_000 for name in COLUMNS}
    )
    data = page_data(report)
    assert data["shown_ranks"] == [4]
    assert data["ranks_left_out"] == [7, 9]
    left_out = [table["left_out"] for table in data["tables"]]
    assert left_out == [2_000 - len(table["rows"]) for table in data["tables"]]
    assert max(left_out) > 1_000
    assert len(render(report, Options()).encode()) < MOST_BYTES
