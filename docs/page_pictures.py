"""Draw the pictures of the report's page: ``python docs/page_pictures.py`` (needs playwright, Chromium and Pillow)."""

import random
import tempfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from shutil import which

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from uncork.compare import compare
from uncork.locale import LANGUAGES
from uncork.pipeline import analyze, analyze_recordings
from uncork.render import Options
from uncork.render.html import render, render_compared
from uncork.testing import sketch

FOLDER = Path(__file__).parent / "report"
COLOURS = 160
"""By coverage: a median cut gives small swatches the colour of a large neighbour, and colours mean something here."""
WIDTH, HEIGHT = 1280, 860
# (file, page, theme, place); each in both languages
PICTURES = (
    ("first-screen", "job", "light", ""),
    ("timeline", "job", "light", "view=timeline"),
    ("flame", "job", "light", "view=flame"),
    ("tables", "job", "dark", "view=tables"),
    ("memory", "memory", "light", "view=memory"),
    ("steps", "job", "light", "view=steps"),
    ("ranks", "ranks", "dark", "view=ranks"),
    ("compare", "compared", "light", "view=compare"),
    ("about", "job", "light", "view=about"),
)
# Of real recordings: every view as a tile, taken at this size and shown smaller.
TILE_WIDTH, TILE_HEIGHT, SHOWN = 1000, 620, 0.64
VIEWS = ("timeline", "flame", "tables", "memory", "steps", "ranks", "about")
RECORDINGS = Path(__file__).parents[1] / "tests" / "golden" / "recordings"
_SHOW = {
    "timeline": """(() => {
      const t = window.uncorkTimeline, device = t.trace.tracks.find(one => one.meta.role === 'device');
      const kernel = [...Array(device.last - device.first).keys()].map(k => k + device.first)
        .find(k => t.trace.start[k] > 41e6 && t.trace.dur[k] > 1e6);
      t.select(kernel); t.show(36e6, 84e6);
    })()""",
}


_BOXES = "[...document.querySelectorAll('#panel > div > *')].map(one => one.getBoundingClientRect())"
_END = f"Math.max(...{_BOXES}.map(box => box.bottom + scrollY))"


def job(wait: float = 17) -> str:
    """Return the sketch of a small training job whose device waits for data and, less, for its own host.

    Args:
        wait: How long it waits for each batch, in ms.
    """
    copy = f"stream 7 {wait + 0.6}ms..{wait + 1.3}ms Memcpy HtoD (Pageable -> Device)"
    lines = [
        "device NVIDIA A100-SXM4-80GB",
        "with shapes stacks",
        f"steps 6 x {wait + 23}ms",
        f"  main 0ms..{wait}ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        f"  main python {wait}ms..{wait + 21}ms train.py(41): step",
        f"  main {wait + 0.2}ms..{wait + 1.4}ms aten::copy_ -> {copy}",
        f"  main python {wait + 1.5}ms..{wait + 12}ms model.py(12): forward",
    ]
    luck = random.Random(3)  # noqa: S311 - a picture
    at, free = wait + 1.6, wait + 1.9
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
    return "\n".join(lines + _update(wait, free)) + "\n"


def _update(wait: float, free: float) -> list[str]:
    """Return the end of a step: products and, beside them, their reductions."""
    lines = [f"  main python {wait + 12.1}ms..{wait + 20.9}ms train.py(44): update"]
    for part in range(4):
        call, begin = wait + 12.3 + part * 1.9, max(free, wait + 12.6 + part * 1.9)
        free = begin + 1.1
        reduce = max(begin + 0.5, call + 1)
        communication = f"stream 20 {reduce:.2f}ms..{reduce + 1.3:.2f}ms ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        lines += [
            f"  main {call:.2f}ms..{call + 0.6:.2f}ms aten::mm -> stream 7 {begin:.2f}ms..{free:.2f}ms ampere_sgemm",
            f"  main op {call + 0.7:.2f}ms..{call + 0.9:.2f}ms c10d::allreduce_ -> {communication}",
        ]
    return lines


def memory() -> str:
    """Return the sketch of a snapshot: two steps of a model whose optimiser keeps two values a parameter."""
    lines = ["reserved 44GiB"]
    layer = "torch/nn/modules/linear.py:125:forward < model.py:31:forward < train.py:40:main"
    lines += [f"alloc weight{at} 700MiB model.py:18:__init__ < train.py:9:main" for at in range(8)]
    for step in range(2):
        lines += [f"alloc kept{step}{at} 1GiB {layer}" for at in range(8)]
        for at in reversed(range(8)):
            if not step:
                lines.append(f"alloc gradient{at} 700MiB torch::autograd::generated::AddmmBackward0::apply")
            lines.append(f"free kept{step}{at} torch::autograd::Engine::thread_main")
        lines.append("step AdamW")
        if not step:
            lines += [
                f"alloc moment{at} 1400MiB torch/optim/adamw.py:90:_init_group < train.py:44:main" for at in range(8)
            ]
    return "\n".join(f"snapshot {line}" for line in lines) + "\n"


