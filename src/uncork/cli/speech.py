"""The parser that speaks the reader's language: helps and complaints, argparse's own included."""

from __future__ import annotations

import argparse
import re
import unicodedata
from typing import TYPE_CHECKING, Any, NoReturn

from uncork.errors import UsageError
from uncork.locale import LANGUAGES, catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Told = Callable[[str], str]
    Verbs = argparse._SubParsersAction["Parser"]  # noqa: SLF001 - argparse gives its type no public name

# What a line may end after: a wide character or a Latin word, each with the brackets and stops that belong to it.
_PIECE = re.compile(r"[（《“]*(?:[^\x00-\u2e7f（《“]|[^\s\u2e80-\uffff“]+)[，。、；：）》”？！…]*")


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line that says what to type next."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(**options, formatter_class=Layout, allow_abbrev=False)

    def parse_known_args(self, *words: Any) -> tuple[Any, list[str]]:  # type: ignore[override]  # noqa: ANN401
        """Return what was given; what is not known is refused by the verb, whose help is then the one to read."""
        given, unknown = super().parse_known_args(*words)
        if unknown:
            self.error(argparse._("unrecognized arguments: %s") % " ".join(unknown))  # type: ignore[attr-defined]
        return given, unknown

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:  # noqa: ANN401 - argparse's own
        """Return a word as its option takes it; an empty one, as of a variable that is not set, would mean "here"."""
        if arg_string == "" != action.default and action.nargs not in (argparse.REMAINDER, argparse.PARSER):
            name = "/".join(action.option_strings) or action.metavar
            raise UsageError("empty_word", name=name)
        return super()._get_value(action, arg_string)

    def error(self, message: str) -> NoReturn:
        """Refuse the words of the command."""
        raise UsageError("usage", problem=message, prog=self.prog)


class Layout(argparse.HelpFormatter):
    """Lays a help out by the columns that a terminal gives its characters; lines that are ended stay so."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return list(wrapped(text, width))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for part in text.splitlines() for line in wrapped(part, width - len(indent)))

    def _format_usage(self, *parts: Any) -> str:  # noqa: ANN401 - argparse's own
        prefix = argparse._("usage: ")  # type: ignore[attr-defined]  # set by `speak`
        wider = columns(prefix) - len(prefix)
        self._width -= wider
        usage = super()._format_usage(*parts)
        self._width += wider
        return re.sub("\n(?=.)", "\n" + " " * wider, usage)

    def format_help(self) -> str:
        """Return the help; a Chinese heading ends in a Chinese colon, which argparse has no word for."""
        return re.sub(r"(?m)^([^\x00-\x7f]+):$", r"\1：", super().format_help())


def columns(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return len(text) + sum(unicodedata.east_asian_width(one) in "WF" for one in text)


def wrapped(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a text, none wider than so many columns; Chinese may end a line after any character."""
    if columns(text) <= width:
        yield text
        return
    line = ""
    end = 0
    for piece in _PIECE.finditer(text):
        between = text[end : piece.start()]
        if line and columns(line + between + piece[0]) > width:
            yield line
            line = piece[0]
        else:
            line += between + piece[0]
        end = piece.end()
    yield line


def speak(lang: str) -> Told:
    """Return what looks up the texts of a help, and let argparse say its own in the same language."""
    english, told = catalogue("en"), catalogue(lang)
    own = {text: told[key] for key, text in english.items() if key.startswith("argparse.")}
    # argparse asks gettext by this name, which would want a second catalogue of its own.
    argparse._ = lambda text: own.get(text, text)  # type: ignore[attr-defined]
    return told.__getitem__


def asked_language(words: Sequence[str], known: Parser) -> str | None:
    """Return the language that a command asks for, told before it is parsed: its helps and complaints speak it too.

    Args:
        words: The command's. Those after ``run``'s program are the program's own.
        known: The parser, which knows what options take a value.
    """
    options = _options(known)
    asked, verb, rest = None, "", iter(words)
    for word in rest:
        name, _, value = word.partition("=")
        if word == "--" or (verb == "run" and not word.startswith("-")):
            break
        if name in options and options[name].nargs != 0:
            value = value or next(rest, "")
        elif not word.startswith("-"):
            verb = verb or word
        if name == "--lang" and value in LANGUAGES:
            asked = value
    return asked


def _options(known: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the options of a parser and its verbs by their names."""
    options: dict[str, argparse.Action] = {}
    for action in known._actions:  # noqa: SLF001 - argparse tells no other way what it takes
        options |= dict.fromkeys(action.option_strings, action)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            for below in action.choices.values():
                options |= _options(below)
    return options
