"""The report in a real browser: what it shows, that it needs nobody, and that it can be used without a mouse."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import AXE, Page
from uncork.locale import say
from uncork.render import Options
from uncork.render.html import render
from uncork.report import Report, to_json

pytestmark = pytest.mark.web
MS = 1_000_000
SHOWN = "<img src=x onerror=window.broken=1></script>\\u202eevil\U0001f600"


def test_the_page_needs_nothing_but_itself(new_page: Any, html: Path) -> None:
    """One request, no error, no warning, in every view."""
    page = new_page().open(html)
    for pause_ms in (150, 0):  # leaving a view before it was drawn must be no fault either
        for number in range(1, 8):
            page.tab.keyboard.press(str(number))
            page.tab.wait_for_timeout(pause_ms)
    page.tab.wait_for_timeout(300)
    assert page.errors == []
    assert page.requests == [f"file://{html}"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_first_screen_needs_no_script(new_page: Any, html: Path, report: Report, lang: str) -> None:
    """Without JavaScript the verdict, the ledger, the findings and what was not assessed can be read."""
    page = new_page(java_script_enabled=False)
    page.tab.goto(f"file://{html}")
    first = page.tab.locator(f".first[data-lang={lang}]")
    json = to_json(report, lang)
    text = first.text_content()
    assert json["verdict"]["summary"] in text
    for entry in json["ledger"][:3]:
        assert say(lang, f"cause.{entry['cause']}") in text
    for finding in json["findings"][:3]:
        assert finding["title"] in text
    assert first.is_visible() == (lang == "en")
    assert page.tab.locator(f"noscript p[data-lang={lang}]").count() in (0, 1)


def test_languages_are_switched_live(new_page: Any, html: Path, report: Report) -> None:
    """The button changes the first screen, the tabs and the canvas's labels, and the document says its language."""
    page = new_page().open(html)
    assert page.tab.locator("h1:visible").inner_text() == to_json(report, "en")["verdict"]["summary"]
    page.tab.click("[data-act=language]")
    assert page.tab.locator("h1:visible").inner_text() == to_json(report, "zh")["verdict"]["summary"]
    assert page.tab.locator("[role=tab][aria-selected=true]").inner_text() == say("zh", "page.tab.timeline")
    assert page.tab.evaluate("document.documentElement.lang") == "zh-Hans"
    waiting = page.timeline("t.label([...t.trace.meta.names.keys()].find(i => t.trace.name[i] >= 0) ?? 0)")
    assert isinstance(waiting, str)


@pytest.mark.parametrize(("scheme", "other"), [("light", "dark"), ("dark", "light")])
def test_the_theme_follows_the_system_and_the_button(new_page: Any, html: Path, scheme: str, other: str) -> None:
    """The system's scheme is taken first; the button changes it."""
    page = new_page(color_scheme=scheme).open(html)
    assert page.tab.evaluate("document.documentElement.dataset.theme") == scheme
    before = page.tab.evaluate("getComputedStyle(document.body).backgroundColor")
    page.tab.click("[data-act=theme]")
    assert page.tab.evaluate("document.documentElement.dataset.theme") == other
    assert page.tab.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_keys_move_the_view(new_page: Any, html: Path) -> None:
    """W zooms in, D goes right, 0 shows all; the other way round with S and A."""
    page = new_page().open(html)
    page.tab.focus("canvas.lanes")
    whole = page.timeline("t.to - t.from")
    _hold(page, "w")
    zoomed, left = page.timeline("t.to - t.from"), page.timeline("t.from")
    assert zoomed < whole * 0.8
    _hold(page, "d")
    assert page.timeline("t.from") > left
    right = page.timeline("t.from")
    _hold(page, "a")
    assert page.timeline("t.from") < right
    _hold(page, "s")
    assert page.timeline("t.to - t.from") > zoomed
    page.tab.keyboard.press("0")
    assert page.timeline("[t.from, t.to]") == [0, page.timeline("t.trace.span")]


