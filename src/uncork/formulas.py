"""Work: the FLOP of an operator and the bytes it must at least move, by the shapes it was given.

Matrix products 2MNK, convolutions 2 × (filter without its first side) × outputs, attention 2BHN²(d + d);
`docs/roofline.md` has the whole table and says where other tools count differently.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from uncork.inputs import PRECISION, Args, Shape
from uncork.records import dataclass


@dataclass(frozen=True)
class Work:
    """What an operator has to do.

    Args:
        flop: Floating-point operations; a multiplication and an addition are two.
        moved_bytes: Bytes it must at least read and write, each tensor once.
        matrix: Whether matrix units (tensor cores) can do it.
        precision: Of its first tensor: ``fp32 bf16 …``; empty for integers.
        sizes: The sizes people think in: ``m n k batch``, ``kernel stride channels_in …``, ``heads query_length …``.
    """

    flop: int
    moved_bytes: int
    matrix: bool
    precision: str
    sizes: Mapping[str, object] = field(default_factory=dict)


MOST_BYTES, MOST_FLOP = 1 << 50, 1 << 60
"""More than any call moves or computes (1 PiB; twenty minutes at 1 PFLOP/s): such shapes were damaged."""
Formula = Callable[[Args], Work]


def work_of(op: str, dims: object, types: object, concrete: object) -> Work | None:
    """Return the work of an operator, None where it has no formula or its inputs are not recorded.

    Args:
        op: Name of the operator.
        dims: ``Input Dims`` as recorded.
        types: ``Input type`` as recorded.
        concrete: ``Concrete Inputs`` as recorded.
    """
    formula = FORMULAS.get(op)
    if formula is None or not isinstance(dims, list):
        return None
    try:
        found = formula(Args(dims, _list(types), _list(concrete)))
    except (LookupError, ValueError, TypeError, ArithmeticError):
        return None
    return found if 0 <= found.moved_bytes <= MOST_BYTES and 0 <= found.flop <= MOST_FLOP else None


def sizes_of(op: str, dims: object) -> dict[str, object]:
    """Return what a convolution's shapes alone tell, where its parameters are not recorded (before torch 2.0).

    Args:
        op: Name of the operator.
        dims: ``Input Dims`` as recorded.
    """
    first = next((place for prefix, place in _TENSORS_FROM.items() if op.startswith(prefix)), None)
    if first is None or not isinstance(dims, list):
        return {}
    args = Args(dims, (), ())
    try:
        source, weight = args.shape(first), args.shape(first + 1)
    except LookupError:
        return {}
    if len(source) < 3 or len(source) != len(weight):
        return {}
    return {name: value for name, value in _conv_sizes(source, weight, (), 1).items() if name not in _PARAMETERS}


_TENSORS_FROM = {"aten::convolution_backward": 1, "aten::mkldnn_convolution": 0, "aten::cudnn_convolution": 0,
                 "aten::conv": 0, "aten::_convolution": 0, "aten::thnn_conv": 0}  # fmt: skip
"""Name's beginning → place of the input, which the weight follows."""
_PARAMETERS = ("stride", "groups")


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _precision(args: Args, index: int) -> str:
    return PRECISION.get(args.type(index), "")


def _product(left: int, bias: int | None = None) -> Formula:
    """Return the formula of a matrix product whose first factor is input `left`, (…, M, K) × (…, K, N)."""

    def formula(args: Args) -> Work:
        *batch, m, k = args.shape(left)
        n = args.shape(left + 1)[-1] if len(args.shape(left + 1)) > 1 else 1
        many = math.prod(batch)
        flop, moved = 2 * many * m * n * k, many * (m * k * args.size(left) + k * n * args.size(left + 1))
        moved += many * m * n * args.size(left)
        if bias is not None:
            flop += many * m * n
            # A bias of one row is read once; baddbmm adds a whole matrix.
            moved += args.tensor_bytes(bias)
        sizes = {"m": m, "n": n, "k": k, **({"batch": many} if batch else {})}
        return Work(flop, moved, True, _precision(args, left), sizes)

    return formula


