"""A hook of mkdocs: the rules' pages, in both languages, and an index of them; written nowhere but into the site."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

RULES = Path(__file__).parent.parent / "src" / "uncork" / "rules"
HEAD = re.compile(r"\A---\nname: (.+)\n(?:.+\n)*?---\n")
INTRODUCTION = {"": "# Rules\n\nWhat uncork looks for.\n", ".zh": "# 规则\n\nuncork 会查找的原因。\n"}


def on_files(files: Files, config: Any) -> Files:  # noqa: ANN401 - mkdocs' own type is a mapping of anything
    """Return the site's files with the rules' pages added."""
    for language, introduction in INTRODUCTION.items():
        index = [introduction]
        for folder in sorted(path for path in RULES.iterdir() if path.is_dir()):
            pages = [page for page in sorted(folder.glob("*.md")) if page.name.endswith(".zh.md") == bool(language)]
            index += [f"\n## {folder.name.replace('_', ' ')}\n\n"] if pages else []
            for page in pages:
                text = page.read_text("utf-8")
                head = HEAD.match(text)
                name = head[1] if head else page.stem
                index.append(f"- [{name}]({page.name})\n")
                files.append(File.generated(config, f"rules/{page.name}", content=f"# {name}\n{HEAD.sub('', text)}"))
        files.append(File.generated(config, f"rules/index{language}.md", content="".join(index)))
    return files
