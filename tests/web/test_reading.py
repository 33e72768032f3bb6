"""How the page reads: where its lines end, what is cut and what that says, what a sheet of paper has room for."""

from pathlib import Path
from typing import Any

import pytest

from tests.web.test_views import HOLDERS, saved
from uncork.pipeline import analyze_recordings
from uncork.testing import sketch

pytestmark = pytest.mark.web
PAPER_PX = 710
"""A4 without its margins, at 96 pixels an inch."""
LONG_THREAD = "pt_autograd_thread_of_rank_3_of_8_of_the_job"
THREADS = f"""
steps 2 x 10ms
  main 1ms..8ms aten::mm
  thread {LONG_THREAD} 1ms..8ms aten::mul
"""
LONE = """() => {
  const found = [], range = document.createRange();
  const walker = document.createTreeWalker(document.querySelector('.first:lang(zh)'), NodeFilter.SHOW_TEXT);
  let last = null;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.parentElement.getClientRects().length || node.parentElement.closest('pre')) { last = null; continue; }
    for (let i = 0; i < node.data.length; i++) {
      range.setStart(node, i); range.setEnd(node, i + 1);
      const [box] = range.getClientRects();
      if (!box || !box.width) continue;
      const block = node.parentElement.closest('p,li,h1,h2,h3,td,th');
      const begins = last && last.block === block && box.top > last.bottom - 2;
      if (begins && '，。；：！？）、」』%'.includes(node.data[i])) found.push(node.data.slice(0, i + 1));
      last = { bottom: box.bottom, block };
    }
  }
  return found;
}"""


@pytest.mark.parametrize("width", [360, 390, 430, 560, 900, 1024, 1440])
def test_no_line_begins_with_a_lone_sign(new_page: Any, html: Path, tmp_path: Path, width: int) -> None:
    """In Chinese no line begins with a closing sign, nor with the percent sign of the number before it."""
    page = new_page(viewport={"width": width, "height": 900}).open(html)
    page.tab.click("[data-act=language]")
    assert page.tab.evaluate("document.querySelector('.first:lang(zh)').textContent.match(/[，。；：]/g).length") > 20
    assert page.tab.evaluate(LONE) == []
    page.open(saved(analyze_recordings(sketch(HOLDERS), views=True), tmp_path))
    assert page.tab.evaluate(LONE) == []


@pytest.mark.parametrize("view", ["timeline", "flame", "tables", "memory", "steps", "ranks", "about"])
def test_no_view_is_wider_than_paper(new_page: Any, html: Path, view: str) -> None:
    """What is wider than the sheet makes browsers print the whole page, its first screen too, smaller."""
    page = new_page(viewport={"width": PAPER_PX, "height": 1000}).open(html, f"view={view}")
    page.tab.emulate_media(media="print")
    assert page.tab.evaluate("document.documentElement.scrollWidth") == PAPER_PX


def test_a_cut_label_tells_all_of_it(new_page: Any, tmp_path: Path) -> None:
    """A thread's name that has no room beside its row is told where one points at it; a short one needs no telling."""
    page = new_page().open(saved(analyze_recordings(sketch(THREADS), views=True), tmp_path))
    heads = page.timeline("t.layout.scrolled.heads.map(head => [head.text, t.top + head.y + 5])")
    (cut,) = (head for head in heads if LONG_THREAD in head[0])
    page.tab.locator("canvas.lanes").scroll_into_view_if_needed()
    canvas = page.tab.locator("canvas.lanes").bounding_box()
    page.tab.mouse.move(canvas["x"] + 40, canvas["y"] + cut[1])
    page.tab.wait_for_selector(".tip")
    assert page.tab.locator(".tip").inner_text() == cut[0]
    page.tab.mouse.move(canvas["x"] + 40, canvas["y"] + heads[0][1])
    page.tab.wait_for_selector(".tip", state="detached")


@pytest.mark.parametrize("place", ["view=timeline&from=2000000&to=9000000", "view=flame", ""])
def test_a_link_leads_to_its_place(new_page: Any, html: Path, place: str) -> None:
    """Who opens a link sees the view it names, not the head of the page; without a place the verdict comes first."""
    page = new_page().open(html, place)
    top = page.tab.evaluate("document.querySelector('.tabs').getBoundingClientRect().top")
    assert (top < 20) == bool(place)
    page.tab.evaluate("scrollTo(0, 0)")
    page.tab.reload()
    page.tab.wait_for_selector("#panel > *:not(.loading)")
    assert page.tab.evaluate("scrollY") == 0


def test_keys_work_where_a_finding_led(new_page: Any, html: Path) -> None:
    """After "show in timeline" the keys zoom at once: nobody has to click the canvas first."""
    page = new_page().open(html)
    page.tab.locator("[data-act=evidence]:visible").first.click()
    page.tab.wait_for_timeout(300)
    shown = page.timeline("t.to - t.from")
    page.tab.keyboard.down("w")
    page.tab.wait_for_timeout(200)
    page.tab.keyboard.up("w")
    assert page.timeline("t.to - t.from") < shown


def test_what_was_clicked_comes_before_what_was_measured(new_page: Any, html: Path) -> None:
    """Its details stand right below the timeline; a measured stretch with no whole event in it has no empty table."""
    page = new_page().open(html)
    kernel = page.timeline("t.trace.tracks.find(one => one.meta.role === 'device').first")
    begin = page.timeline(f"t.trace.start[{kernel}]")
    page.timeline(f"(t.select({kernel}), t.on.measured({{from: {begin} + 100, to: {begin} + 200}}))")
    page.tab.wait_for_selector(".details .span")
    assert page.tab.evaluate("[...document.querySelector('.details').children].map(one => one.className)") == [
        "event",
        "span",
    ]
    assert page.tab.locator(".details table").count() == 0
    page.timeline(f"t.on.measured({{from: {begin}, to: {begin} + t.trace.dur[{kernel}]}})")
    page.tab.wait_for_selector(".details table tbody tr")


def test_views_without_data_are_paler(new_page: Any, html: Path, tmp_path: Path) -> None:
    """Of a snapshot there is memory and what is said of the run; of the job every view, read or not."""
    page = new_page().open(saved(analyze_recordings(sketch(HOLDERS), views=True), tmp_path))
    pale = "[...document.querySelectorAll('[role=tab].without')].map(one => one.id)"
    assert page.tab.evaluate(pale) == ["tab-tables", "tab-timeline", "tab-flame", "tab-steps", "tab-ranks"]
    page.open(html)
    assert page.tab.evaluate(pale) == []
    page.tab.keyboard.press("3")
    page.tab.wait_for_selector(".flame-lanes")
    assert page.tab.evaluate(pale) == []
