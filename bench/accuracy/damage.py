"""What damage does to a verdict: every labelled recording, broken in the ways in which recordings break.

    python bench/accuracy/damage.py --labels ../shared/corpus/labels.json             # the table
    python bench/accuracy/damage.py --labels labels.json --only W01 --damages half    # some cases, some damages
    python bench/accuracy/damage.py --labels labels.json --at-most 0.02               # a gate

A damaged recording may be answered right or declined. Worst is to be confidently wrong: confidence 0.8 or more in a
class that the label does not allow, or in another class than the whole recording's.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import damages
from damages import DAMAGES, Damage
from vary import Label, cases

from uncork import pipeline
from uncork.findings import Verdict
from uncork.recording import Recording

SURE = 0.8
"""Confidence from here on is a promise (`run.py`)."""
KINDS = ("right", "declined", "unsure", "flipped", "wrong")
"""``unsure``: wrong below `SURE`; ``flipped``: allowed, but another sure class than the whole recording's."""


@dataclass(frozen=True)
class Answer:
    """What became of one damaged case.

    Args:
        case: Its name.
        damage: What was done to it.
        kind: One of `KINDS`.
        text: The verdict in a few words.
    """

    case: str
    damage: str
    kind: str
    text: str


def answer(case: str, label: Label, whole: Verdict, damage: str, found: Verdict) -> Answer:
    """Return how a verdict on a damaged recording compares with its label and with the whole recording's verdict."""
    main, sure = found.bottleneck.value, found.confidence >= SURE
    if main == "undetermined":
        kind = "declined"
    elif main not in label["accept"]:
        kind = "wrong" if sure else "unsure"
    elif sure and whole.confidence >= SURE and whole.bottleneck.value not in (main, "undetermined"):
        kind = "flipped"
    else:
        kind = "right"
    return Answer(
        case, damage, kind, f"{whole.bottleneck.value} {whole.confidence:.2f} → {main} {found.confidence:.2f}"
    )


def answers(case: str, label: Label, recordings: list[Recording], damages: Mapping[str, Damage]) -> Iterator[Answer]:
    """Yield what becomes of a case under each damage that applies to it; nothing of one without events."""
    if not all(one.events is not None and len(one.events) for one in recordings):
        return
    whole = pipeline.analyze_recordings(recordings).verdict
    for name, damage in damages.items():
        broken = damage(recordings)
        if broken:
            yield answer(case, label, whole, name, pipeline.analyze_recordings(broken).verdict)


def table(found: Sequence[Answer]) -> Iterator[str]:
    """Yield the table: damage by damage how many cases were answered how."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(KINDS, 0))
    for one in found:
        counts[one.damage][one.kind] += 1
        counts["all"][one.kind] += 1
    yield f"| damage | cases | {' | '.join(KINDS)} |\n|---|---{'|---' * len(KINDS)}|"
    for damage, kinds in sorted(counts.items(), key=lambda item: item[0] == "all"):
        yield f"| {damage} | {sum(kinds.values())} | {' | '.join(str(kinds[kind] or '') for kind in KINDS)} |"


def main() -> int:
    """Return 0 when the share of confidently wrong answers is within the limit, else 1."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--labels", type=Path, required=True)
    arguments.add_argument("--only", nargs="*", default=[""], help="cases, or beginnings of their names")
    arguments.add_argument("--damages", nargs="*", default=[""], help="damages, or beginnings of their names")
    arguments.add_argument("--at-most", type=float, default=1.0, help="share that may be confidently wrong")
    arguments.add_argument("--seed", type=int, default=damages.SEED, help="of what is lost at random")
    chosen = arguments.parse_args()
    damages.SEED = chosen.seed
    labels = json.loads(chosen.labels.read_text("utf-8"))
    labels = {case: label for case, label in labels.items() if case.startswith(tuple(chosen.only))}
    done = {name: damage for name, damage in DAMAGES.items() if name.startswith(tuple(chosen.damages))}
    found: list[Answer] = []
    for case, label, recordings in cases(labels, chosen.labels.parent):
        for one in answers(case, label, recordings, done):
            found.append(one)
            if one.kind in ("unsure", "flipped", "wrong"):
                print(f"{one.kind:8} {one.case} {one.damage:22} {one.text}", flush=True)
    print()
    for line in table(found):
        print(line)
    bad = sum(one.kind in ("wrong", "flipped") for one in found) / max(len(found), 1)
    print(f"\nconfidently wrong, or another class: {bad:.1%} of {len(found)}")
    return int(bad > chosen.at_most)


if __name__ == "__main__":
    sys.exit(main())