def ranks() -> str:
    """Return the sketch of eight ranks; two are held up by their host, and the others wait for them."""
    lines = ["ranks 8", "device NVIDIA A100-SXM4-80GB", "steps 4 x 40ms"]
    luck = random.Random(5)  # noqa: S311 - a picture
    for rank in range(8):
        late = 9 if rank in {2, 5} else luck.uniform(0, 1.5)
        at = 1.0
        for number in range(12):
            end = at + 1.3
            lines.append(
                f"  rank {rank}: main {at:.2f}ms..{at + 0.3:.2f}ms aten::mm "
                f"-> stream 7 {at + 0.2:.2f}ms..{end:.2f}ms ampere_sgemm_{number % 3}"
            )
            at = end + 0.05 + late / 12
        lines.append(
            f"  rank {rank}: main op {at:.2f}ms..{at + 0.2:.2f}ms c10d::allreduce_ "
            f"-> stream 20 {at + 0.1:.2f}ms..33ms ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        )
    return "\n".join(lines) + "\n"


def pages(folder: Path) -> Mapping[str, Path]:
    """Return the pages that the pictures are of, by name."""
    slow = analyze_recordings(sketch(job()), views=True)
    mended = analyze_recordings(sketch(job(1)), views=True)
    texts = {
        "job": render(slow, Options(run="uncork-runs/train-1")),
        "memory": render(analyze_recordings(sketch(memory()), views=True), Options()),
        "ranks": render(analyze_recordings(sketch(ranks()), views=True), Options()),
        "compared": render_compared(mended, compare(slow, mended), Options()),
    }
    found = {}
    for name, text in texts.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(text, "utf-8")
    return found


def main() -> None:
    """Write every picture."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        found = pages(Path(folder))
        browser = driver.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        for name, page, theme, place in PICTURES:
            for lang in LANGUAGES:
                _draw(browser, found[page], (f"{name}.zh" if lang == "zh" else name, lang, theme, place))
        for recording in sorted(RECORDINGS.glob("*.json.gz")):
            page = Path(folder) / "real.html"
            page.write_text(render(analyze([recording], views=True), Options()), "utf-8")
            for lang in LANGUAGES:
                _sheet(browser, page, f"real-{recording.name.partition('.')[0]}", lang)
        browser.close()


def _sheet(browser: Browser, page: Path, name: str, lang: str) -> None:
    """Draw the first screen and every view of a page side by side."""
    context = browser.new_context(viewport={"width": TILE_WIDTH, "height": TILE_HEIGHT}, color_scheme="light")
    tab = context.new_page()
    wide, tall = int(TILE_WIDTH * SHOWN), int(TILE_HEIGHT * SHOWN)
    sheet = Image.new("RGB", (2 * wide + 8, 4 * (tall + 8) - 8), "#8a94a0")
    for number, view in enumerate(("", *VIEWS)):
        tab.goto("about:blank")
        tab.goto(f"file://{page}" + (f"#view={view}" if view else ""))
        tab.wait_for_selector("#panel > *:not(.loading)")
        if lang == "zh" and not number:  # the page remembers it
            tab.click("[data-act=language]")
            tab.mouse.move(0, 0)
        tab.wait_for_timeout(400)
        tab.evaluate("document.body.style.paddingBottom = '100vh'")
        if view:
            tab.evaluate("document.getElementById('views').scrollIntoView()")
            tab.wait_for_timeout(300)
        tile = Image.open(BytesIO(tab.screenshot())).convert("RGB").resize((wide, tall), Image.Resampling.LANCZOS)
        sheet.paste(tile, (number % 2 * (wide + 8), number // 2 * (tall + 8)))
    context.close()
    sheet.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(
        FOLDER / f"{name}{'.zh' if lang == 'zh' else ''}.png", optimize=True
    )


def _draw(browser: Browser, page: Path, picture: tuple[str, str, str, str]) -> None:
    name, lang, theme, place = picture
    target = FOLDER / f"{name}.png"
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme)
    tab = context.new_page()
    tab.goto(f"file://{page}" + (f"#{place}" if place else ""))
    tab.wait_for_selector("#panel > *:not(.loading)")
    if lang == "zh":
        tab.click("[data-act=language]")
        tab.mouse.move(0, 0)
    tab.wait_for_timeout(400)
    tab.evaluate(_SHOW.get(place.removeprefix("view="), "0"))
    tab.wait_for_timeout(600)
    views = tab.evaluate("document.getElementById('views').offsetTop")
    end = tab.evaluate(_END)
    top, bottom = (views, min(end + 14, views + HEIGHT)) if place else (0, views + 44)
    clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top}
    tab.screenshot(path=target, full_page=True, clip=clip)
    context.close()
    Image.open(target).convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(target, optimize=True)


if __name__ == "__main__":
    main()
