"""Attention: its cost, fused or in parts, and the sequence length that it grows with."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.operator import Operator
from uncork.measure.operators import OperatorTable, deep_parts, operator_parts
from uncork.records import dataclass

LEAST_SCORES = 4096
"""Tensors with fewer elements are of equal size by chance."""
_SOFTMAX = ("aten::_softmax", "aten::_softmax_backward_data")
_PRODUCTS = ("aten::bmm", "aten::baddbmm")
SLOW_PATH = "aten::_scaled_dot_product_attention_math"
"""What ``scaled_dot_product_attention`` calls where no fused kernel takes its arguments."""
_ON_SCORES = (
    *("aten::add", "aten::add_", "aten::mul", "aten::mul_", "aten::div", "aten::div_", "aten::masked_fill"),
    *("aten::masked_fill_", "aten::where", "aten::native_dropout", "aten::native_dropout_backward", "aten::bernoulli_"),
    *("aten::copy_", "aten::tril", "aten::triu"),
)
"""What attention written by hand does to the matrix of scores."""


@dataclass(frozen=True)
class Attention(Measurement):
    """Attention of a rank; times are means per step, of the device where one works.

    Args:
        fused_ns: In fused operators or kernels.
        product_ns: In matrix products whose result or factor is a matrix of scores.
        score_ns: In softmax and all else that reads and writes a whole matrix of scores.
        length: Longest sequence of keys seen, 0 where shapes are not known.
        query_rows: Queries × heads × batch of that one.
        score_bytes: Size of its matrix of scores.
        largest: The operator that takes most of it, None where there is none.
        fell_back: Whether most of what is in parts is ``scaled_dot_product_attention`` on its slow path.
        step_ns: Mean duration of a step.
        on_device: Whether a device works.
    """

    fused_ns: int
    product_ns: int
    score_ns: int
    length: int
    query_rows: int
    score_bytes: int
    largest: Operator | None
    step_ns: int
    on_device: bool
    fell_back: bool = False

    @classmethod
    def of(cls, rank: Rank) -> "Attention":
        """Return the attention of a rank; parts of it can be put together only by their shapes or modules."""
        table = rank.made(OperatorTable)
        if table.unseen_device:
            raise MissingEvidence("device")
        parts = operator_parts(rank)
        if rank.deep is not rank.timeline:
            parts = _by_call(parts, deep_parts(rank))
        fused = [part for part in parts if part.kernel_class == "attention" or "attention" in part.name.lower()]
        softmax = [part for part in parts if part.name in _SOFTMAX]
        if softmax and not any(part.shapes for part in softmax):
            products, scores = _by_module(parts, softmax)
        else:
            products, scores = _by_shape(parts, softmax)
        everything = sorted((*fused, *products, *scores), key=lambda part: -table.weight_ns(part))
        length, rows, size = _largest_scores(scores, fused)
        return cls(
            fused_ns=sum(map(table.weight_ns, fused)),
            product_ns=sum(map(table.weight_ns, products)),
            score_ns=sum(map(table.weight_ns, scores)),
            length=length,
            query_rows=rows,
            score_bytes=size,
            largest=everything[0] if everything else None,
            step_ns=table.step_ns,
            on_device=table.on_device,
            fell_back=_fell_back(table, operator_parts(rank), [*products, *scores]),
        )

    @property
    def unfused_ns(self) -> int:
        """Return the time of attention in parts."""
        return self.product_ns + self.score_ns

    def share(self, ns: int) -> float:
        """Return the share of the step that some time is."""
        return min(ns / self.step_ns, 1.0) if self.step_ns else 0.0


def _fell_back(table: OperatorTable, parts: list[Operator], unfused: list[Operator]) -> bool:
    """Return whether at least half of the forward pass's attention in parts lies in calls of the slow path."""
    slow_ns = sum(
        part.device_total_ns if table.on_device else part.cpu_total_ns for part in parts if part.name == SLOW_PATH
    )
    forward_ns = sum(table.weight_ns(part) for part in unfused if part.phase != "backward")
    return slow_ns > 0 and 2 * slow_ns >= forward_ns


