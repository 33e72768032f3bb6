"""Device names as drivers write them must lead to the right peaks, or to none."""

import pytest

from uncork.hardware import capability, peaks, peaks_of
from uncork.recording import Device


@pytest.mark.parametrize(
    ("name", "found", "bf16_or_fp16", "gbytes"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM", 989, 3350),
        ("NVIDIA H100 PCIe", "NVIDIA H100 PCIe", 756, 2000),
        ("NVIDIA H100 NVL", "NVIDIA H100 NVL", 835, 3938),
        ("NVIDIA H200", "NVIDIA H200", 989, 4800),
        ("NVIDIA B200", "NVIDIA B200", 2250, 8000),
        ("NVIDIA A100-SXM4-80GB", "NVIDIA A100 SXM 80GB", 312, 2039),
        ("NVIDIA A100 80GB PCIe", "NVIDIA A100 80GB PCIe", 312, 1935),
        ("A100-SXM4-40GB", "NVIDIA A100 40GB", 312, 1555),
        ("NVIDIA A100-PCIE-40GB", "NVIDIA A100 40GB", 312, 1555),
        ("Tesla T4", "NVIDIA T4", 65, 320),
        ("Tesla V100-SXM2-16GB", "NVIDIA V100 SXM2", 125, 900),
        ("NVIDIA L4", "NVIDIA L4", 121, 300),
        ("NVIDIA L40", "NVIDIA L40", 181, 864),
        ("NVIDIA L40S", "NVIDIA L40S", 362, 864),
        ("NVIDIA A10", "NVIDIA A10", 125, 600),
        ("NVIDIA A10G", "NVIDIA A10G", 70, 600),
        ("GeForce RTX 3060 Ti", "NVIDIA GeForce RTX 3060 Ti", 32.4, 448),
        ("NVIDIA GeForce RTX 3060", "NVIDIA GeForce RTX 3060", 25.5, 360),
        ("NVIDIA GeForce RTX 2080 Ti", "NVIDIA GeForce RTX 2080 Ti", 56.9, 616),
        ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090", 165.2, 1008),
        ("NVIDIA RTX A5000", "NVIDIA RTX A5000", 111.1, 768),
        ("NVIDIA RTX 6000 Ada Generation", "NVIDIA RTX 6000 Ada", 364.2, 960),
        ("AMD Instinct MI300X VF", "AMD Instinct MI300X", 1307.4, 5300),
        ("AMD Instinct MI300X", "AMD Instinct MI300X", 1307.4, 5300),
        ("AMD Instinct MI250X / MI250", "AMD Instinct MI250X (one die)", 191.5, 1638),
        ("AMD Instinct MI210", "AMD Instinct MI210", 181, 1638),
    ],
)
def test_real_device_strings_find_their_vendor_figures(
    name: str, found: str, bf16_or_fp16: float, gbytes: float
) -> None:
    """Each string is one that a driver writes; the figures are the vendor's dense ones."""
    known = peaks(name)
    assert known is not None
    assert known.name == found
    assert known.peak_flop_per_s["fp16"] == pytest.approx(bf16_or_fp16 * 1e12)
    assert known.peak_bytes_per_s == pytest.approx(gbytes * 1e9)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "NVIDIA GeForce RTX 3060 Laptop GPU",
        "NVIDIA RTX 500 Ada Generation Laptop GPU",
        "NVIDIA A100-SXM4-40GB MIG 3g.20gb",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 2080 with Max-Q Design",
        "Some Device 9000",
        "MTIA",
    ],
)
def test_names_that_do_not_settle_the_clocks_get_no_figures(name: str) -> None:
    """Laptop parts, slices of a device and unknown names must have no roofline."""
    assert peaks(name) is None


def test_measured_figures_stay_below_the_vendors() -> None:
    """What somebody measured can't be above the peak, or one of the two figures is wrong."""
    for name in ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "AMD Instinct MI300X", "NVIDIA B200"):
        known = peaks(name)
        assert known is not None
        assert known.measured_flop_per_s
        for precision, measured in known.measured_flop_per_s.items():
            assert measured < known.peak_flop_per_s[precision]


def test_matrix_units_without_tensor_cores_use_their_own_figure() -> None:
    """An MI210 does fp32 matrix products at twice its vector rate; a P100 has one figure for both."""
    amd, old = peaks("AMD Instinct MI210"), peaks("Tesla P100-PCIE-16GB")
    assert amd is not None
    assert old is not None
    assert amd.matrix_flop_per_s("fp32") == pytest.approx(45.3e12)
    assert old.matrix_flop_per_s("fp32") == pytest.approx(10.6e12)
    assert old.matrix_flop_per_s("tf32") is None


def test_different_or_unknown_devices_in_one_job_have_no_common_peak() -> None:
    """A roofline for a mix, or for a device not in the table, would be invented."""
    t4, l4, unknown = Device(0, "Tesla T4"), Device(1, "NVIDIA L4"), Device(1, "Some Device 9000")
    assert peaks_of((t4, t4)) == peaks("Tesla T4")
    assert peaks_of((t4, l4)) is None
    assert peaks_of((t4, unknown)) is None
    assert peaks_of(()) is None


def test_capability_is_the_lowest_known_and_never_amds() -> None:
    """Drivers of AMD devices report a compute capability too, which says nothing about tensor cores."""
    assert capability((Device(0, "NVIDIA A100-SXM4-80GB", compute_capability=(8, 0)), Device(1, "Tesla T4"))) == (7, 5)
    assert capability((Device(0, "AMD Instinct MI300X", compute_capability=(9, 4)),)) is None
    assert capability((Device(0, ""),)) is None