def _convolution(
    *, bias: int | None, stride: int, padding: int, dilation: int, groups: int, transposed: int | None = None
) -> Formula:
    """Return the formula of a convolution, by the places of its parameters.

    Args:
        bias: Place of the bias, or None.
        stride: Place of the stride.
        padding: Place of the padding.
        dilation: Place of the dilation.
        groups: Place of the number of groups.
        transposed: Place of the flag that turns the convolution around (the extra output padding follows), or None.
    """

    def formula(args: Args) -> Work:
        source, weight = args.shape(0), args.shape(1)
        sides = len(weight) - 2
        step, spread = args.integers(stride, sides), args.integers(dilation, sides)
        border = _padding(args, padding, weight, spread)
        many = int(str(args.value(groups)))
        if transposed is not None and args.flag(transposed, missing=False):
            extra = args.integers(transposed + 1, sides)
            made = source[0] * weight[1] * many
            for i, size in enumerate(source[2:]):
                made *= (size - 1) * step[i] - border[i] + spread[i] * (weight[2 + i] - 1) + extra[i] + 1
            flop = 2 * math.prod(weight[1:]) * math.prod(source)
        else:
            made = source[0] * weight[0]
            for i, size in enumerate(source[2:]):
                made *= (size + border[i] - spread[i] * (weight[2 + i] - 1) - 1) // step[i] + 1
            flop = 2 * math.prod(weight[1:]) * made
        with_bias = bias is not None and args.is_tensor(bias)
        moved = args.tensor_bytes(0, 1, *([bias] if with_bias and bias is not None else [])) + made * args.size(0)
        sizes = _conv_sizes(source, weight, step, many)
        return Work(flop + (made if with_bias else 0), moved, True, _precision(args, 0), sizes)

    return formula


def _padding(args: Args, place: int, weight: Shape, spread: Sequence[int]) -> list[int]:
    """Return the padding of both ends of each side together; ``same`` and ``valid`` are spelt out."""
    text = str(args.concrete[place]) if place < len(args.concrete) else ""
    if "same" in text:
        return [spread[i] * (side - 1) for i, side in enumerate(weight[2:])]
    return [0] * (len(weight) - 2) if "valid" in text else [2 * x for x in args.integers(place, len(weight) - 2)]


def _conv_sizes(source: Shape, weight: Shape, stride: Sequence[int], groups: int) -> dict[str, object]:
    """Return what people call a convolution's sizes; a filter lies as (out, in / groups, …)."""
    return {
        "kernel": "×".join(map(str, weight[2:])), "stride": "×".join(map(str, stride)), "channels_in": source[1],
        "channels_out": weight[0], "groups": groups, "batch": source[0], "input": "×".join(map(str, source[2:])),
    }  # fmt: skip


def _convolution_backward(args: Args) -> Work:
    """Return the work of the gradients asked for: of the input, of the weight, of the bias."""
    made, source, weight = args.shape(0), args.shape(1), args.shape(2)
    around = args.flag(7, missing=False)
    one = 2 * math.prod(weight[1:]) * math.prod(source if around else made)
    mask = args.value(10) if len(args.concrete) > 10 and args.concrete[10] else [True, True, False]
    of_input, of_weight, of_bias = mask if isinstance(mask, list) else (True, True, False)
    flop = one * (bool(of_input) + bool(of_weight)) + (math.prod(made) if of_bias else 0)
    # Each of the two reads both others and writes its own; all three are tensors of this one size each.
    moved = args.tensor_bytes(0, 1, 2) * (bool(of_input) + bool(of_weight))
    stride = args.integers(4, len(weight) - 2) if len(args.concrete) > 4 and args.concrete[4] else []
    groups = int(str(args.value(9))) if len(args.concrete) > 9 and args.concrete[9] else 1
    return Work(flop, moved, True, _precision(args, 1), _conv_sizes(source, weight, stride, groups))


def _old_convolution_backward(args: Args) -> Work:
    """Return the work of cudnn_convolution_backward(input, gradient, weight, …) before torch 1.11: both gradients."""
    source, made, weight = args.shape(0), args.shape(1), args.shape(2)
    flop = 2 * 2 * math.prod(weight[1:]) * math.prod(made)
    return Work(flop, 2 * args.tensor_bytes(0, 1, 2), True, _precision(args, 0), _conv_sizes(source, weight, [], 1))


def _attention(first: int, causal: int, *, backward: bool = False, heads_last: bool = False) -> Formula:
    """Return the formula of fused attention over (batch, heads, length, head size).

    Forward: two products per pair of positions. Backward: five, since the scores are computed again.

    Args:
        first: Place of the queries; keys and values follow.
        causal: Place of the flag that masks half of the pairs.
        backward: Whether it is the backward pass.
        heads_last: Whether the tensors lie as (batch, length, heads, head size).
    """

    def formula(args: Args) -> Work:
        query, key, value = (_heads_first(args.shape(first + i), heads_last) for i in range(3))
        *batch, heads, asked, size = query
        many, known, size_v = math.prod(batch), key[-2], value[-1]
        pairs_twice = 2 * asked * known
        if args.flag(causal, missing=False):
            short = min(asked, known)
            pairs_twice = short * short + 2 * (asked - short) * known
        per_pair = 3 * size + 2 * size_v if backward else size + size_v
        flop = many * heads * pairs_twice * per_pair
        width = args.size(first)
        tensors = math.prod(query) + math.prod(key) + math.prod(value)
        moved = width * (tensors + math.prod(query[:-1]) * size_v)
        sizes = {"batch": many, "heads": heads, "query_length": asked, "key_length": known, "head_size": size}
        return Work(flop, moved * (2 if backward else 1), True, _precision(args, first), sizes)

    return formula


