"""What saved memory is worth: bytes at the peak, how much larger a batch would fit, and the time that could give."""

from collections.abc import Mapping, Sequence

from uncork.locale import named, say
from uncork.measure.fixed_time import time_share
from uncork.measure.memory_what_if import Saving
from uncork.measure.snapshot_memory import SnapshotMemory

WORTH_A_LARGER_BATCH = 1.05
"""Less of a larger batch nobody would set."""
_MOST_NAMED = 3


def best_saving(memory: SnapshotMemory, *changes: str) -> Saving | None:
    """Return the saving of some changes whose range lies highest, None where none of them frees anything."""
    return best_of(memory.savings, *changes)


def best_of(savings: Sequence[Saving], *changes: str) -> Saving | None:
    """Return the same of savings given."""
    found = [one for one in savings if one.change in changes]
    return max(found, key=lambda one: one.low_bytes + one.high_bytes, default=None)


def worth(low_bytes: int, high_bytes: int, change: str = "") -> dict[str, object]:
    """Return the parameters of a finding that say how much memory would be saved; `spoken` makes a sentence of them.

    Args:
        low_bytes: At least.
        high_bytes: At most.
        change: What saves it, where that is not what the finding is about.
    """
    told: dict[str, object] = {"saved_low_bytes": low_bytes, "saved_bytes": high_bytes}
    return told | {"saving": f"@what_if.{change}"} if change else told


def worth_of(memory: SnapshotMemory, saving: Saving | None) -> dict[str, object]:
    """Return the same of a saving, and how much larger a batch would fit; nothing where there is none."""
    if saving is None:
        return {}
    told, times = worth(saving.low_bytes, saving.high_bytes, saving.change), saving.batch_ratio
    if times is None:
        return told | {"batch": "unknown"}
    told |= {"batch": "failed" if memory.oom else "device" if memory.capacity_bytes else "same", "batch_times": times}
    if not memory.oom and memory.batch_ratio is not None and times < WORTH_A_LARGER_BATCH * memory.batch_ratio:
        return told | {"batch": "as_now"}
    share = None if memory.oom else time_share(memory.fixed_share, times)
    return told if share is None else told | {"batch_time_share": share}


def enough(memory: SnapshotMemory) -> str:
    """Return the changes each of which alone would have let a failed request through, as keys of the catalogue."""
    failed = memory.oom
    found = [one.change for one in memory.savings if failed and failed.met_by(one)]
    found.sort(key=lambda change: (change != "expandable_segments", change.startswith("shard")))
    if failed is None or (failed.short_bytes is None and not found):
        return "@headroom.enough_limit" if failed and failed.limited else "@headroom.enough_unknown"
    return " ".join(f"@what_if.{change}" for change in found[:_MOST_NAMED]) or "@headroom.enough_none"


def spoken(params: Mapping[str, object], lang: str) -> str:
    """Return what saved memory is worth as a sentence, empty for findings that save none."""
    low, high, times = (params.get(name) for name in ("saved_low_bytes", "saved_bytes", "batch_times"))
    if not isinstance(low, int) or not isinstance(high, int) or not high:
        return ""
    key = "frees_one" if low == high else "frees" if low else "frees_most"
    params = named(params, lang)
    frees = say(lang, f"headroom.{key}", params)
    parts = [say(lang, "headroom.by", {"saving": params["saving"], "frees": frees}) if "saving" in params else frees]
    if params.get("batch") == "unknown":
        parts.append(say(lang, "headroom.batch_unknown"))
    elif isinstance(times, (int, float)) and (params.get("batch") == "failed" or times >= WORTH_A_LARGER_BATCH):
        parts.append(say(lang, f"headroom.batch_{params.get('batch')}", params))
        if params.get("batch") not in ("failed", "as_now"):
            timed = "batch_time_share" in params
            parts.append(say(lang, "headroom.time" if timed else "headroom.time_unknown", params))
    return say(lang, "list.joint").join(parts)
