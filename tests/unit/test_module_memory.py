"""What each module holds, by hand on sketches: two blocks that keep their insides until the backward pass."""

import json

import pytest

from uncork.measure import MissingEvidence, Rank
from uncork.measure.module_memory import Checkpoint, ModuleMemory, ModuleSizes
from uncork.testing import sketch

MIB = 1 << 20


def memory(when: str, address: int, mib: int, total_mib: int) -> str:
    """Return the line of an allocation (or, with a negative size, of its end)."""
    args = {"Device Type": 0, "Device Id": -1, "Addr": address, "Bytes": mib * MIB, "Total Allocated": total_mib * MIB}
    return f"  main {when} [memory] {json.dumps(args)}"


# Each block makes 4 MiB of scratch (given back at once), 20 MiB that backward needs, and 10 MiB that it returns.
LINES = [
    "steps 1 x 100ms",
    "  main op 1ms..20ms nn.Module: Net",
    "  main op 2ms..9ms nn.Module: blocks.0",
    '  main 3ms..8ms aten::mm {"Sequence number": 1}',
    memory("4ms", 1, 4, 4),
    memory("5ms", 2, 20, 24),
    memory("6ms", 1, -4, 20),
    memory("7ms", 3, 10, 30),
    "  main op 10ms..19ms nn.Module: blocks.1",
    '  main 11ms..18ms aten::mm {"Sequence number": 2}',
    memory("12ms", 1, 4, 34),
    memory("13ms", 4, 20, 54),
    memory("14ms", 1, -4, 50),
    memory("15ms", 5, 10, 60),
    # The loss is outside the modules; backward takes 7 MiB of its own at a time.
    "  main 21ms..24ms aten::sum",
    memory("22ms", 6, 1, 61),
    '  main 30ms..39ms autograd::engine::evaluate_function: MmBackward0 {"Sequence number": 2}',
    memory("31ms", 7, 7, 68),
    memory("35ms", 4, -20, 48),
    memory("36ms", 5, -10, 38),
    memory("37ms", 7, -7, 31),
    '  main 40ms..49ms autograd::engine::evaluate_function: MmBackward0 {"Sequence number": 1}',
    memory("41ms", 8, 7, 38),
    memory("45ms", 2, -20, 18),
    memory("46ms", 3, -10, 8),
    memory("47ms", 8, -7, 1),
]


def of(lines: list[str]) -> ModuleMemory:
    """Return the memory by module of a sketch."""
    return ModuleMemory.of(Rank(sketch("\n".join(lines))[0]))


def test_activations_are_what_a_forward_leaves_behind():
    """A block keeps 20 + 10 MiB, its scratch is none; the net holds both blocks' and not the loss's."""
    assert of(LINES).modules == (
        ModuleSizes("Net", 60 * MIB),
        ModuleSizes("blocks.0", 30 * MIB),
        ModuleSizes("blocks.1", 30 * MIB),
    )


def test_checkpointing_counts_the_peak_anew():
    """68 MiB at the peak, in the last block's backward: without the first's inside 48, without the last's still 68.

    Both together: 48 as well, since the last one's inside is there again. The whole net frees 50 and saves nothing.
    """
    assert of(LINES).checkpoints == (
        Checkpoint("blocks.0", 1, 20 * MIB, 20 * MIB, 7_000_000),
        Checkpoint("blocks.*", 2, 40 * MIB, 20 * MIB, 16_000_000),
    )


def test_blocks_that_a_step_never_gives_back_are_held_too():
    """Logits that the program keeps beyond the step are held when the backward pass begins."""
    lines = [line for line in LINES if '"Addr": 5, "Bytes": -' not in line]
    assert of(lines).modules[2].activation_bytes == 30 * MIB


def test_without_a_backward_pass_nothing_is_an_activation():
    """Inference holds nothing for later, and without the recorder's count there is nothing to tell."""
    with pytest.raises(MissingEvidence):
        of([line for line in LINES if "Backward" not in line])
