"""One catalogue of texts for Python and the page: ``en.json`` and ``zh.json`` hold the same keys."""

import functools
import json
import locale
import os
import re
from collections.abc import Mapping
from pathlib import Path

from uncork.units import format_quantities

LANGUAGES = ("en", "zh")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@functools.cache
def catalogue(lang: str) -> Mapping[str, str]:
    """Return all texts of a language by key."""
    texts: dict[str, str] = json.loads(Path(__file__).with_name(f"{lang}.json").read_text("utf-8"))
    return texts


def say(lang: str, key: str, params: Mapping[str, object] | None = None) -> str:
    """Return a text of the catalogue, its placeholders filled; a key that is not there comes back as it is.

    A parameter that maps keys of texts to counts is said as these texts.
    """
    between = "" if lang == "zh" else " "
    told = {
        name: between.join(say(lang, part, {"count": count}) for part, count in value.items())
        if isinstance(value, Mapping)
        else value
        for name, value in (params or {}).items()
    }
    return fill(catalogue(lang).get(key, key), told)


def fill(template: str, params: Mapping[str, object]) -> str:
    """Return a template with ``{name}`` replaced by its parameter, numbers spelt by the unit in the name.

    Braces that name no parameter stay as they are, so code snippets need no escapes. A parameter stays on its line: a
    name from a recording can add none to a text or to code.
    """
    texts = {name: " ".join(text.splitlines()) for name, text in format_quantities(params).items()}
    return _PLACEHOLDER.sub(lambda found: texts.get(found[1], found[0]), template)


def named(params: Mapping[str, object], lang: str) -> dict[str, object]:
    """Return parameters with those that name texts of the catalogue (``@key @key``) replaced by these texts."""
    joint = catalogue(lang)["list.joint"]
    return {
        name: joint.join(say(lang, key.removeprefix("@")) for key in value.split())
        if isinstance(value, str) and value.startswith("@")
        else value
        for name, value in params.items()
    }


def of_the_time(text: str, params: Mapping[str, object], lang: str) -> str:
    """Return a text that speaks of each step as one about all the time, where its parameters say `unmarked`.

    One phrase of each language says it in all sentences and titles, so none needs a second form.
    """
    if params.get("unmarked"):
        for phrase in catalogue(lang)["wording.each_step"].split("|"):
            text = text.replace(phrase, catalogue(lang)["wording.the_time"])
    return text


def default_language() -> str:
    """Return ``zh`` where the environment asks for Chinese, else ``en``."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    try:
        return "zh" if (locale.getlocale()[0] or "").lower().startswith(("zh", "chinese")) else "en"
    except ValueError:
        return "en"
