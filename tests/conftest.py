"""Fixtures that every test may use."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is no fault of an example.
settings.register_profile("uncork", deadline=None)
settings.load_profile("uncork")

ROOT = Path(__file__).parent.parent
# What a machine may lack even in CI, where everything else that a test skips for is installed.
_MAY_SKIP = re.compile(r"root may read|shows a class, not a place|^Skipped: needs Python 3\.\d+,")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of shared real recordings, or skip the test where it is not there."""
    folder = Path(os.environ.get("UNCORK_SHARED", ROOT.parent / "shared"))
    if not (folder / "corpus" / "labels.json").is_file():
        if os.environ.get("CI"):
            pytest.fail(f"the shared recordings are missing at {folder}; set UNCORK_SHARED")
        pytest.skip(f"needs the shared recordings ({folder} is absent)")
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """In CI a skipped test is a failed one: what it needs is installed there."""
    report = yield
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail") and not _MAY_SKIP.search(reason):
        report.outcome, report.longrepr = "failed", f"{item.nodeid} must not be skipped in CI: {reason}"
    return report
