"""What the page's timeline shows of figures sampled beside the program, worked out by hand."""

import numpy as np
import pytest

from uncork.locale import LANGUAGES, catalogue
from uncork.measure.views.curves import _KNOWN, sampled_curves
from uncork.recording import SampleTable


def test_sampled_figures_are_cut_to_the_window_and_cores_averaged() -> None:
    """Two cores at 0.2 and 0.6 are one curve at 0.4; a value stands for the time since the sample before it.

    The window from 5 to 25 meets 0 to 10, 10 to 20 and 20 to 30; one from 21 to 22 only the last of them.
    """
    when = np.array([0, 10, 20, 30])
    samples = SampleTable(
        {
            "cpu_core_share/0": (when, np.array([0.2, 0.2, 0.2, 0.2])),
            "cpu_core_share/1": (when, np.array([0.6, 0.6, 0.6, 0.6])),
            "process_rss_bytes": (when, np.array([1.0, 2.0, 3.0, 4.0])),
        }
    )
    cpu, rss = sampled_curves(samples, 5, 25)
    assert cpu.unit == "cpu_share"
    assert cpu.series["page.series.sampled"][1].tolist() == pytest.approx([0.4, 0.4, 0.4])
    assert [column.tolist() for column in rss.series["page.series.sampled"]] == [[5, 10, 20], [2.0, 3.0, 4.0]]
    _, short = sampled_curves(samples, 21, 22)
    assert [column.tolist() for column in short.series["page.series.sampled"]] == [[21], [4.0]]


def test_sampled_figures_have_names_and_the_telling_ones_come_first() -> None:
    """Every series the page knows is in both catalogues; busy devices before disks, unknown ones last."""
    when = np.array([0, 10])
    known = {f"{name}/1" if name.startswith("gpu") else name: (when, np.array([0.0, 1.0])) for name in _KNOWN}
    names = [
        curve.label["id"] for curve in sampled_curves(SampleTable({"other_count": (when, when + 1.0), **known}), 0, 10)
    ]
    assert names[0] == "page.curve.gpu_busy_share"
    assert len(names) == 14
    assert all(f"page.curve.{name}" in catalogue(lang) for name in _KNOWN for lang in LANGUAGES)
    few = {name: known[name] for name in ("disk_read_bytes_per_s", "gpu_power_w/1")}
    shown = [
        curve.label["id"] for curve in sampled_curves(SampleTable({"other_count": (when, when + 1.0), **few}), 0, 10)
    ]
    assert shown == ["page.curve.gpu_power_w", "page.curve.disk_read_bytes_per_s", "page.curve.sampled"]
