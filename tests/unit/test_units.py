"""Units: how numbers are spelt for people."""

import pytest

from uncork import units


@pytest.mark.parametrize(
    ("value_ns", "text"),
    [
        (0, "0 ns"), (999, "999 ns"), (1_000, "1.00 µs"), (12_340, "12.3 µs"), (999_600, "1.00 ms"),
        (123_400_000, "123 ms"), (1_500_000_000, "1.50 s"), (-2_000_000, "-2.00 ms"), (1_234_000_000_000, "1,234 s"),
    ],
)  # fmt: skip
def test_durations_have_three_digits_and_the_unit_people_use(value_ns: float, text: str):
    """The unit changes where the three digits would round up to the next one."""
    assert units.format_ns(value_ns) == text


@pytest.mark.parametrize(
    ("value_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1_610_612_736, "1.50 GiB"), (5 * 2**50, "5,120 TiB")],
)
def test_sizes_are_binary(value_bytes: float, text: str):
    """1024 bytes are a KiB; beyond TiB the number grows."""
    assert units.format_bytes(value_bytes) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0 %"), (0.314, "31 %"), (1, "100 %"), (0.0042, "0.4 %"), (0.0003, "<0.1 %")]
)
def test_small_shares_keep_a_digit(share: float, text: str):
    """A share under one in a hundred is not rounded to nothing."""
    assert units.format_share(share) == text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("step_ns", 2_000_000, "2.00 ms"), ("peak_bytes", 2**30, "1.00 GiB"), ("wait_share", 0.5, "50 %"),
        ("share", 0.5, "50 %"), ("work_flop", 51.6e9, "51.6 GFLOP"), ("calls", 12345, "12,345"),
        ("ratio", 1.25, "1.25"),
        ("link_bytes_per_s", 2.5e9, "2.50 GB/s"), ("peak_flop_per_s", 312e12, "312 TFLOP/s"),
        ("name", "conv1", "conv1"), ("pinned", True, "True"),
    ],
)  # fmt: skip
def test_a_quantity_is_spelt_by_the_unit_in_its_name(name: str, value: object, text: str):
    """The suffix decides; texts and truth values stay as they are."""
    assert units.format_quantity(name, value) == text


def test_all_parameters_of_a_message_are_spelt():
    """Each by its own name."""
    assert units.format_quantities({"wait_ns": 1000, "workers": 4}) == {"wait_ns": "1.00 µs", "workers": "4"}


@pytest.mark.parametrize(
    ("low_bytes", "high_bytes", "text"),
    [
        (512 << 20, 3 << 30, "512 MiB…3.00 GiB"),
        (1 << 30, 3 << 30, "1.00…3.00 GiB"),
        (0, 3 << 30, "0…3.00 GiB"),
        (3 << 30, (3 << 30) + 1, "3.00 GiB"),
    ],
)
def test_a_range_of_sizes_names_a_shared_unit_once(low_bytes: int, high_bytes: int, text: str):
    """Two units are both named; nothing needs none; what reads alike is one size."""
    assert units.format_bytes_range(low_bytes, high_bytes) == text
