"""Args: an operator's recorded inputs, read as shapes, types and values."""

import json
import math
from collections.abc import Sequence

PRECISION = {
    "double": "fp64", "float": "fp32", "c10::Half": "fp16", "c10::BFloat16": "bf16",
    "c10::Float8_e4m3fn": "fp8", "c10::Float8_e5m2": "fp8",
    "c10::Float8_e4m3fnuz": "fp8", "c10::Float8_e5m2fnuz": "fp8",
}  # fmt: skip
"""Kineto's type names → precision."""
_SIZE_BYTES = {
    "double": 8, "float": 4, "c10::Half": 2, "c10::BFloat16": 2, "long int": 8, "long": 8, "__int64": 8, "int": 4,
    "short int": 2, "short": 2, "signed char": 1, "unsigned char": 1, "bool": 1, "c10::complex<float>": 8,
    "c10::complex<double>": 16,
}  # fmt: skip
_TENSORS = frozenset((*_SIZE_BYTES, *PRECISION))
Shape = Sequence[int]


class Args:
    """An operator's recorded inputs.

    Args:
        dims: ``Input Dims``: a shape per input, a list of shapes for lists of tensors.
        types: ``Input type``.
        concrete: ``Concrete Inputs``: scalars and lists of them as text; missing before torch 2.0.
    """

    def __init__(self, dims: Sequence[object], types: Sequence[object], concrete: Sequence[object]) -> None:
        self.dims, self.types, self.concrete = dims, types, concrete

    def is_tensor(self, index: int) -> bool:
        """Return whether an input is one tensor."""
        return index < len(self.dims) and self.type(index) in _TENSORS

    def shape(self, index: int) -> Shape:
        """Return a tensor's sizes; raises LookupError where they are not recorded."""
        found = self.dims[index] if index < len(self.dims) else None
        if not isinstance(found, list) or not all(isinstance(side, int) for side in found):
            raise LookupError(index)
        return found

    def type(self, index: int) -> str:
        """Return the type name of an input, or empty."""
        return str(self.types[index]) if index < len(self.types) else ""

    def size(self, index: int) -> int:
        """Return the bytes of one element of an input."""
        kind = self.type(index)
        return _SIZE_BYTES.get(kind) or (1 if "Float8" in kind else 4)

    def tensor_bytes(self, *indices: int) -> int:
        """Return the bytes of some inputs, those that are no tensors left out."""
        return sum(math.prod(self.shape(index)) * self.size(index) for index in indices if self.is_tensor(index))

    def value(self, index: int) -> object:
        """Return a scalar or list input; raises LookupError where it is not recorded."""
        text = str(self.concrete[index]) if index < len(self.concrete) else ""
        if not text:
            raise LookupError(index)
        try:
            return json.loads(text.replace("True", "true").replace("False", "false"))
        except ValueError:
            raise LookupError(index) from None

    def integers(self, index: int, count: int) -> list[int]:
        """Return a list input stretched to one entry per side."""
        found = self.value(index)
        values = [int(value) for value in found] if isinstance(found, list) else [int(str(found))]
        return values * count if len(values) == 1 else values

    def flag(self, index: int, *, missing: bool) -> bool:
        """Return a truth value, or what to take where it is not recorded."""
        known = index < len(self.concrete) and bool(self.concrete[index])
        return bool(self.value(index)) if known else missing
