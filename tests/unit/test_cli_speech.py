"""The command line speaks the reader's language: helps, complaints, argparse's own words; laid out by columns."""

import re
from pathlib import Path

import pytest

from uncork import cli
from uncork.cli import VERBS, main, parser
from uncork.cli.speech import asked_language, columns, wrapped
from uncork.locale import catalogue

WORD = re.compile("[a-z]{3,} [a-z]{3,}")


def help_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what a command prints that asks for help."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_a_help_in_chinese_has_no_english_sentence(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, options and commands stay; two English words in a row are found nowhere else, and no line is too long."""
    monkeypatch.setenv("COLUMNS", "80")
    told = help_of(capsys, *verb.split(), "--help", "--lang", "zh")
    assert told.startswith("用法：uncork")
    commands = re.compile(r"`[^`]*`|uncork [a-z]+")
    assert WORD.findall(commands.sub("", told)) == []
    assert [line for line in told.splitlines() if columns(line) > 80] == []
    assert [line for line in told.splitlines() if line.strip()[:1] in set("，。、；：）")] == []


@pytest.mark.parametrize("words", [["--lang", "zh", "open", "-h"], ["open", "-h", "--lang=zh"], ["open", "-h"]])
def test_a_help_follows_the_option_wherever_it_stands_and_the_locale(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the verb, after the very option that ends the command, or not at all under a Chinese locale."""
    monkeypatch.setenv("LC_ALL", "C" if len(words) > 2 else "zh_CN.UTF-8")
    assert "在浏览器中显示运行文件夹或任何记录的 HTML 报告。" in help_of(capsys, *words)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert "Show the HTML report of a run folder" in help_of(capsys, "open", "-h", "--lang", "en")


@pytest.mark.parametrize(
    ("words", "english", "chinese"),
    [
        (["compare", "a"], "the following arguments are required: AFTER. See: uncork compare --help",
         "缺少参数：AFTER。请看：uncork compare --help"),
        (["analyze", "a", "--frob"], "unrecognized arguments: --frob. See: uncork analyze --help",
         "不认识的参数：--frob。请看：uncork analyze --help"),
        (["analyze", "--json"], "argument --json: expected one argument. See: uncork analyze --help",
         "需要一个值。请看：uncork analyze --help"),
        (["analyze"], "the following arguments are required: PATH. See: uncork analyze --help",
         "缺少参数：PATH。请看：uncork analyze --help"),
        (["analyze", "a", "--rank", "x"], "argument --rank: invalid int value: 'x'. See: uncork analyze --help",
         "'x' 不是有效的 int 值。请看：uncork analyze --help"),
        (["analyze", "a", "--top", "0"], "'0' is no number of rows. Give 1 or more.",
         "“0”不是行数。请给出 1 或更大的数。"),
        (["run", "--skip", "-1", "a.py"], "'-1' is no number of steps. Give 0 or more.",
         "“-1”不是步数。请给出 0 或更大的数。"),
    ],
)  # fmt: skip
def test_complaints_are_one_line_in_the_readers_language(
    words: list[str], english: str, chinese: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong, and what to type next; argparse's own sentences too."""
    for lang, line in (("en", english), ("zh", chinese)):
        assert main(["--lang", lang, *words]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("uncork: ")
        assert err.endswith(f"{line}\n")  # Python 3.10 says "argument --rank:" before it in English
        assert len(err.splitlines()) == 1


def test_a_choice_that_is_none_is_told_in_chinese(capsys: pytest.CaptureFixture[str]) -> None:
    """The verbs there are follow; Python's versions quote them differently."""
    assert main(["runn", "--lang", "zh"]) == 2
    assert "'runn' 不在可选值之中（可选：" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("run --lang zh train.py", "zh"),
        ("run train.py --lang zh", None),
        ("run --steps 5 --lang zh train.py --lang en", "zh"),
        ("run -m package.train --lang zh", None),
        ("run -o train.py --lang zh x.py", "zh"),
        ("run -- --lang zh", None),
        ("--lang zh run train.py --lang en", "zh"),
        ("--lang=en analyze a --lang zh b", "zh"),
        ("analyze a --json --lang zh", None),
        ("analyze a --lang fr", None),
        ("", None),
    ],
)
def test_the_language_is_known_before_the_rest(typed: str, asked: str | None) -> None:
    """What follows ``run``'s program is the program's; the last one asked for counts; a value is no option."""
    assert asked_language(typed.split(), parser()) == asked


def test_lines_are_as_wide_as_a_terminal_shows_them() -> None:
    """Chinese takes two columns a character, ends a line anywhere but before a stop or after an opening bracket."""
    assert columns("a用法：") == 7
    assert list(wrapped("一二三，四（五）", 8)) == ["一二三，", "四（五）"]
    assert list(wrapped("一二三四，五", 8)) == ["一二三", "四，五"]
    assert list(wrapped("一二 abcd 三", 8)) == ["一二", "abcd 三"]
    assert list(wrapped("as before", 20)) == ["as before"]
    assert list(wrapped("one two three", 7)) == ["one two", "three"]


def test_every_text_of_a_help_is_used() -> None:
    """A text that no option asks for was forgotten when the option went."""
    source = "".join(path.read_text("utf-8") for path in Path(cli.__file__).parent.glob("*.py"))
    assert [key for key in catalogue("en") if key.startswith("help.") and f'"{key}"' not in source] == []


def test_argparse_words_keep_their_placeholders() -> None:
    """A ``%(value)r`` that a translation loses, or invents, would end a complaint in a fault."""
    english, chinese = catalogue("en"), catalogue("zh")
    own = [key for key in english if key.startswith("argparse.")]
    assert len(own) > 8
    for key in own:
        assert sorted(re.findall(r"%(?:\(\w+\))?\w", english[key])) == sorted(
            re.findall(r"%(?:\(\w+\))?\w", chinese[key])
        ), key
        assert english[key] != chinese[key], key
