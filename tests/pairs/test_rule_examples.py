"""Real runs of the rules' examples: the slow script has the finding, at its place; its fix has not, and is faster."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pairs.recorded import reports, step_ratio

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.alone]


@dataclass(frozen=True)
class Pair:
    """What a pair of scripts was written to show.

    Args:
        rule: Id of the rule that finds it on the slow script and not on its fix.
        faster: The fix's step takes at most this share of the slow one's, half of what was gained when the pair was
            written; None where the step's median does not show it.
        place: Part of the finding's location, one of several where Python versions differ; empty where none is due.
        launcher: What stands before the script.
    """

    rule: str
    faster: float | None
    place: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()


TWO = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")

PAIRS = {
    "padding_by_hand": Pair("slow-collate", 0.75, ("pad",)),
    "lists_to_tensor": Pair("list-of-arrays-to-tensor", 0.7, ("number_by_number",)),
    "late_crop": Pair("slow-augmentation", 0.7, ("blur",)),
    "many_small_files": Pair("slow-read", 0.7, ("__getitem__",)),
    "double_precision": Pair("wrong-dtype", 0.9),
    "preprocessing_in_loop": Pair("main-thread-preprocessing", 0.9, ("tokenize", "<listcomp>")),
    "workers_each_epoch": Pair("worker-restart-each-epoch", None),  # most steps have workers that run
    "optimizer_for_loop": Pair("optimizer-not-foreach-or-fused", 0.8),
    "activation_by_hand": Pair("unfused-elementwise-runs", 0.8, ("gelu",)),
    "anomaly_detection_left_on": Pair("anomaly-mode", 0.9),
    "logging_each_step": Pair("per-step-logging", 0.6, ("write_log",)),
    "metric_in_python": Pair("python-between-ops", 0.6, ("edit_distance",)),
    "collect_each_step": Pair("garbage-collection", 0.6),
    "garbage_collection": Pair("garbage-collection", None),  # a few steps wait long for it
    "attention_by_hand": Pair("unfused-attention", 0.8, ("attend",)),
    "teacher_with_gradients": Pair("unheld-gradients", 0.8, ("forward",)),
    "doubles_everywhere": Pair("double-precision", 0.8, ("train",)),
    "recomputed_for_nothing": Pair("redundant-recompute", None, ("again",)),  # a seventh of the step
    "no_cache": Pair("missing-kv-cache", 0.7, ("forward",)),
    "rows_in_a_loop": Pair("python-loop-over-tensor", 0.6, ("row_by_row",)),
    "dropout_in_inference": Pair("training-mode-in-inference", 0.95, ("predict",)),
    "one_worker": Pair("too-few-workers", None, ("__getitem__",)),  # six workers need some of the cores
    "workers_beyond_cores": Pair("too-many-workers", None),  # how much it costs depends on the cores
    "workers_on_the_same_core": Pair("workers-take-cores", 0.8, ("spectrum", "<listcomp>")),
    "uneven_shards": Pair("straggling-worker", 0.7),
    "many_small_tensors": Pair("slow-handover", None),  # the workers' time, which the step hides where cores are free
    "packed_items": Pair("slow-decode", 0.7, ("decode",)),
    "long_sequences": Pair("quadratic-attention", 0.7, ("forward",)),
    "threads_beyond_cores": Pair("cpu-threads-oversubscribed", None),  # likewise
    "large_tensors_in_passes": Pair("bandwidth-bound-operators", 0.6, ("brighten",)),
    "whole_table_updated": Pair("dense-table-gradient", 0.6, ("train",)),
    "memory_given_back": Pair("memory-given-back", 0.7),
    "zeros_for_gradients": Pair("zero-grad-not-none", None, ("train",)),  # a twentieth of the step
    "sampling_with_graph": Pair("graph-never-used", 0.9, ("forward",)),
    "outputs_kept": Pair("host-memory-growth", None),  # costs memory, not time
    "changing_sizes": Pair("recompilation", 0.6),
    "check_in_forward": Pair("graph-breaks", 0.7, ("forward",)),
    "weights_cast_again": Pair("autocast-recast", 0.8, ("train",)),
    "breakpoint_left_in": Pair("debugger-attached", 0.6),
    "regions_everywhere": Pair("profiler-inside", None, ("train",)),  # a tenth of the step
    "bursts": Pair("no-prefetch", None),  # nine steps of ten
    "wrapped_and_hooked": Pair("module-dispatch", 0.7, ("train",)),
    "turns_of_work": Pair("imbalance", None, launcher=TWO),
    "one_rank_prepares": Pair("late-rank", None, launcher=TWO),
    "collect_in_turns": Pair("gc-at-different-times", None, launcher=TWO),
    "reduce_each_micro_batch": Pair("sync-every-micro-batch", None, launcher=TWO),
    "gradient_by_gradient": Pair("small-collectives", 0.8, launcher=TWO),
}


def wrong(example: str, folder: Path, *, together: bool) -> list[str]:
    """Return what does not hold of a pair, recorded into a folder."""
    pair = PAIRS[example]
    told = reports(example, folder, *pair.launcher, together=together)
    slow, fast = ({finding["rule"]: finding for finding in told[name]["findings"]} for name in ("slow", "fast"))
    if pair.rule not in slow:
        return [f"not among {list(slow)}"]
    found = ["the fix has it too"] if pair.rule in fast else []
    place = slow[pair.rule]["location"]
    if pair.place and not (place["function"] in pair.place and place["file"].endswith("slow.py")):
        found.append(f"it points at {place}")
    if pair.faster is not None and (ratio := step_ratio(folder)) >= pair.faster:
        found.append(f"the fix takes {ratio:.2f} of the step")
    return found


@pytest.mark.parametrize("example", list(PAIRS))
def test_the_rule_finds_the_slow_script_and_is_silent_about_its_faster_fix(example: str, tmp_path: Path):
    """Scripts are unmodified; what fails is recorded once more: one step that waits for the processor weighs much."""
    first = wrong(example, tmp_path / "first", together=True)
    assert not first or not (again := wrong(example, tmp_path / "again", together=False)), (first, again)
