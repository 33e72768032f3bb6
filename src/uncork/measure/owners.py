"""Whose memory a block is, read from the stacks that asked for it and gave it back."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from uncork.findings import Location
from uncork.frames import is_users
from uncork.measure.allocations import Allocations
from uncork.records import dataclass
from uncork.snapshot import CATEGORIES, Stacks

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

SHORT_LIVED_ALLOCATIONS = 16
"""A block made and freed within so few allocations is an operator's scratch space; layers hold theirs for longer."""
PHASES = ("start_up", "forward", "backward", "optimizer", "generation", "other")
_ENGINE = re.compile(
    r"torch::autograd::(Engine|Node::operator|generated::\w+::apply|AccumulateGrad)|Backward\d*::apply"
)
_NODE = re.compile(r"(\w+Backward\d*|AccumulateGrad)::apply")
_OPTIMIZER_FILE = re.compile(
    r"[/\\](torch[/\\]optim|[\w.-]*optim\w*)[/\\]|optim\w*\.py$|bitsandbytes|apex", re.IGNORECASE
)
_OPTIMIZER_FUNCTION = re.compile(
    r"^(step|__init__|_?init_group|init_state|update_step|_(single|multi|foreach|fused)\w*)$"
)
_MODULE_FILE = re.compile(r"torch[/\\]nn[/\\]modules[/\\]module\.py$")
_SET_UP = re.compile(r"^(_apply|to|cuda|half|bfloat16|float|double|to_empty|load_state_dict|reset_parameters)$")
_BUILD = re.compile(r"^(__init__|from_pretrained)$")
_FORWARD = re.compile(r"^(forward|_call_impl|_wrapped_call_impl)$")
_LOGITS = re.compile(r"cross_entropy|log_softmax|nll_loss|LogSoftmax|NllLoss|lm_head|logits", re.IGNORECASE)

_GENERATION = re.compile(
    r"^(stream_)?generate(_step|_text|_tokens)?$|^_?(sample|greedy_search|beam_search|assisted_decoding)$"
    r"|^(prefill|decode_(one_token|n_tokens|step))$"
)
_SCORES = re.compile(r"softmax|attention|attn|scores", re.IGNORECASE)
"""Functions of a user's own attention; a fused one is a single call that makes no scores."""


@dataclass(frozen=True)
class Owner:
    """Blocks that one place of the program holds.

    Args:
        category: One of `CATEGORIES`.
        location: The user's line, or the operator of the backward pass.
        size_bytes: Together.
        count: Blocks.
    """

    category: str
    location: Location
    size_bytes: int
    count: int


class StackKinds:
    """What the stacks of a snapshot are part of; each array has shape (stacks,).

    Args:
        stacks: The stacks.
    """

    def __init__(self, stacks: Stacks) -> None:
        self.stacks = stacks
        python = np.array([file.endswith(".py") or file.startswith("<") for file in stacks.file], bool)
        self.python = stacks.any_frame(python)
        self.native = bool(stacks.any_frame(~python).any())
        self.engine = self._with(_ENGINE, lambda function, _: function)
        if not self.native and len(stacks) > 1:
            # With Python stacks only, what has none was asked for by autograd's threads.
            self.engine = ~self.python
        step = [
            bool(_OPTIMIZER_FUNCTION.match(function)) and bool(_OPTIMIZER_FILE.search(file))
            for function, file in zip(stacks.function, stacks.file, strict=True)
        ]
        self.optimizer = stacks.any_frame(np.array(step, bool))
        module = np.array([bool(_MODULE_FILE.search(file)) for file in stacks.file], bool)
        named = np.array([bool(_SET_UP.match(function)) for function in stacks.function], bool)
        self.set_up = stacks.any_frame(module & named) | self._with(_BUILD, lambda function, _: function)
        self.forward = self._with(_FORWARD, lambda function, _: function)
        self.generation = self._with(_GENERATION, lambda function, _: function)
        self.logits = self._with(_LOGITS, lambda function, _: function)
        self.scores = self._with(_SCORES, lambda function, _: function) & ~self.logits

    def _with(self, pattern: re.Pattern[str], text: Callable[[str, str], str]) -> BoolArray:
        """Return the stacks with a frame for which the pattern is found in ``text(function, file)``."""
        pairs = zip(self.stacks.function, self.stacks.file, strict=True)
        return self.stacks.any_frame(np.array([bool(pattern.search(text(*pair))) for pair in pairs], bool))

    def phase(self, stack: int) -> str:
        """Return which of `PHASES` asked for a block."""
        if self.optimizer[stack]:
            return "optimizer"
        if self.engine[stack]:
            return "backward"
        if self.set_up[stack]:
            return "start_up"
        if self.generation[stack]:
            return "generation"
        return "forward" if self.forward[stack] else "other"

    def place(self, stack: int) -> Location:
        """Return the innermost frame of the user's own code, else the backward node, else the innermost frame."""
        frames = self.stacks.frames(stack).tolist()
        python = [frame for frame in frames if self.stacks.file[frame].endswith(".py")]
        user = next((frame for frame in python if is_users(self.stacks.file[frame])), None)
        nodes = (_NODE.search(self.stacks.function[frame]) for frame in frames)
        node = next((found[1] for found in nodes if found), None)
        frame = user if user is not None else python[0] if python and node is None else None
        if frame is None:
            return Location(op=node)
        return Location(
            file=self.stacks.file[frame],
            line=int(self.stacks.line[frame]),
            function=self.stacks.function[frame],
            op=node,
        )


