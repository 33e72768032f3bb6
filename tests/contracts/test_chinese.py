"""Chinese texts keep Chinese punctuation: full-width after characters, a space beside Latin letters and digits."""

import re
from pathlib import Path

import pytest

from uncork.cli import main
from uncork.locale import catalogue

ROOT = Path(__file__).parents[2]
HAN = "\u4e00-\u9fff"
HALF_WIDTH = re.compile(rf"[{HAN}][,;:?!]|[{HAN}] ?\(|\)[{HAN}]|[{HAN}]\.(?![\w*])")
NO_SPACE = re.compile(rf"[{HAN}][A-Za-z0-9]|[A-Za-z0-9%][{HAN}]")
PLACES = ("src/uncork/rules/*/*.zh.md", "docs/**/*.zh.md", "*.zh.md", "examples/*.zh.md")
PAGES = sorted(path for place in PLACES for path in ROOT.glob(place))


def faults(text: str) -> list[str]:
    """Return the places where a Chinese text has Latin punctuation or lacks a space; code is left out."""
    prose = re.sub(r"`[^`\n]*`", "`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    found = [*HALF_WIDTH.finditer(prose), *NO_SPACE.finditer(prose)]
    return [prose[max(0, one.start() - 8) : one.end() + 8] for one in found]


OTHER_WORDS = re.compile(
    "剖析器|性能分析器|跟踪文件|轨迹|到得晚|晚到|加载进程|批大小|账目|下发|这份录制|录制文件|录制里|请(重新)?记录(?!的)"
)
"""For a thing that has its word in CONTRIBUTING.md."""


def test_faults_are_seen():
    """The check can fail: half-width commas and brackets, letters stuck to characters; code and figures pass."""
    assert len(faults("缺少,形状")) == 1
    assert len(faults("形状 (必需)")) == 1
    assert len(faults("用bf16计算")) == 2
    assert faults("3 步，中位数 71.4 ms（共 20 %）：见 `model(x)`") == []


def test_the_catalogue_is_punctuated_as_chinese():
    """Every text that the program and the page say."""
    assert {key: wrong for key, text in catalogue("zh").items() if (wrong := faults(text))} == {}


def test_a_thing_has_one_word():
    """In the catalogue, on rules' pages, in guides; the check can fail."""
    texts = {**catalogue("zh"), **{path.name: path.read_text("utf-8") for path in PAGES}}
    assert {key: found[0] for key, text in texts.items() if (found := OTHER_WORDS.search(text))} == {}
    assert OTHER_WORDS.search("请记录形状")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_is_punctuated_as_chinese(path: Path):
    """Rules' pages, guides and the README."""
    assert faults(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("lang", "labels"),
    [("zh", ("- 工作量：", "- 注意：", "- 验证：")), ("en", ("- Effort: ", "- Beware: ", "- Check: "))],
)
def test_a_manual_page_names_its_points_in_its_language(lang, labels, capsys):
    """``effort``, ``risk`` and ``check`` are names for programs; people read words."""
    assert main(["explain", "late-rank", "--lang", lang]) == 0
    page = capsys.readouterr().out
    assert all(label in page for label in labels)
    assert not re.search(r"^- (effort|risk|check): ", page, re.MULTILINE)