def _heads_first(shape: Shape, heads_last: bool) -> Shape:
    """Return (…, heads, length, head size); packed sequences of three sides hide their lengths and raise."""
    batch, length, heads, size = shape if heads_last else (0, 0, 0, 0)
    return (batch, heads, length, size) if heads_last else shape


def _norm(
    source: int, channels: Callable[[Args], int], training: int | None = None, *, backward: bool = False
) -> Formula:
    """Return the formula of a normalisation: forward 2n (5n with statistics) + 6C, backward 9n."""

    def formula(args: Args) -> Work:
        n, c = math.prod(args.shape(source)), channels(args)
        width, trains = args.size(source), training is None or args.flag(training, missing=True)
        if backward:
            return Work(9 * n, width * (3 * n + 4 * c), False, _precision(args, source))
        moved = width * (2 * n + (6 if trains else 4) * c)
        return Work((5 if trains else 2) * n + 6 * c, moved, False, _precision(args, source))

    return formula


def _second_side(source: int) -> Callable[[Args], int]:
    return lambda args: args.shape(source)[1]


def _sides_listed(place: int) -> Callable[[Args], int]:
    """Return the product of a listed shape: what a layer norm normalises over."""
    return lambda args: math.prod(args.integers(place, 1))


def _elementwise(most: int, made_size: int | None = None) -> Formula:
    """Return the formula of an operator that reads its tensors and writes one of the largest size.

    Args:
        most: Tensors it reads at most; one more is where it writes.
        made_size: Bytes of an element that it writes, where that is not the type it reads.
    """

    def formula(args: Args) -> Work:
        tensors = [index for index in range(len(args.dims)) if args.is_tensor(index)][:most]
        made = max((math.prod(args.shape(index)) for index in tensors), default=None)
        if made is None:
            raise LookupError
        # A zero-dimensional tensor does not widen the result.
        width = made_size or max(args.size(index) for index in [i for i in tensors if args.shape(i)] or tensors)
        return Work(made, args.tensor_bytes(*tensors) + made * width, False, _precision(args, tensors[0]))

    return formula


def _copy(args: Args) -> Work:
    n = math.prod(args.shape(0))
    return Work(0, n * args.size(0) + math.prod(args.shape(1)) * args.size(1), False, _precision(args, 0))


def _reduce(args: Args) -> Work:
    n = math.prod(args.shape(0))  # what a reduction writes is small beside what it reads
    return Work(n, n * args.size(0), False, _precision(args, 0))


def _softmax(flop_each: int, tensors: int) -> Formula:
    def formula(args: Args) -> Work:
        n = math.prod(args.shape(0))
        return Work(flop_each * n, tensors * n * args.size(0), False, _precision(args, 0))

    return formula


def _embedding(args: Args) -> Work:
    rows, width = math.prod(args.shape(1)), args.shape(0)[-1]
    return Work(0, 2 * rows * width * args.size(0) + rows * args.size(1), False, _precision(args, 0))