def _hold(page: Page, key: str) -> None:
    page.tab.keyboard.down(key)
    page.tab.wait_for_timeout(200)
    page.tab.keyboard.up(key)


def test_a_link_brings_back_the_place(new_page: Any, html: Path) -> None:
    """The address holds the view, the stretch of time and the selected event."""
    page = new_page().open(html)
    kernel = page.timeline("t.trace.tracks.find(one => one.meta.role === 'device').first")
    page.timeline(f"(t.select({kernel}), t.show(2e6, 9e6))")
    page.tab.wait_for_timeout(400)
    address = page.tab.evaluate("location.hash").removeprefix("#")
    again = new_page().open(html, address)
    assert again.timeline("[t.from, t.to, t.selected]") == [2 * MS, 9 * MS, kernel]


def test_a_kernel_tells_who_launched_it(new_page: Any, html: Path) -> None:
    """The first kernel's details: 2 ms long, launched by a runtime call below aten::conv2d, its shapes and line."""
    page = new_page().open(html)
    page.timeline("t.select(t.trace.tracks.find(one => one.meta.role === 'device').first, true)")
    text = page.tab.locator(".details").inner_text()
    for part in ("cudnn_conv_kernel", "2.00 ms", "cudaLaunchKernel", "train.py:12 step", "[8, 3, 32, 32]", "8.00 ms"):
        assert part in text, part


def test_measuring_snaps_to_edges(new_page: Any, html: Path) -> None:
    """Shift and drag over a loader's wait, a few pixels off, measures its 6 ms exactly."""
    page = new_page().open(html)
    page.tab.locator("canvas.lanes").scroll_into_view_if_needed()
    box = page.tab.locator("canvas.lanes").bounding_box()
    where = page.timeline(
        "(() => { const lane = t.layout.scrolled.lanes.find(one => t.trace.tracks[one.track].meta.main);"
        " const i = lane.row.first; return [t.xAt(t.trace.start[i]), t.xAt(t.trace.start[i] + t.trace.dur[i]),"
        " t.top + lane.y + 5 - t.scroll]; })()"
    )
    left, right, y = where[0] + box["x"], where[1] + box["x"], where[2] + box["y"]
    page.tab.keyboard.down("Shift")
    page.tab.mouse.move(left + 3, y)
    page.tab.mouse.down()
    page.tab.mouse.move(right - 40, y, steps=3)
    page.tab.mouse.move(right - 3, y, steps=3)
    page.tab.mouse.up()
    page.tab.keyboard.up("Shift")
    assert page.timeline("t.measure.to - t.measure.from") == 6 * MS
    assert "6.00 ms" in page.tab.locator(".details .span h3").inner_text()


def test_search_counts_and_finds(new_page: Any, html: Path) -> None:
    """Searching dims the rest, counts four (one a step) and Enter goes to the first."""
    page = new_page().open(html)
    page.tab.keyboard.press("/")
    page.tab.keyboard.type("ampere_sgemm")
    assert say("en", "page.search.found", {"count": 4}) in page.tab.locator(".timeline .bar").inner_text()
    page.tab.keyboard.press("Enter")
    assert page.timeline("t.trace.meta.names[t.trace.name[t.selected]]") == "ampere_sgemm_32x32"


def test_the_views_stand_in_the_order_of_reading(new_page: Any, html: Path) -> None:
    """What takes long, then when, then who calls it (R7.3): tables, timeline, flame graph."""
    names = new_page().open(html).tab.locator("[role=tab]").all_inner_texts()
    assert names[:3] == [say("en", f"page.tab.{one}") for one in ("tables", "timeline", "flame")]


