"""Copies between host and device: direction, memory, bytes, bandwidth, and what they hold up."""

from pathlib import Path

import pytest

from uncork import readers
from uncork.measure import MissingEvidence, Rank
from uncork.measure.copies import Copies
from uncork.measure.created_on_host import CreatedOnHost
from uncork.measure.step_ledger import StepLedger
from uncork.testing import sketch

PAGEABLE = """
device NVIDIA A100-SXM4-80GB
steps 5 x 10ms
  main 0ms..4ms aten::copy_
  main 0.1ms..3.9ms cudaMemcpyAsync -> stream 7 0.2ms..3.2ms Memcpy HtoD (Pageable -> Device) {"bytes": 30000000}
  main 4ms..4.5ms aten::mm -> stream 7 4.5ms..9ms ampere_sgemm_128x64_tn
"""


def copies(text: str) -> Copies:
    """Return the copies of a sketch."""
    return Copies.of(Rank(sketch(text)[0]))


def test_r2_6_each_copy_has_direction_bytes_bandwidth_and_cost():
    """30 MB in 3 ms are 10 GB/s; nothing runs beside it, and the call holds the host for 3.8 ms."""
    found = copies(PAGEABLE)
    (site,) = found.sites
    assert (site.direction, site.memory, site.location.op) == ("HtoD", "pageable", "aten::copy_")
    assert (site.count, site.bytes, found.steps) == (5, 150_000_000, 5)
    assert site.bytes_per_s == pytest.approx(10e9)
    assert found.total("exposed_ns") == 3_000_000
    assert found.total("host_ns", memory="pageable") == 3_800_000
    assert found.total("bytes", direction="DtoH") == 0


def test_r5_3_a_copy_has_its_source_line():
    """The user's frame around the operator is the copy's place."""
    text = PAGEABLE.replace(
        "  main 0ms..4ms aten::copy_", "  main 0ms..4.2ms train.py(44): step\n  main 0ms..4ms aten::copy_"
    )
    (site,) = copies("with stacks\n" + text).sites
    assert (site.location.file, site.location.line) == ("train.py", 44)


def test_time_beside_kernels_is_not_exposed():
    """A copy of 4 ms of which 3 lie beside a kernel has 1 ms of the ledger's copy time."""
    text = """
    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..0.1ms aten::copy_ -> stream 9 1ms..5ms Memcpy HtoD (Pinned -> Device) {"bytes": 1000}
      main 0.2ms..0.3ms aten::mm -> stream 7 2ms..9ms ampere_sgemm_128x64_tn
    """
    rank = Rank(sketch(text)[0])
    found = Copies.of(rank)
    assert found.total("copy_ns") == 4_000_000
    assert found.total("exposed_ns") == 1_000_000 == StepLedger.of(rank).mean_ns("copy")


def test_overlapping_copies_share_the_ledgers_time():
    """Two copies at once, 1 to 5 and 3 to 7 ms: 4 ms to the first, 2 to the second, 6 in the ledger."""
    text = """
    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..0.1ms aten::copy_ -> stream 9 1ms..5ms Memcpy HtoD (Pinned -> Device) {"bytes": 1000}
      main 0.2ms..0.3ms aten::copy_ -> stream 10 3ms..7ms Memcpy DtoH (Device -> Pinned) {"bytes": 1000}
    """
    found = copies(text)
    assert found.total("exposed_ns", direction="HtoD") == 4_000_000
    assert found.total("exposed_ns", direction="DtoH") == 2_000_000


def test_the_wait_after_a_copy_holds_the_host_too():
    """``item`` copies four bytes and waits: the wait inside the same operator is the copy's."""
    text = """
    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..0.1ms aten::mm -> stream 7 0.2ms..8ms ampere_sgemm_128x64_tn
      main 1ms..8.5ms aten::_local_scalar_dense
      main 1.1ms..1.2ms cudaMemcpyAsync -> stream 7 8ms..8.1ms Memcpy DtoH (Device -> Pageable) {"bytes": 4}
      main 1.3ms..8.3ms cudaStreamSynchronize
    """
    assert copies(text).total("host_ns") == 7_100_000


def test_copies_within_the_device_are_not_counted():
    """DtoD copies use the device's memory, not the link."""
    text = """
    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..0.1ms aten::copy_ -> stream 7 1ms..5ms Memcpy DtoD (Device -> Device) {"bytes": 1000}
    """
    assert copies(text).sites == ()


def test_what_comes_back_in_the_same_step_is_a_round_trip():
    """1 MB up and 1 MB down pair; a copy of another size does not."""
    text = """
    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..0.1ms aten::copy_ -> stream 9 1ms..2ms Memcpy HtoD (Pinned -> Device) {"bytes": 1000000}
      main 0.2ms..0.3ms aten::copy_ -> stream 9 3ms..5ms Memcpy DtoH (Device -> Pinned) {"bytes": 1000000}
      main 0.4ms..0.5ms aten::copy_ -> stream 9 6ms..7ms Memcpy DtoH (Device -> Pinned) {"bytes": 999999}
    """
    found = copies(text)
    assert (found.returned_bytes, found.returned_ns) == (4_000_000, 12_000_000)


def test_without_device_records_nothing_is_known():
    """A trace of the CPU says what is missing instead of: no copies."""
    with pytest.raises(MissingEvidence, match="device"):
        copies("steps 4 x 10ms\n  main 0ms..9ms aten::mm")


def test_a_tensor_made_on_the_cpu_is_told_from_a_batch():
    """Noise drawn for 2 ms just before its copy counts; a copy of a batch that was there does not."""
    made = """
    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..2ms aten::randn
      main 2ms..3ms aten::to -> stream 7 2.5ms..3.5ms Memcpy HtoD (Pageable -> Device) {"bytes": 4000000}
      main 4ms..4.1ms aten::mm -> stream 7 4.2ms..9.2ms ampere_sgemm_128x64_tn
    """
    found = CreatedOnHost.of(Rank(sketch(made)[0]))
    assert (found.per_step, found.idle_ns_per_step, found.copy_ns_per_step) == (1.0, 2_000_000, 1_000_000)
    for other in (made.replace("aten::randn", "aten::stack"), made.replace('"bytes": 4000000', '"bytes": 400000000')):
        assert CreatedOnHost.of(Rank(sketch(other)[0])).per_step == 0


@pytest.mark.parametrize(("case", "memory", "held_ns"), [("W10", "pinned", 12_200), ("W11", "pageable", 67_254_500)])
def test_a_real_pair_pinned_and_pageable(shared: Path, case: str, memory: str, held_ns: int):
    """The same bytes both ways: pageable copies hold the host for all of the step, pinned ones for microseconds."""
    (path,) = (shared / "corpus" / "cases" / case).iterdir()
    found = Copies.of(Rank(readers.read(path)[0]))
    assert {site.memory for site in found.sites} == {memory}
    assert found.total("bytes") == 2 * 154_140_672
    assert found.total("host_ns") == pytest.approx(held_ns, rel=0.01)


def test_r2_6_the_table_of_copies_is_per_step():
    """30 MB per step at 10 GB/s, with what it holds up, as plain values with their unit in the name."""
    (row,) = copies(PAGEABLE).rows()
    assert (row["size_bytes"], row["bytes_per_s"], row["calls_per_step"]) == (30_000_000, pytest.approx(10e9), 1.0)
    assert (row["device_ns"], row["exposed_ns"], row["host_ns"]) == (3_000_000, 3_000_000, 3_800_000)
    assert row["step_share"] == 0.3  # of steps of 10 ms
