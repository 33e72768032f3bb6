"""What a finding says has no holes: every placeholder of its page is filled, every metric and lack has a text."""

import re

import pytest

from tests.unit.rule_outcomes import outcome
from uncork.findings import NotAssessed
from uncork.locale import LANGUAGES, catalogue
from uncork.rules import rules
from uncork.rules.page import page
from uncork.testing import examples, page_of, sketch

CLASSES = ("data_loading", "framework", "hygiene")
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@pytest.mark.parametrize("rule_id", [one.id for one in rules().values() if one.folder.name in CLASSES])
def test_a_page_is_filled_by_its_own_examples(rule_id: str):
    """The findings of a page's examples fill its texts, and the catalogue knows their evidence, in both languages."""
    one = rules()[rule_id]
    for example in examples(page_of(rule_id).read_text("utf-8")):
        result = outcome(rule_id, sketch(example.sketch))
        for lang in LANGUAGES:
            texts, manual = catalogue(lang), page(one.folder, rule_id, lang)
            if isinstance(result, NotAssessed):
                assert {f"{kind}.{what}" for kind in ("missing", "record") for what in result.missing} <= set(texts)
                continue
            for finding in result:
                advice = [manual.advice[name] for name in finding.advice or manual.advice]
                said = [manual.title, manual.because, *(text for item in advice for text in (item.text, item.snippet))]
                holes = {hole for text in said for hole in PLACEHOLDER.findall(text)} - {"recording", *finding.params}
                assert not holes, (lang, holes)
                assert {f"metric.{item.metric}" for item in finding.evidence} <= set(texts)
