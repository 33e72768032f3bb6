"""What saved memory is worth: bytes at the peak, how much larger a batch would fit, and the time that could give."""

from collections.abc import Mapping

from uncork.locale import say
from uncork.measure.memory_what_if import Saving
from uncork.measure.snapshot_memory import SnapshotMemory

WORTH_A_LARGER_BATCH = 1.05
"""Less of a larger batch nobody would set."""
_MOST_NAMED = 3


def best_saving(memory: SnapshotMemory, *changes: str) -> Saving | None:
    """Return the saving of some changes whose range lies highest, None where none of them frees anything."""
    found = [one for one in memory.savings if one.change in changes]
    return max(found, key=lambda one: one.low_bytes + one.high_bytes, default=None)


def worth(low_bytes: int, high_bytes: int) -> dict[str, object]:
    """Return the parameters of a finding that say how much memory would be saved; `spoken` makes a sentence of them."""
    return {"saved_low_bytes": low_bytes, "saved_bytes": high_bytes}


def worth_of(memory: SnapshotMemory, saving: Saving | None) -> dict[str, object]:
    """Return the same of a saving, and how much larger a batch would fit; nothing where there is none."""
    if saving is None:
        return {}
    told, times = worth(saving.low_bytes, saving.high_bytes), saving.batch_ratio
    if times is None:
        return told | {"batch": "unknown"}
    told |= {"batch": "failed" if memory.oom else "device" if memory.capacity_bytes else "same", "batch_times": times}
    if not memory.oom and memory.batch_ratio is not None and times < WORTH_A_LARGER_BATCH * memory.batch_ratio:
        return told | {"batch": "as_now"}
    if memory.fixed_share is None or memory.oom or times < 1:
        return told
    # A step of r times the batch holds the fixed part once: 1 − 1/r of it per sample is gone, if the rest only grows.
    return told | {"batch_time_share": memory.fixed_share * (1 - 1 / times)}


def enough(memory: SnapshotMemory) -> str:
    """Return the changes each of which alone would have let a failed request through, as keys of the catalogue."""
    short = memory.oom.short_bytes if memory.oom else None
    if short is None:
        return "@headroom.enough_unknown"
    found = [one.change for one in memory.savings if one.low_bytes >= short]
    found.sort(key=lambda change: change.startswith("shard"))  # more devices are no choice for most
    return " ".join(f"@what_if.{change}" for change in found[:_MOST_NAMED]) or "@headroom.enough_none"


def spoken(params: Mapping[str, object], lang: str) -> str:
    """Return what saved memory is worth as a sentence, empty for findings that save none."""
    low, high, times = (params.get(name) for name in ("saved_low_bytes", "saved_bytes", "batch_times"))
    if not isinstance(low, int) or not isinstance(high, int) or not high:
        return ""
    key = "frees_one" if low == high else "frees" if low else "frees_most"
    parts = [say(lang, f"headroom.{key}", params)]
    if params.get("batch") == "unknown":
        parts.append(say(lang, "headroom.batch_unknown"))
    elif isinstance(times, (int, float)) and (params.get("batch") == "failed" or times >= WORTH_A_LARGER_BATCH):
        parts.append(say(lang, f"headroom.batch_{params['batch']}", params))
        if params.get("batch") not in ("failed", "as_now"):
            timed = "batch_time_share" in params
            parts.append(say(lang, "headroom.time" if timed else "headroom.time_unknown", params))
    return say(lang, "headroom.joint").join(parts)
