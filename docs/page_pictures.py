"""Draw the pictures of the report's page: ``python docs/page_pictures.py`` (needs playwright, Chromium and Pillow)."""

import random
import tempfile
from pathlib import Path
from shutil import which

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from uncork.pipeline import analyze_recordings
from uncork.render import Options
from uncork.render.html import render
from uncork.testing import sketch

FOLDER = Path(__file__).parent / "report"
COLOURS = 200
# (file, language, theme, place, what to do in the page first)
PICTURES = (
    ("first-screen", "en", "light", "", ""),
    ("timeline", "en", "light", "view=timeline", "timeline"),
    ("flame", "en", "light", "view=flame", "views"),
    ("steps", "en", "light", "view=steps", "views"),
    ("first-screen.zh", "zh", "light", "", ""),
    ("timeline.zh", "zh", "dark", "view=timeline", "timeline"),
    ("flame.zh", "zh", "dark", "view=flame", "views"),
)
_SHOW = {
    "": "window.scrollTo(0, 0)",
    "views": "document.getElementById('views').scrollIntoView()",
    "timeline": """(() => {
      document.getElementById('views').scrollIntoView();
      const t = window.uncorkTimeline, device = t.trace.tracks.find(one => one.meta.role === 'device');
      const kernel = [...Array(device.last - device.first).keys()].map(k => k + device.first)
        .find(k => t.trace.start[k] > 41e6 && t.trace.dur[k] > 1e6);
      t.select(kernel); t.show(36e6, 84e6);
    })()""",
}


def job() -> str:
    """Return the sketch of a small training job whose device waits for data and, less, for its own host."""
    lines = [
        "device NVIDIA A100-SXM4-80GB",
        "with shapes stacks",
        "steps 6 x 40ms",
        "  main 0ms..17ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "  main python 17ms..38ms train.py(41): step",
        "  main 17.2ms..18.4ms aten::copy_ -> stream 7 17.6ms..18.3ms Memcpy HtoD (Pageable -> Device)",
        "  main python 18.5ms..29ms model.py(12): forward",
    ]
    luck = random.Random(3)  # noqa: S311 - a picture
    at, free = 18.6, 18.9
    for layer in range(9):
        for name, kernel, low, high in (
            ("aten::conv2d", "cudnn_infer_conv_fprop_128x64", 0.4, 1.5),
            ("aten::batch_norm", "bn_fw_tr_1C11_kernel_NCHW", 0.1, 0.3),
            ("aten::relu", "vectorized_elementwise_kernel", 0.05, 0.2),
        ):
            begin = max(at + 0.12, free)
            free = begin + luck.uniform(low, high)
            shapes = f'{{"Input Dims": [[32, {64 * (layer // 3 + 1)}, 56, 56]]}}'
            work = f"stream 7 {begin:.3f}ms..{free:.3f}ms {kernel}"
            lines.append(f"  main {at:.3f}ms..{at + 0.3:.3f}ms {name} {shapes} -> {work}")
            at += 0.38
    lines.append("  main python 29.1ms..37.9ms train.py(44): update")
    for part in range(4):
        call, begin = 29.3 + part * 1.9, max(free, 29.6 + part * 1.9)
        free = begin + 1.1
        reduce = max(begin + 0.5, call + 1)
        communication = f"stream 20 {reduce:.2f}ms..{reduce + 1.3:.2f}ms ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        lines += [
            f"  main {call:.2f}ms..{call + 0.6:.2f}ms aten::mm -> stream 7 {begin:.2f}ms..{free:.2f}ms ampere_sgemm",
            f"  main op {call + 0.7:.2f}ms..{call + 0.9:.2f}ms c10d::allreduce_ -> {communication}",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write every picture."""
    FOLDER.mkdir(exist_ok=True)
    report = analyze_recordings(sketch(job()), views=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        page = Path(folder) / "report.html"
        page.write_text(render(report, Options()), "utf-8")
        browser = driver.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        for picture in PICTURES:
            _draw(browser, page, picture)
        browser.close()


def _draw(browser: Browser, page: Path, picture: tuple[str, str, str, str, str]) -> None:
    name, lang, theme, place, act = picture
    target = FOLDER / f"{name}.png"
    context = browser.new_context(viewport={"width": 1280, "height": 860}, color_scheme=theme)
    tab = context.new_page()
    tab.goto(f"file://{page}" + (f"#{place}" if place else ""))
    tab.wait_for_selector("#panel > *:not(.loading)")
    if lang == "zh":
        tab.click("[data-act=language]")
    tab.evaluate(_SHOW[act])
    tab.wait_for_timeout(600)
    tab.screenshot(path=target)
    context.close()
    Image.open(target).convert("RGB").quantize(COLOURS).save(target, optimize=True)


if __name__ == "__main__":
    main()
