"""Every rule keeps its page's promise: what the page shows found, clear and not assessed is so."""

import pytest

from uncork.rules import rules
from uncork.testing import check_page
from uncork.testing.pages import PageError

PAGE = """## Examples

### found

```sketch
{found}
```

### clear

```sketch
device Tesla T4
steps 4 x 10ms
  main 0ms..0.5ms aten::mm -> stream 7 0.4ms..9.9ms gemm
```

### not assessed

```sketch
device Tesla T4
stream 7 0ms..1ms gemm
```
"""


@pytest.mark.parametrize("rule_id", list(rules()))
def test_the_page_keeps_its_promise(rule_id: str):
    """Each example, run through the whole pipeline, has the outcome it stands under."""
    check_page(rule_id)


def test_a_page_that_promises_too_much_is_caught():
    """A busy device shown as starved fails; so does a page without examples: the check can fail."""
    busy = "device Tesla T4\nsteps 4 x 10ms\n  main 0ms..0.5ms aten::mm -> stream 7 0.4ms..9.9ms gemm"
    with pytest.raises(PageError, match="should be found, but is"):
        check_page("starved", PAGE.format(found=busy))
    with pytest.raises(PageError, match="no example of: found, clear, not assessed"):
        check_page("starved", "## Examples\n")
