"""Every finding on every labelled recording: bounded, placed, with advice that fits the machine and can be copied."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from uncork.errors import UncorkError
from uncork.pipeline import analyze
from uncork.report import to_json

FOR_DEVICES = re.compile(r"cuda|pin_memory|non_blocking", re.IGNORECASE)
FOR_RANKS = re.compile(r"DistributedDataParallel|no_sync|DistributedSampler")


def silly(finding: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an experienced person would not sign of a finding."""
    gain, share = finding["gain"], finding["share"]
    if not 0 <= gain["low"] <= gain["high"] <= 1 + 1e-9:
        yield f"gains {gain}"
    if finding["cost_ns_per_step"] and gain["high"] > share + 1e-6:
        yield f"gains {gain['high']:.2f} of a share of {share:.2f}"
    if re.search(r"(^|/)torch/", finding["location"].get("file") or ""):
        yield f"blames PyTorch's own {finding['location']['file']}"
    texts = [finding["title"], finding["because"], *(one["text"] for one in finding["advice"])]
    yield from (f"holes in: {text}" for text in texts if re.search(r"\{[a-z_]+\}", text))
    if not finding["advice"]:
        yield "advises nothing"
    for one in finding["advice"]:
        if not one["snippet"]:
            yield f"nothing to copy for: {one['text']}"
        # A snapshot is of a CUDA device, though it does not say which.
        if not run["devices"] and run["steps"] and FOR_DEVICES.search(one["snippet"]):
            yield f"a device, where none is: {one['snippet']}"
        if (run["world_size"] or 1) < 2 and not run["devices"] and FOR_RANKS.search(one["snippet"]):
            yield f"ranks, where one is: {one['snippet']}"


@pytest.mark.slow
def test_no_finding_is_silly(shared: Path):
    """Gains within the share they come from, places of the user's, advice for this machine, nothing said twice."""
    root = shared / "corpus"
    wrong: dict[str, list[str]] = {}
    looked_at = 0
    for case, label in json.loads((root / "labels.json").read_text("utf-8")).items():
        try:
            report = to_json(analyze([root / file for file in label["files"]]))
        except UncorkError:
            continue
        said: dict[str, str] = {}
        for finding in report["findings"]:
            looked_at += 1
            found = [f"{finding['rule']}: {fault}" for fault in silly(finding, report["run"])]
            for one in finding["advice"]:
                first = said.setdefault(one["text"], finding["rule"])
                if first != finding["rule"]:
                    found.append(f"{finding['rule']} repeats {first}: {one['text']}")
            if found:
                wrong.setdefault(case, []).extend(found)
    assert looked_at > 100
    assert not wrong