def test_every_place_is_reached_by_keys(new_page: Any, html: Path) -> None:
    """Tab leads to the views, arrows from one to the next; in the timeline arrows select, Enter folds, N goes on."""
    page = new_page().open(html)
    page.tab.focus("#tab-timeline")
    page.tab.keyboard.press("ArrowRight")
    assert page.tab.evaluate("document.activeElement.id") == "tab-flame"
    page.tab.keyboard.press("ArrowLeft")
    page.tab.wait_for_selector("canvas.lanes")
    page.tab.focus("canvas.lanes")
    page.tab.evaluate(
        "window.uncorkTimeline.select(window.uncorkTimeline.trace.tracks.find(one => one.meta.main).first)"
    )
    page.tab.keyboard.press("ArrowRight")
    assert page.timeline("t.selected - t.trace.tracks.find(one => one.meta.main).first") == 1
    rows = page.timeline("t.layout.scrolled.lanes.length")
    page.tab.keyboard.press("Enter")
    assert page.timeline("t.layout.scrolled.lanes.length") < rows
    page.tab.keyboard.press("Enter")
    assert page.timeline("t.layout.scrolled.lanes.length") == rows
    page.tab.keyboard.press("n")
    assert page.timeline("t.measure !== null")
    assert page.tab.locator(".details").get_attribute("aria-live") == "polite"


def test_those_who_do_not_see_the_canvas_hear_its_rows(new_page: Any, html: Path) -> None:
    """The canvas is described by the names of its rows and by its keys."""
    page = new_page().open(html)
    described = page.tab.locator("canvas.lanes").get_attribute("aria-describedby").split()
    text = " ".join(page.tab.locator(f"#{one}").text_content() for one in described)
    for part in ("stream 7", "main thread", say("en", "page.track.causes"), "W S"):
        assert part in text, part


def test_each_row_of_findings_says_which(new_page: Any, html: Path, report: Report) -> None:
    """Rows of findings are labelled with number and title, in the language that is on; a click on one goes there."""
    page = new_page().open(html)
    heads = "t.layout.pinned.heads.map(one => one.text)"
    number = page.timeline("t.marks.findings[0]")
    assert f"{number + 1}  {to_json(report, 'en')['findings'][number]['title']}" in page.timeline(heads)
    page.tab.click("[data-act=language]")
    assert f"{number + 1}  {to_json(report, 'zh')['findings'][number]['title']}" in page.timeline(heads)
    page.tab.locator("canvas.lanes").scroll_into_view_if_needed()
    page.tab.locator("canvas.lanes").click(position={"x": 60, "y": page.timeline("t.top - t.layout.pinned.height + 8")})
    longest = "Math.max(...[...t.marks.dur].slice(t.marks.rows[0].first, t.marks.rows[0].last))"
    assert page.timeline("t.measure.to - t.measure.from") == page.timeline(longest)


@pytest.mark.parametrize("view", ["timeline", "flame", "memory"])
def test_a_picture_is_saved(new_page: Any, html: Path, view: str) -> None:
    """The button saves what the canvas shows as a PNG of its size."""
    page = new_page().open(html, f"view={view}")
    page.tab.wait_for_timeout(300)
    with page.tab.expect_download() as caught:
        page.tab.get_by_role("button", name=say("en", "page.save_png")).first.click()
    assert caught.value.suggested_filename == f"uncork-{view}.png"
    data = Path(caught.value.path()).read_bytes()
    canvas = page.tab.locator("#panel canvas").first
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") == canvas.evaluate("one => one.width")
    assert page.errors == []


def test_a_place_is_copied_as_a_command(new_page: Any, report: Report, tmp_path: Path) -> None:
    """What brings a colleague here who has the recording: its name as it was typed, quoted, and the place."""
    path = tmp_path / "report.html"
    path.write_text(render(report, Options(run="my run")), "utf-8")
    page = new_page(permissions=["clipboard-read", "clipboard-write"]).open(path, "view=steps")
    page.tab.get_by_role("button", name=say("en", "page.command")).click()
    page.tab.get_by_role("button", name=say("en", "page.copied")).wait_for()
    assert page.tab.evaluate("navigator.clipboard.readText()") == "uncork open 'my run' --at 'view=steps'"


