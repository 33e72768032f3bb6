"""Check that every link between the repository's own pages leads somewhere: ``python docs/check_links.py``."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def pages() -> list[Path]:
    """Return the Markdown pages at the root, in docs and of the rules."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/uncork/rules/*/*.md")])


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the forges make them."""
    headings = HEADING.findall(page.read_text("utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken() -> Iterator[str]:
    """Yield each link that leads nowhere."""
    for page in pages():
        text = re.sub(r"^(`{3,}).*?^\1", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for found in LINK.finditer(text):
            target, _, anchor = (found[1] or found[2]).partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            path = (page.parent / target).resolve() if target else page
            if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
                yield f"{page.relative_to(ROOT)}: {found[0]}"


if __name__ == "__main__":
    faults = list(broken())
    sys.stdout.write("".join(f"{fault}\n" for fault in faults) or f"links of {len(pages())} pages lead somewhere\n")
    sys.exit(bool(faults))
