"""Pack: compress the traces of a run once nobody waits for the program."""

import json
import re
from pathlib import Path
from typing import Any

from isal import igzip

from uncork.capture.lost_names import put_back

NAMES = ("light.trace.json", "deep.trace.json")
NO_STEP = b'"uncork: between steps"'
"""Takes the place of a step mark that turned out to be none."""


def pack(folder: Path, only: list[int] | None = None) -> None:
    """Compress the traces that the program's processes left, struck steps' names taken out and lost names put in."""
    for home in folder.glob("rank[0-9]*"):
        if only is not None and int(home.name[4:]) not in only:
            continue
        for name in NAMES:
            plain = home / name
            if plain.is_file():
                _pack_one(plain, home / f"{name}.gz", home / name.split(".")[0])


def _pack_one(plain: Path, packed: Path, window: Path) -> None:
    struck, lost = window.with_suffix(".struck.json"), window.with_suffix(".names.json")
    text = plain.read_bytes()
    if struck.is_file():
        for name in json.loads(struck.read_text(encoding="utf-8")):
            wanted = re.escape(str(name).encode())
            text = re.sub(b'"' + wanted + b'"', NO_STEP, text)
        struck.unlink()
    if lost.is_file():
        text = put_back(text, json.loads(lost.read_text(encoding="utf-8")))
        lost.unlink()
    part = packed.with_name(f".{packed.name}")
    opened: Any = igzip.open  # isal carries no types
    with opened(part, "wb", compresslevel=1) as file:
        file.write(text)
    part.replace(packed)
    plain.unlink()