_OF_ONE = (
    *("relu", "relu_", "gelu", "silu", "silu_", "sigmoid", "sigmoid_", "tanh", "tanh_", "exp", "exp_", "log", "sqrt"),
    *("rsqrt", "neg", "abs", "clamp", "clamp_", "clamp_min", "clamp_min_", "leaky_relu", "leaky_relu_", "hardtanh"),
    *("hardswish", "hardsigmoid", "bernoulli_", "erf", "sin", "cos", "reciprocal"),
)
_OF_TWO = (
    *("add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "pow", "pow_", "maximum", "minimum", "masked_fill"),
    *("masked_fill_", "threshold_backward", "gelu_backward", "silu_backward", "sigmoid_backward", "tanh_backward"),
    *("native_dropout_backward",),
)
_OF_THREE = ("where", "addcmul", "addcmul_", "addcdiv", "addcdiv_", "lerp", "lerp_")
_COMPARING = ("eq", "ne", "gt", "lt", "ge", "le", "logical_and", "logical_or", "isnan", "isinf")
_REDUCING = ("sum", "mean", "max", "min", "amax", "amin", "norm", "linalg_vector_norm", "var", "std", "prod", "argmax")
_TRAINING = 5
"""Place of a batch norm's flag that says whether it computes statistics."""
_AS_IN_PYTHON = _convolution(bias=2, stride=3, padding=4, dilation=5, groups=8, transposed=6)
_WITHOUT_FLAG = _convolution(bias=2, stride=3, padding=4, dilation=5, groups=6)
_PADDING_FIRST = _convolution(bias=2, stride=4, padding=3, dilation=5, groups=6)
FORMULAS: Mapping[str, Formula] = {
    "aten::mm": _product(0), "aten::bmm": _product(0), "aten::mv": _product(0), "aten::_scaled_mm": _product(0),
    "aten::addmm": _product(1, 0), "aten::baddbmm": _product(1, 0), "aten::_addmm_activation": _product(1, 0),
    "aten::addmv": _product(1, 0),
    "aten::convolution": _AS_IN_PYTHON,
    "aten::_convolution": _AS_IN_PYTHON,
    "aten::convolution_overrideable": _AS_IN_PYTHON,
    **{f"aten::conv{sides}d": _WITHOUT_FLAG for sides in (1, 2, 3)},
    "aten::cudnn_convolution_relu": _WITHOUT_FLAG,
    "aten::cudnn_convolution": _convolution(bias=None, stride=3, padding=2, dilation=4, groups=5),
    "aten::miopen_convolution": _PADDING_FIRST, "aten::mkldnn_convolution": _PADDING_FIRST,
    "aten::convolution_backward": _convolution_backward,
    "aten::cudnn_convolution_backward": _old_convolution_backward,
    "aten::scaled_dot_product_attention": _attention(0, 5),
    "aten::_scaled_dot_product_flash_attention": _attention(0, 4),
    "aten::_scaled_dot_product_efficient_attention": _attention(0, 6),
    "aten::_scaled_dot_product_cudnn_attention": _attention(0, 6),
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention(0, 4),
    "aten::_scaled_dot_product_flash_attention_backward": _attention(1, 11, backward=True),
    "aten::_scaled_dot_product_efficient_attention_backward": _attention(1, 11, backward=True),
    "aten::_scaled_dot_product_cudnn_attention_backward": _attention(1, 14, backward=True),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _attention(1, 7, backward=True),
    "aten::_flash_attention_forward": _attention(0, 8, heads_last=True),
    "aten::_efficient_attention_forward": _attention(0, 9, heads_last=True),
    "aten::_flash_attention_backward": _attention(1, 11, backward=True, heads_last=True),
    "aten::_efficient_attention_backward": _attention(1, 14, backward=True, heads_last=True),
    **{f"aten::{name}": _norm(0, _second_side(0), _TRAINING) for name in
       ("batch_norm", "_batch_norm_impl_index", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm")},
    "aten::layer_norm": _norm(0, _sides_listed(1)), "aten::native_layer_norm": _norm(0, _sides_listed(1)),
    "aten::rms_norm": _norm(0, _sides_listed(1)), "aten::group_norm": _norm(0, _second_side(0)),
    "aten::native_group_norm": _norm(0, _second_side(0)),
    "aten::native_batch_norm_backward": _norm(1, _second_side(1), backward=True),
    "aten::cudnn_batch_norm_backward": _norm(0, _second_side(0), backward=True),
    "aten::miopen_batch_norm_backward": _norm(0, _second_side(0), backward=True),
    "aten::native_layer_norm_backward": _norm(1, _sides_listed(2), backward=True),
    "aten::native_group_norm_backward": _norm(1, _second_side(1), backward=True),
    **{
        f"aten::{name}": _elementwise(tensors)
        for tensors, names in enumerate((_OF_ONE, _OF_TWO, _OF_THREE), start=1)
        for name in names
    },
    **{f"aten::{name}": _elementwise(2, made_size=1) for name in _COMPARING},
    **{f"aten::{name}": _reduce for name in _REDUCING},
    "aten::copy_": _copy,
    "aten::_softmax": _softmax(3, 2), "aten::_log_softmax": _softmax(3, 2),
    "aten::_softmax_backward_data": _softmax(6, 3), "aten::_log_softmax_backward_data": _softmax(6, 3),
    "aten::embedding": _embedding,
}  # fmt: skip
"""Operator → formula. Of nested operators the innermost that has one counts: only there are the types final."""
