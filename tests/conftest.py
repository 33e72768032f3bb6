"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of shared real recordings, or skip the test where it is not there."""
    folder = Path(os.environ.get("UNCORK_SHARED", ROOT.parent / "shared"))
    if not (folder / "corpus" / "labels.json").is_file():
        if os.environ.get("CI"):
            pytest.fail(f"the shared recordings are missing at {folder}; set UNCORK_SHARED")
        pytest.skip(f"needs the shared recordings ({folder} is absent)")
    return folder