def first_shape(part: Operator) -> Sequence[int]:
    """Return the sizes of a part's first tensor, empty where they are not known."""
    try:
        shapes = json.loads(part.shapes) if part.shapes else []
    except ValueError:
        return ()
    first = next((shape for shape in shapes if isinstance(shape, list) and shape), [])
    return first if all(isinstance(side, int) for side in first) else ()


def _by_call(parts: list[Operator], deep: list[Operator]) -> list[Operator]:
    """Return parts split by the shapes that their counterparts in the deep window have, in proportion to their time.

    One place of a program may multiply queries by keys, and scores by values.
    """
    known: dict[tuple[str, str, str | None], list[Operator]] = {}
    for other in deep:
        known.setdefault((other.name, other.phase, other.module), []).append(other)
    made = []
    for part in parts:
        others = known.get((part.name, part.phase, part.module), [])
        total_ns = sum(other.cpu_total_ns for other in others)
        if len(others) < 2 or not total_ns:
            made.append(part)
            continue
        for other in others:
            share = other.cpu_total_ns / total_ns
            made.append(
                replace(
                    part,
                    shapes=other.shapes,
                    sizes=other.sizes,
                    place=other.place or part.place,
                    cpu_self_ns=int(part.cpu_self_ns * share),
                    device_self_ns=int(part.device_self_ns * share),
                )
            )
    return made


def _by_shape(parts: list[Operator], softmax: list[Operator]) -> tuple[list[Operator], list[Operator]]:
    """Return (products that make or take a matrix of scores, work on whole ones), matched by sizes."""
    shapes = [shape for part in softmax if len(shape := first_shape(part)) >= 3]
    known = {(size, shape[-1]) for shape in shapes if (size := math.prod(shape)) >= LEAST_SCORES}
    candidates = []
    for part in parts:
        if part.name in _PRODUCTS and part.sizes:
            m, n, k, many = (int(str(part.sizes.get(side, 1))) for side in ("m", "n", "k", "batch"))
            made = {(many * m * n, n)} & known
            # Its factor is the scores or, for gradients, the scores turned over.
            taken = {(many * m * k, k), (many * m * k, m)} & known
            candidates.append((part, made, taken))
    whole = set().union(*(made for _, made, _ in candidates)) & set().union(*(taken for _, _, taken in candidates))
    products = [part for part, made, taken in candidates if (made | taken) & whole]
    scores = [
        part
        for part in (parts if whole else ())
        if part.name in (*_SOFTMAX, *_ON_SCORES)
        and len(shape := first_shape(part)) >= 3
        and (math.prod(shape), shape[-1]) in whole
    ]
    return products, scores


def _by_module(parts: list[Operator], softmax: list[Operator]) -> tuple[list[Operator], list[Operator]]:
    """Return (products, softmax) of modules that hold a softmax and at least two batched products."""
    modules = {part.module for part in softmax} - {None}
    if not modules:
        raise MissingEvidence("shapes")
    products = [part for part in parts if part.name in _PRODUCTS and part.module in modules]
    calls = {module: sum(part.calls for part in products if part.module == module) for module in modules}
    layers = {module: sum(part.calls for part in softmax if part.module == module) for module in modules}
    whole = {module for module in modules if calls[module] >= 2 * layers[module]}
    return [part for part in products if part.module in whole], [part for part in softmax if part.module in whole]


def _largest_scores(scores: list[Operator], fused: list[Operator]) -> tuple[int, int, int]:
    """Return (keys, rows, bytes) of the largest matrix of scores."""
    found = [(0, 0, 0)]
    for part in scores:
        shape = first_shape(part)
        if len(shape) >= 3:
            width = 2 if part.dtype in {"fp16", "bf16"} else 4
            found.append((shape[-1], math.prod(shape[:-1]), math.prod(shape) * width))
    for part in fused:
        if "query_length" in part.sizes:
            keys, rows = int(str(part.sizes["key_length"])), 1
            for side in ("batch", "heads", "query_length"):
                rows *= int(str(part.sizes[side]))
            found.append((keys, rows, keys * rows * (2 if part.dtype in {"fp16", "bf16"} else 4)))
    return max(found, key=lambda one: one[2])
