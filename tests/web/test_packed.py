"""Packed columns: Python unpacks what it packed, and the page's decoder is tested on the same blocks."""

import base64
import json
import subprocess
from pathlib import Path
from shutil import which

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncork.measure.views.packed import pack, unpack
from uncork.units import format_quantity

FRONTEND = Path(__file__).parents[2] / "frontend"
BIG = 2**33
CASES = {
    "empty": ({"note": "leer – 空"}, {"a": np.empty(0, np.int64)}, frozenset()),
    "widths": (
        {},
        {
            "one": np.array([0, 255]),
            "two": np.array([0, 65_535]),
            "four": np.array([0, 2**32 - 1]),
            "eight": np.array([2**32, 2**52, 1]),
        },
        frozenset(),
    ),
    "differences": ({}, {"t": np.array([BIG, BIG - 3, 0, 5, BIG * 1000])}, frozenset({"t"})),
    "floats": ({"unit": "share"}, {"v": np.array([0.5, -2.25, 1e9], np.float32)}, frozenset()),
}


@pytest.mark.parametrize("name", CASES)
def test_unpack_returns_what_was_packed(name: str) -> None:
    """A block holds exactly the numbers it was made from."""
    meta, columns, delta = CASES[name]
    back_meta, back = unpack(pack(meta, columns, delta))
    assert back_meta == meta
    assert {key: values.tolist() for key, values in back.items()} == {
        key: values.tolist() for key, values in columns.items()
    }


@given(st.lists(st.integers(-(2**50), 2**50), max_size=60))
def test_differences_of_any_numbers_come_back(values: list[int]) -> None:
    """Zigzag differences are undone for any sequence."""
    _, back = unpack(pack({}, {"v": np.array(values, np.int64)}, frozenset({"v"})))
    assert back["v"].tolist() == values


def test_a_negative_number_without_differences_is_refused() -> None:
    """Plain columns cannot hold negative numbers, and say so."""
    with pytest.raises(ValueError, match="negative"):
        pack({}, {"v": np.array([-1])}, frozenset())


def test_four_bytes_of_a_known_block() -> None:
    """Bytes are transposed, the lowest first: worked out by hand for two numbers of two bytes."""
    import gzip

    raw = gzip.decompress(pack({}, {"v": np.array([0x0102, 0x0304])}, frozenset()))
    assert raw[-4:] == bytes([0x02, 0x04, 0x01, 0x03])


def test_the_page_tests_use_current_blocks() -> None:
    """The front end's fixtures are what this packer makes; rewrite them with UPDATE=1 in the environment."""
    import os

    fixtures = {
        name: {
            "block": base64.b64encode(pack(meta, columns, delta)).decode(),
            "meta": meta,
            "columns": {key: values.tolist() for key, values in columns.items()},
        }
        for name, (meta, columns, delta) in CASES.items()
    }
    path = FRONTEND / "test" / "fixtures.json"
    if os.environ.get("UPDATE"):
        path.write_text(json.dumps(fixtures, indent=1) + "\n")
        (FRONTEND / "test" / "spelt.json").write_text(json.dumps(_spelt(), ensure_ascii=False, indent=1) + "\n")
    stored = json.loads(path.read_text())
    # Another zlib may compress differently: what counts is what the stored blocks hold.
    for name, fixture in fixtures.items():
        meta, columns = unpack(base64.b64decode(stored[name]["block"]))
        assert meta == fixture["meta"]
        assert {key: values.tolist() for key, values in columns.items()} == fixture["columns"]
    assert json.loads((FRONTEND / "test" / "spelt.json").read_text()) == _spelt()


def _spelt() -> list[list[object]]:
    """Return (name, value, text) of many quantities as Python spells them."""
    values = {
        "step_ns": (0, 1, 999, 999.6, 1000, 12_345, 999_499, 1_000_000, 73_200_000, 2_500_000_000, 99_950_000_000_000),
        "peak_bytes": (0, 1, 1023, 1024, 1536, 10_000_000, 54_824_462_340, 2**45),
        "busy_share": (0, 0.0001, 0.009, 0.0096, 0.31, 1, 1.5),
        "calls": (0, 7, 10_000, 2.5, 1234567),
        "work_flop": (0, 999, 51_600_000_000, 1e15),
        "link_bytes_per_s": (25e9, 1.5e9),
        "peak_flop_per_s": (312e12, 19.5e12),
    }
    return [[name, value, format_quantity(name, value)] for name, many in values.items() for value in many]


@pytest.mark.skipif(
    which("npm") is None or not (FRONTEND / "node_modules").is_dir(), reason="needs npm ci in frontend/"
)
def test_the_front_end_passes_its_own_tests() -> None:
    """Types, decoder, density, layout and spelling of the page hold."""
    done = subprocess.run(["npm", "run", "-s", "types"], cwd=FRONTEND, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(["npm", "run", "-s", "test"], cwd=FRONTEND, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(
    which("npm") is None or not (FRONTEND / "node_modules").is_dir(), reason="needs npm ci in frontend/"
)
@pytest.mark.alone
def test_the_committed_bundle_is_what_the_source_builds() -> None:
    """Building again changes nothing, so what is shipped is what can be read."""
    web = Path(__file__).parents[2] / "src" / "uncork" / "render" / "web"
    before = {path.name: path.read_bytes() for path in web.iterdir()}
    subprocess.run(["npm", "run", "-s", "build"], cwd=FRONTEND, check=True)
    after = {path.name: path.read_bytes() for path in web.iterdir()}
    assert before == after


def test_the_bundle_is_small() -> None:
    """The page's code stays under 115 KB, 45 of them packed: a report is mostly its data.

    The last 5 came with squares for many ranks, the open view on paper, pictures and commands to copy.
    """
    web = Path(__file__).parents[2] / "src" / "uncork" / "render" / "web"
    assert sum(path.stat().st_size for path in web.iterdir()) < 115_000
