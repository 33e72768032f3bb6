"""A real browser, and the page it looks at."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from uncork.pipeline import analyze_recordings
from uncork.render import Options
from uncork.render.html import render
from uncork.report import Report
from uncork.testing import sketch

HOSTILE = "<img src=x onerror=window.broken=1></script>\u202eevil\U0001f600" + "x" * 3000
AXE = "axe.run().then(all => all.violations.map(one => [one.id, one.nodes.map(node => node.html.slice(0, 90))]))"
"""Runs the accessibility checker once it is in the page, and returns what it complains about."""
JOB = f"""
device NVIDIA A100-SXM4-80GB
with shapes stacks memory
steps 4 x 10ms
  main 0ms..6ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  main python 6ms..9ms train.py(12): step
  main 6.2ms [memory] {{"Bytes": 1048576, "Total Allocated": 2097152, "Device Type": 1, "Device Id": 0}}
  main 6.1ms..6.5ms aten::conv2d {{"Input Dims": [[8, 3, 32, 32]]}} -> stream 7 6.6ms..8.6ms cudnn_conv_kernel
  main 7ms..7.4ms aten::mm {{"Input Dims": [[8, 8], [8, 8]]}} -> stream 7 8.7ms..9.2ms ampere_sgemm_32x32
  main op 8ms..8.2ms {HOSTILE} -> stream 7 9.3ms..9.4ms {HOSTILE}
  main op 8.3ms..8.5ms aten::add -> stream 20 9.0ms..9.5ms ncclDevKernel_AllReduce
"""


@dataclass
class Page:
    """A page in the browser and what was heard from it.

    Args:
        tab: The browser's page.
        errors: Errors and warnings of the console.
        requests: Addresses asked for.
    """

    tab: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: Path, place: str = "") -> "Page":
        """Return the page after it drew its first view."""
        self.tab.goto(f"file://{path}" + (f"#{place}" if place else ""))
        self.tab.wait_for_selector("#panel > *:not(.loading)")
        return self

    def timeline(self, expression: str) -> Any:
        """Return what an expression about the timeline (``t``) says."""
        return self.tab.evaluate(f"(() => {{ const t = window.uncorkTimeline; return {expression}; }})()")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Return Debian's Chromium, driven by playwright; skip where either is absent."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    path = which("chromium")
    if path is None:
        pytest.skip("needs chromium")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture
def new_page(browser: Any) -> Iterator[Any]:
    """Return a function that makes a page with options of a browser context."""
    contexts = []

    def make(**options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 1000}, **options})
        contexts.append(context)
        context.set_default_timeout(8_000)
        page = Page(context.new_page())
        page.tab.on("console", lambda said: said.type in ("error", "warning") and page.errors.append(said.text))
        page.tab.on("pageerror", lambda error: page.errors.append(str(error)))
        page.tab.on("request", lambda request: page.requests.append(request.url))
        return page

    yield make
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def report() -> Report:
    """Return the report of a small job on a device whose names are hostile."""
    return analyze_recordings(sketch(JOB), views=True)


@pytest.fixture(scope="session")
def html(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the job's page."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(report, Options()), "utf-8")
    return path


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the accessibility checker's source, or skip where the front end's packages are not installed."""
    path = Path(__file__).parents[2] / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
    if not path.is_file():
        pytest.skip("needs npm ci in frontend/")
    return path.read_text("utf-8")