def test_hostile_names_are_shown_as_text(new_page: Any, html: Path) -> None:
    """Markup in names runs nothing; marks of direction are spelt out; long names are cut."""
    page = new_page().open(html, "view=tables&table=kernels")
    assert page.tab.evaluate("window.broken") is None
    assert SHOWN in page.tab.locator(".tables").inner_text()
    raw = html.read_text("utf-8")
    assert "\u202e" not in raw
    assert "<img" not in raw
    assert "x" * 500 not in raw


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["timeline", "flame", "tables", "memory", "steps", "ranks", "about"])
def test_no_accessibility_violation(new_page: Any, html: Path, axe: str, view: str, scheme: str) -> None:
    """The checker finds nothing to complain about, in either language, everything unfolded too."""
    page = new_page(color_scheme=scheme).open(html, f"view={view}")
    page.tab.evaluate(axe)
    assert page.tab.evaluate(AXE) == []
    page.tab.click("[data-act=language]")
    page.tab.evaluate("document.querySelectorAll('details').forEach(one => (one.open = true))")
    page.tab.keyboard.press("?")
    page.tab.wait_for_selector(".help")
    assert page.tab.evaluate(AXE) == []


@pytest.mark.parametrize("width", [900, 390])
def test_a_narrow_window_needs_no_sideways_scrolling(new_page: Any, html: Path, width: int) -> None:
    """In half a screen's width, and on a telephone, nothing of any view sticks out."""
    page = new_page(viewport={"width": width, "height": 900}).open(html)
    for number in range(1, 8):
        page.tab.keyboard.press(str(number))
        page.tab.wait_for_timeout(150)
        assert page.tab.evaluate("document.documentElement.scrollWidth") <= width, number


def test_on_a_telephone_a_table_shows_figures_beside_the_names(new_page: Any, html: Path) -> None:
    """A name of 3,000 letters takes 150 of 390 pixels, so that two columns more begin in sight."""
    page = new_page(viewport={"width": 390, "height": 900}).open(html, "view=tables")
    heads = page.tab.locator(".grid:visible thead th")
    boxes = [heads.nth(number).bounding_box() for number in range(3)]
    assert boxes[0]["width"] <= 150
    assert boxes[2]["x"] < 390


def test_a_report_without_a_timeline_begins_with_what_it_has(new_page: Any, report: Report, tmp_path: Path) -> None:
    """Without views the tables are first; the timeline's tab says what to record."""
    path = tmp_path / "saved.html"
    path.write_text(render(replace(report, views={}, memory=None), Options()), "utf-8")
    page = new_page().open(path)
    assert page.tab.locator("[role=tab][aria-selected=true]").inner_text() == say("en", "page.tab.tables")
    page.tab.keyboard.press("2")
    page.tab.wait_for_selector("#panel > .empty:not(.loading)")
    assert page.tab.locator("#panel").inner_text() == say("en", "page.timeline.empty")


def _pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def test_without_script_one_page_is_printed(new_page: Any, html: Path) -> None:
    """The first screen is one sheet of paper."""
    page = new_page(java_script_enabled=False)
    page.tab.goto(f"file://{html}")
    assert _pages(page.tab.pdf(format="A4")) == 1


def test_the_open_view_is_printed_after_the_first_screen(new_page: Any, html: Path) -> None:
    """Verdict first, then the view on a sheet of its own, in light colours on whatever screen; no buttons."""
    page = new_page(color_scheme="dark").open(html, "view=timeline")
    page.tab.evaluate("window.uncorkTimeline.redraw = () => {}")  # what only the next frame draws, paper never shows
    assert _pages(page.tab.pdf(format="A4")) == 2
    page.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    corner = "[...document.querySelector('canvas.lanes').getContext('2d').getImageData(1, 1, 1, 1).data].slice(0, 3)"
    assert page.tab.evaluate(corner) == [255, 255, 255]
    page.tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.tab.evaluate(corner) == [16, 21, 27]
    page.tab.emulate_media(media="print")
    assert page.tab.locator("h1:visible").count() == 1
    assert page.tab.locator("canvas.lanes").is_visible()
    assert page.tab.locator("button:visible").count() == 0
