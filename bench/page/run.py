"""Measures the page: size, time until the timeline is drawn, frames while panning, on made-up or given recordings.

python bench/page/run.py [--events 300000 1000000] [--repeat 5] [RECORDING …]
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from shutil import which
from typing import Any

from made_up import recording
from playwright.sync_api import sync_playwright

from uncork.pipeline import analyze, analyze_recordings
from uncork.render import Options
from uncork.render.html import render

_PAN = """async () => {
  const t = window.uncorkTimeline, gaps = [], draws = [];
  t.show(t.trace.span * 0.3, t.trace.span * 0.6);
  let last = performance.now();
  for (let i = 0; i < 90; i++) {
    t.pan(i % 30 < 15 ? 0.01 : -0.01);
    if (i % 10 === 5) t.zoom(i < 45 ? 0.8 : 1.25, 700);
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    gaps.push(now - last); draws.push(t.lastDrawMs); last = now;
  }
  return {gaps: gaps.slice(5), draws: draws.slice(5), events: t.trace.start.length};
}"""
_DRAWN = "() => performance.getEntriesByName('timeline-drawn').map(one => one.startTime)[0] ?? null"
_PAINT = "() => performance.getEntriesByName('first-contentful-paint').map(one => one.startTime)[0] ?? null"


def main() -> None:
    """Print one line per page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, nargs="*", default=[300_000, 1_000_000])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("recordings", type=Path, nargs="*")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        for label in [*wanted.recordings, *wanted.events]:
            page = Path(folder) / "page.html"
            began = time.perf_counter()
            report = analyze([label], views=True) if isinstance(label, Path) else _made_up(label)
            analysed = time.perf_counter()
            page.write_text(render(report, Options()), "utf-8")
            written = time.perf_counter()
            runs = [_look(browser, page) for _ in range(wanted.repeat)]
            name = label.name if isinstance(label, Path) else f"made up, {label:,}"
            print(f"{name}: analysed in {analysed - began:.1f} s, written in {written - analysed:.2f} s")
            print(_line(page, runs))
        browser.close()


def _made_up(events: int) -> Any:
    return analyze_recordings([recording(events)], views=True)


def _look(browser: Any, path: Path) -> dict[str, Any]:
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    page.goto(f"file://{path}")
    # The page's policy forbids evaluating texts, which `wait_for_function` would do.
    while page.evaluate(_DRAWN) is None:
        time.sleep(0.05)
    found = {"drawn_ms": page.evaluate(_DRAWN), "paint_ms": page.evaluate(_PAINT), **page.evaluate(_PAN)}
    page.close()
    return found


def _line(path: Path, runs: list[dict[str, Any]]) -> str:
    def middle(key: str) -> float:
        return statistics.median(run[key] for run in runs)

    frames = sorted(gap for run in runs for gap in run["gaps"])
    draws = sorted(draw for run in runs for draw in run["draws"])
    return (
        f"  load {os.getloadavg()[0]:.1f}; {runs[0]['events']:,} events drawn from {path.stat().st_size / 1e6:.2f} MB; "
        f"first paint {middle('paint_ms'):.0f} ms, "
        f"timeline drawn {middle('drawn_ms'):.0f} ms (worst {max(run['drawn_ms'] for run in runs):.0f}); "
        f"frame p50 {frames[len(frames) // 2]:.1f} ms, p95 {frames[int(len(frames) * 0.95)]:.1f}; "
        f"JavaScript per frame p50 {draws[len(draws) // 2]:.1f} ms, p95 {draws[int(len(draws) * 0.95)]:.1f}"
    )


if __name__ == "__main__":
    main()
