"""Programs that the labelled recordings lack (``programs.md``): the class that a person would name, in any words.

Each is analysed as it stands, at other speeds, in AMD's vocabulary, and without step marks.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from uncork.findings import Verdict
from uncork.pipeline import analyze_recordings
from uncork.testing import sketch

_PROGRAM = re.compile(r"^## (\w+)(?: late ([\d ]+))?: ([^\n]+)\n\n```sketch\n(.*?)```", re.MULTILINE | re.DOTALL)
PROGRAMS = {
    title: (bottleneck, tuple(map(int, late.split())), text)
    for bottleneck, late, title, text in _PROGRAM.findall(Path(__file__).with_name("programs.md").read_text("utf-8"))
}
_HIP = (
    ("NVIDIA A100-SXM4-80GB", "AMD Instinct MI300X"),
    (r"\bcuda([A-Z])", r"hip\1"),
    (r"ampere_\w*gemm|sm80_xmma_gemm_bf16", "Cijk_Ailk_Bljk_SB_MT64x64x16_MI16x16x4x1"),
    (r"cudnn\w*|cudnn::\w+", "igemm_fwd_gtcx35_nhwc_fp16"),
    (r"ncclDevKernel_\w+", "ncclDevKernel_Generic_4"),
)


def scaled(factor: float) -> Callable[[str], str]:
    """Return a change that makes everything in a sketch slower."""
    return lambda text: re.sub(
        r"\b(\d+(?:\.\d+)?)(ms|us)\b", lambda found: f"{round(float(found[1]) * factor, 6)}{found[2]}", text
    )


def in_words_of_hip(text: str) -> str:
    """Return a sketch as an AMD device would be recorded."""
    for pattern, other in _HIP:
        text = re.sub(pattern, other, text)
    return text


def unmarked(text: str) -> str:
    """Return a sketch without step marks."""
    return re.sub(r"^(steps \d+ x \S+)$", r"\1 unmarked", text, flags=re.MULTILINE)


def verdict(text: str) -> Verdict:
    """Return the verdict on a sketch, the whole way."""
    return analyze_recordings(sketch(text)).verdict


@pytest.mark.parametrize("title", PROGRAMS)
def test_a_program_is_named_as_a_person_would(title: str) -> None:
    """The class, and the ranks that others wait for."""
    bottleneck, late, text = PROGRAMS[title]
    found = verdict(text)
    assert (found.bottleneck.value, found.late_ranks) == (bottleneck, late), found.summary


@pytest.mark.parametrize("change", [scaled(3), scaled(0.4), in_words_of_hip], ids=["slower", "faster", "hip"])
def test_neither_speed_nor_vendor_changes_the_answer(change: Callable[[str], str]) -> None:
    """Three times as slow, more than twice as fast, or in another vendor's words: the same class and late ranks."""
    wrong = []
    for title, (bottleneck, late, text) in PROGRAMS.items():
        if (other := change(text)) != text:
            found = verdict(other)
            if (found.bottleneck.value, found.late_ranks) != (bottleneck, late):
                wrong.append((title, found.bottleneck.value, found.late_ranks))
    assert wrong == []


def test_without_step_marks_it_is_the_same_or_nothing() -> None:
    """A window as one step: the same class, or too few records to say."""
    wrong = []
    for title, (bottleneck, _, text) in PROGRAMS.items():
        found = verdict(unmarked(text)).bottleneck.value
        if found not in (bottleneck, "undetermined"):
            wrong.append((title, found))
    assert wrong == []


def test_there_are_programs_of_every_class() -> None:
    """The page is read whole: dozens of programs, several of each class."""
    classes = [bottleneck for bottleneck, _, _ in PROGRAMS.values()]
    assert len(classes) > 50
    assert min(classes.count(one) for one in set(classes)) >= 6


THIN = """
    device NVIDIA A100-SXM4-80GB
    with shapes
    steps 5 x 10ms
      main 0ms..0.02ms x50 every 0.2ms aten::mm SHAPES -> stream 7 0.03ms..0.22ms ampere_bf16_s16816gemm_bf16_64x64
"""


@pytest.mark.parametrize(("rows", "expected"), [(8, "memory"), (4096, "compute")])
def test_products_that_only_read_their_weights_are_bound_by_memory(rows: int, expected: str) -> None:
    """Eight rows by 12288 x 12288 bf16 weights are 302 MB in 190 us, 1.6 of the A100's 2.0 TB/s; 4096 rows compute."""
    types = '"Input type": ["c10::BFloat16", "c10::BFloat16"]'
    shapes = f'{{"Input Dims": [[{rows}, 12288], [12288, 12288]], {types}}}'
    assert verdict(THIN.replace("SHAPES", shapes)).bottleneck.value == expected
