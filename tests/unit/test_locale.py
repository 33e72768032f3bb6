"""The catalogue: texts by key, placeholders, the language of the environment."""

import pytest

from uncork import locale


def test_placeholders_are_filled_and_numbers_spelt():
    """The unit in the parameter's name decides how it is spelt."""
    assert locale.fill("{wait_ns} of {step_ns} in {name}", {"wait_ns": 1500, "step_ns": 2e6, "name": "fit"}) == (
        "1.50 µs of 2.00 ms in fit"
    )


def test_braces_that_name_no_parameter_stay():
    """Code in advice needs no escapes."""
    assert locale.fill("model.to({device}) # {a: 1}", {"x": 1}) == "model.to({device}) # {a: 1}"


def test_a_value_is_not_searched_for_placeholders_of_its_own():
    """A function called ``{b}`` in a hostile recording stays a name."""
    assert locale.fill("{a} {b}", {"a": "{b}", "b": "x"}) == "{b} x"


def test_a_key_that_is_not_there_comes_back():
    """A missing text is visible, not an error."""
    assert locale.say("en", "no.such.key") == "no.such.key"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "en_US.UTF-8"}, "en"),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_MESSAGES": "zh_TW", "LANG": "de_DE"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
    ],
)
def test_the_environment_chooses_the_language(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str
):
    """The order is the POSIX one: LC_ALL, LC_MESSAGES, LANG; any language but Chinese reads English."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert locale.default_language() == expected
