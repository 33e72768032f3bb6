"""What a device kernel does, read from its name; decided once per distinct name."""

import re
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from uncork.events import DEVICE_KINDS, EventTable, starting

CLASSES = (
    "conv",
    "gemm",
    "attention",
    "layout",
    "norm",
    "elementwise",
    "reduce",
    "softmax",
    "copy",
    "comm",
    "optimizer",
    "index",
    "other",
)
"""``layout``: conversions between NCHW and NHWC and the like, made around convolutions and matrix products."""

COMPUTE = frozenset({"conv", "gemm", "attention", "layout"})
"""Arithmetic, and the conversions that libraries put around it (they go away with it)."""

BANDWIDTH = frozenset({"norm", "elementwise", "reduce", "softmax", "copy", "optimizer", "index"})
"""Work that reads and writes memory and computes little per byte (roofline: far left of the ridge)."""

_MATRIX_VECTOR = re.compile(r"gemv(?<!cublasgemv)")
"""Products of a matrix and a vector read each weight for two FLOP: bound by memory on any device (ridge: over 50)."""

_ANY = r"\s\S"
_TO_LAYOUT = "_?(to|2)_?(nchw|nhwc|ncdhw|ndhwc|kcrs|krsc)"
# The order decides: names of fused kernels hold several of these words, and the first is what the kernel is about.
# Words from the kernels of PyTorch, cuDNN, cuBLAS, CUTLASS, MIOpen, rocBLAS, Triton, FBGEMM, Ascend and MTIA.
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "comm",
            (
                r"nccl|rccl|hccl|hcom_|oneccl|gloo|msccl|nvshmem|deep_?ep|symm_mem|cross_device_reduce|quickreduce"
                rf"|{starting('all', 'a-z', '_?(reduce|gather|to_?all)')}|reduce_?scatter|multimem_|one_?shot|two_?shot"
                r"|internode::|intranode::"
            ),
        ),
        (
            "layout",
            (
                rf"n(chw|hwc|cdhw|dhwc|c1hwc0){_TO_LAYOUT}|k(crs|rsc){_TO_LAYOUT}|transdata"
                r"|batched_transpose|transpose_readwrite|subtensoropwithscalar|cast_filter|flip_filter|fractal"
            ),
        ),
        ("attention", rf"flash|fmha|attention|attn|{starting('mha', 'a-z')}|sdpa|_fwd_kernel_aligned|mla_"),
        (
            "conv",
            (
                r"conv(?!ert|ersion)|scudnn|winograd|wgrad|dgrad|fprop|fft[12]d|im2col|col2im|col2vol|vol2col"
                r"|igemm_(fwd|bwd|wrw)|cask_"
            ),
        ),
        (
            "gemm",
            (
                rf"gemm(?<!fbgemm)|gemv|{starting('cijk', 'a-z')}|mat_?mul|{starting('mm bmm', 'a-z', '([^a-z]|$)')}"
                r"|nvjet|splitk|dot_kernel|xmma|cublas(?!transpose)|cutlass|wmma|hmma|trsm|triton_tem|marlin|machete"
                rf"|{starting('fc-', '^_')}|linear_layer|cholesky|getr[fs]|geqr|potr|syev|magma"
            ),
        ),
        (
            "norm",
            (
                r"batch_?norm|layer_?norm|group_?norm|rms_?norm|instance_?norm|weight_?norm|bn_(fw|bw)|bnfw|bnbw"
                r"|rowwisemoments|internalgradients|computefusedparams|gammabeta|cucompute(grad|part)"
            ),
        ),
        ("softmax", r"soft_?max|cross_?entropy|nll_?loss"),
        ("optimizer", r"multi_tensor|adam|adagrad|lamb_|sgd_|fusedoptimizer|foreach"),
        (
            "index",
            (
                r"index|gather|scatter|embedding|embs|radix|sort|top_?k|select|nonzero|masked|unique|bincount|histogram"
                r"|permute_.d|lookup|compact"
            ),
        ),
        (
            "copy",
            (
                rf"copy|catarray|{starting('cat', 'a-z', '[._]')}|memcpy|memset|fill|concat|contiguous|tensormove"
                r"|transpose|pad_?v?3?[dk-]|dma"
            ),
        ),
        (
            "reduce",
            rf"reduc|{starting('cub mean sum', '^_')}|cub::|scan|cumsum|cumprod|arg_?(max|min)|triton_(red|per)|norm",
        ),
        (
            "elementwise",
            (
                r"element_?wise|triton_|pool|upsample|interpolate|distribution|drop_?out|relu|gelu|silu|sigmoid|tanh|swish"
                r"|scale|threshold|clamp|optensor|op_?tensor|activation|vectorized|unrolled|tensoriterator|bias|rotary"
                rf"|{starting('add mul sub div cast sqrt log exp pow where', '^_:')}|roi_?align|nms|tri[lu]_|-dtype_"
                rf"|{starting('aten::', _ANY)}"
            ),
        ),
    )
)


@lru_cache(maxsize=1 << 16)  # many measurements ask about the same names
def kernel_class(name: str) -> str:
    """Return what a kernel of that name does, one of `CLASSES`; ``other`` for names that say nothing."""
    folded = name.casefold()
    return next((kind for kind, pattern in _PATTERNS if pattern.search(folded)), "other")


def is_matrix_vector(name: str) -> bool:
    """Return whether a kernel of that name multiplies a matrix by a vector."""
    return bool(_MATRIX_VECTOR.search(name.casefold()))


def kernel_classes(table: EventTable, rows: npt.ArrayLike) -> npt.NDArray[np.int8]:
    """Return for each row of device work the place of its name's class in `CLASSES`, int8 (rows,)."""
    codes = table.coded(lambda name: CLASSES.index(kernel_class(name)), *DEVICE_KINDS)
    return codes[table.name[np.asarray(rows, np.int64)]]
