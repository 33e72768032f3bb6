"""Which units a matrix kernel runs on and in which precision, read from its name; decided once per distinct name."""

import re

# The order decides: narrower words first. Names of cuBLAS, cuDNN, CUTLASS, rocBLAS/hipBLASLt and MIOpen kernels.
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (precision, re.compile(pattern))
    for precision, pattern in (
        ("fp8", r"e4m3|e5m2|_f8|qgmma|nvjet_q|cijk_[a-z]+_[a-z]+_[fb]8"),
        ("int8", r"i8816|i16832|_imma|int8|cijk_[a-z]+_[a-z]+_i8"),
        ("bf16", r"bf16|bfloat16|nvjet_t|cijk_[a-z]+_[a-z]+_b(b|s)"),
        ("fp64", r"dgemm|d884|f64f64|<double|cijk_[a-z]+_[a-z]+_d"),
        (
            "tf32",
            r"tf32|tfloat32|tensorop_s1688(gemm|fprop|dgrad|wgrad)_(?!(\w*_)?(bf16|f16))|nvjet_s|cijk_[a-z]+_[a-z]+_s_?x",
        ),
        ("fp16", r"h884|h1688|h16816|fp16|hgemm|_f16|hmma|__half|c10::half|half_t|_half_|nvjet_h|cijk_[a-z]+_[a-z]+_h"),
        (
            "fp32",
            (
                r"sgemm|scudnn|simt_s|_f32f32_f32|_engine<float|<float, float|dgrad2d_alg|winograd|_f32_|_float_|fp32"
                r"|gemv\w*.*float|gemm\w*<float|cgemm|fft[12]d|cijk_[a-z]+_[a-z]+_s"
            ),
        ),
    )
)
_FEWER_FLOP = re.compile(r"winograd|fft[12]d|_r2c|_c2r")
_ALIGN = re.compile(r"_align(1|2)\b|_align(1|2)(::|\(|$)|_ldg[12]_")


def matrix_precision(kernel: str) -> str:
    """Return what a matrix kernel computes in (``tf32 bf16 fp16 fp32 …``), empty where its name does not say.

    ``fp32`` is work outside tensor cores, ``tf32`` the same numbers on them with 10 bits of mantissa.
    """
    folded = kernel.casefold()
    return next(
        (one for one, pattern in _PATTERNS if pattern.search(folded) or (one == "int8" and "s8_" in kernel)), ""
    )


def is_misaligned(kernel: str) -> bool:
    """Return whether a half-precision kernel reads one or two elements at a time: a side is not a multiple of 8."""
    return _ALIGN.search(kernel) is not None and matrix_precision(kernel) in {"bf16", "fp16"}


def saves_arithmetic(kernel: str) -> bool:
    """Return whether a kernel computes a convolution with fewer operations than its formula counts (Winograd, FFT)."""
    return _FEWER_FLOP.search(kernel.casefold()) is not None
