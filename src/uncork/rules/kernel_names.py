"""A kernel's name as people say it: without what the compiler added; the template argument that tells stays."""

import re
from collections.abc import Iterator
from functools import lru_cache

_MOST = 72
"""A name with its template arguments that is longer stands without them."""
_MOST_TOLD = 2
_DEEPEST, _LONGEST = 12, 8_192
"""Kernels of torch's own nest their arguments up to eight deep, and have names of up to 3,000 characters."""
_PART = re.compile(r"(\d+)(?=[A-Za-z_])")
_QUALIFIER = re.compile(r"\b(?:at|at_cuda_detail|c10|std|native|_GLOBAL__N_\w+)::|\(anonymous namespace\)::")
_WITHIN = r"(?:\w+::)*"
_INTEGER = re.compile(r"(?:const )?(?:u?int\d+_t|unsigned|signed|bool|u?(?:char|short|int|long)[24]?|size_t|void)\b")
_FLOAT = re.compile(
    rf"{_WITHIN}(float[24]?|double|half(?:_t)?|__half2?|(?:__\w+_)?bfloat16(?:_t)?|Half|BFloat16|Float8\w*|complex)\b"
)
_FILLER = re.compile(
    r"[-\d({]|true$|false$|cublas"
    rf"|{_WITHIN}\w*(?:[Aa]rray|Calculator|OpaqueType|Metadata|Info|[Tt]raits|Cast|Policy|Params)\b"
)
"""Template arguments that say how a kernel reads its data, not what it does."""


@lru_cache(maxsize=1 << 12)
def short(name: str) -> str:
    """Return a kernel's name without its type, parameters and most template arguments; of a mangled one its parts.

    ``void at::native::reduce_kernel<512, 1, ReduceOp<float, MeanOps<float> > >(float*)`` is ``reduce_kernel<MeanOps>``,
    ``softmax<c10::Half, 10>(int)`` is ``softmax<Half>``, ``_ZN2at1fIiEEvPf`` is ``at::f``.
    """
    if len(name) > _LONGEST:
        return name
    if name.startswith("_Z"):
        return _QUALIFIER.sub("", _demangled(name)) or name
    text = _QUALIFIER.sub("", name.removesuffix(".kd"))
    if text.startswith("enable_if<"):
        text = text.partition("::type ")[2]
    head, arguments = _parts(text)
    if not head or head.endswith(" "):  # "Memcpy HtoD (Pinned -> Device)" is no function
        return name
    head = head.removeprefix("void ")
    told = list(dict.fromkeys(one for argument in arguments for one in _telling(argument)))
    if told and told[0].startswith("cutlass"):
        return told[0]  # its kernel is called Kernel, always
    told = told or list(dict.fromkeys(found[1] for one in arguments if (found := _FLOAT.match(one))))
    shown = [f"{head}<{', '.join(told[:most])}>" for most in (_MOST_TOLD, 1) if told]
    return next((one for one in shown if len(one) <= _MOST), head)


def _telling(argument: str, depth: int = 0) -> Iterator[str]:
    """Yield the names within a template argument that say what is done: of functions, not of what wraps them."""
    if argument.endswith(("*", "&")) or any(kind.match(argument) for kind in (_FILLER, _INTEGER, _FLOAT)):
        return
    head, arguments = _parts(argument)
    inner = [one for part in arguments for one in _telling(part, depth + 1)] if depth < _DEEPEST else []
    yield from inner or [head.rpartition("::")[2]]


def _parts(text: str) -> tuple[str, list[str]]:
    """Return what stands before the first bracket, and the template arguments where that is an angle."""
    begin = next((place for place, one in enumerate(text) if one in "<("), len(text))
    if text[begin : begin + 1] != "<":
        return text[:begin], []
    depth, last, arguments = 0, begin + 1, []
    for place in range(begin, len(text)):
        one = text[place]
        if one in "<([{":
            depth += 1
        elif one in ")]}" or (one == ">" and text[place - 1] != "-"):
            depth -= 1
        if (one == "," and depth == 1) or depth == 0:
            arguments.append(text[last:place].strip())
            last = place + 1
        if depth == 0:
            return text[:begin], arguments
    return text, []  # an angle that nothing closes is no template's


def _demangled(name: str) -> str:
    """Return the qualified name of a function mangled by the Itanium rules: each part after its length."""
    parts: list[str] = []
    place = 3 if name.startswith("_ZN") else 2
    while found := _PART.match(name, place):
        end = found.end() + int(found[1])
        parts.append(name[found.end() : end])
        place = end
    return "::".join(parts)