def categories(blocks: Allocations, kinds: StackKinds) -> IntArray:
    """Return the index in `CATEGORIES` of what each block is for.

    Optimiser state: asked for in a step and never freed. Gradient: asked for by autograd's engine and still there when
    it is done. Activation: made in a forward pass and held, until the engine or the program lets go of it. Parameter:
    made while an object is built or a module moved, and never freed; or older than the history and of the size of a
    gradient or moment. What a function makes and frees at once is temporary. Other blocks older than the history are
    unknown.
    """
    born, freed = blocks.stack, blocks.freed_by
    never_freed = blocks.death >= blocks.actions
    # Histories with context="alloc" keep no stacks of frees: then it is not known who freed.
    told = bool((freed > 0).any())
    freed_in_engine = ~never_freed & kinds.engine[freed] & (kinds.native | (freed == 0)) & told
    births = np.sort(blocks.birth[blocks.birth >= 0])
    between = np.searchsorted(births, blocks.death) - np.searchsorted(births, blocks.birth, side="right")
    short = ~never_freed & (between <= SHORT_LIVED_ALLOCATIONS) & (blocks.birth >= 0)
    if blocks.failure is not None:  # what ended with the failed step might have been held for longer
        short &= (blocks.birth > blocks.failure) | (blocks.death < blocks.failure)
    lost = (born == 0) & (blocks.birth < 0)
    engine = kinds.engine[born] & ~lost & ~kinds.python[born]
    program = kinds.python[born] & ~lost
    choices = (
        (lost, "unknown"),
        (kinds.optimizer[born] & never_freed, "optimizer_state"),
        (kinds.optimizer[born], "temporary"),
        (engine & (never_freed | (~freed_in_engine & ~short & told)), "gradient"),
        (engine, "temporary"),
        (kinds.set_up[born] & never_freed, "parameter"),
        (program & freed_in_engine, "activation"),
        (program & short, "temporary"),
        (program & (kinds.forward[born] | kinds.engine[born]), "activation"),
    )
    codes = [CATEGORIES.index(word) for _, word in choices]
    code = np.select([mask for mask, _ in choices], codes, CATEGORIES.index("unknown")).astype(np.int64)
    code[_parameters(blocks, code)] = CATEGORIES.index("parameter")
    return code


def _parameters(blocks: Allocations, code: IntArray) -> IntArray:
    """Return the blocks older than the history that have a moment or a gradient of their own size: the parameters.

    Every parameter has one of each, so sizes are matched one to one with those of the place that made most moments;
    where there is no optimiser state, with the gradients.
    """
    old = np.flatnonzero((code == CATEGORIES.index("unknown")) & (blocks.birth < 0) & (blocks.death >= blocks.actions))
    partners = np.flatnonzero(code == CATEGORIES.index("optimizer_state"))
    if len(partners):
        stacks, count = np.unique(blocks.stack[partners], return_counts=True)
        partners = partners[blocks.stack[partners] == stacks[count.argmax()]]
    else:
        partners = np.flatnonzero((code == CATEGORIES.index("gradient")) & (blocks.death >= blocks.actions))
    left = Counter(blocks.size_bytes[partners].tolist())
    found = []
    for place, size in zip(old.tolist(), blocks.size_bytes[old].tolist(), strict=True):
        if left[size] > 0:
            left[size] -= 1
            found.append(place)
    return np.array(found, np.int64)


def owners(
    blocks: Allocations, which: IntArray, category: IntArray, kinds: StackKinds, most: int = 10
) -> tuple[Owner, ...]:
    """Return who holds some blocks, by category and place, the largest first."""
    places: dict[int, Location] = {}
    sums: dict[tuple[str, Location], list[int]] = {}
    pairs = np.column_stack([category[which], blocks.stack[which]])
    used, back = np.unique(pairs, axis=0, return_inverse=True)
    size = np.bincount(back.reshape(-1), blocks.size_bytes[which], minlength=len(used)).astype(np.int64)
    count = np.bincount(back.reshape(-1), minlength=len(used))
    for (code, stack), size_bytes, blocks_here in zip(used.tolist(), size.tolist(), count.tolist(), strict=True):
        if stack not in places:
            places[stack] = kinds.place(stack)
        total = sums.setdefault((CATEGORIES[code], places[stack]), [0, 0])
        total[0] += size_bytes
        total[1] += blocks_here
    found: Sequence[Owner] = [Owner(word, place, *total) for (word, place), total in sums.items()]
    return tuple(sorted(found, key=lambda one: (-one.size_bytes, one.category, str(one.location)))[:most])
