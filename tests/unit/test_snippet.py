"""Code to paste stays code where a terminal is narrow."""

import ast
import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from uncork.locale import LANGUAGES
from uncork.render.snippet import Snippet
from uncork.rules import rules
from uncork.rules.page import page


def printed(code: str, width: int) -> str:
    """Return a snippet as a terminal shows it."""
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(Snippet(code, "green"))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def meaning(code: str) -> str | None:
    """Return what Python understands; None for a shell's line or a piece of a program."""
    try:
        return ast.dump(ast.parse(code))
    except SyntaxError:
        return None


def test_a_call_breaks_between_its_arguments():
    """50 columns hold three of four arguments; the rest stands one indent further."""
    code = "loader = DataLoader(dataset, batch_size=16, num_workers=2)"
    assert printed(code, 50).splitlines() == ["loader = DataLoader(dataset, batch_size=16,", "    num_workers=2)"]


def test_a_remark_goes_above_and_stays_one():
    """Half a remark on a line of its own would be a syntax error."""
    assert printed("    x = f(x)  # as long as the sizes are all the same", 30).splitlines() == [
        "    # as long as the sizes are",
        "    # all the same",
        "    x = f(x)",
    ]


def test_outside_of_brackets_a_backslash_joins_the_lines():
    """Python and shells read on after it; a blank within quotes, or in a shell's ``$(…)``, is no place to cut."""
    assert printed("from a.long.package import something", 28).splitlines() == [
        "from a.long.package import \\",
        "    something",
    ]
    assert printed('run --json - | python -c "import json, sys"', 36).splitlines() == [
        "run --json - | python -c \\",
        '    "import json, sys"',
    ]
    assert printed("X=$(find here) python train.py --epochs 1", 30).splitlines()[0] == "X=$(find here) python \\"


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("width", [58, 77])
def test_every_pages_code_means_the_same_in_any_terminal(width: int, lang: str):
    """The room that 80 and 100 columns leave beside a finding: each statement of each page is still the same one."""
    looked = 0
    for rule in rules().values():
        for advice in page(rule.folder, rule.id, lang).advice.values():
            code = advice.snippet.replace("{", "").replace("}", "")
            shown = printed(code, width)
            assert max((cell_len(line) for line in shown.splitlines()), default=0) <= width, rule.id
            if (meant := meaning(code)) is not None:
                looked += 1
                assert meaning(shown) == meant, f"{rule.id} {advice.id}\n{shown}"
    assert looked > 100
