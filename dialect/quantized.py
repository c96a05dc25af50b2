"""StableHLO's quantized element types, which XLA does not have: integers that represent ``(integer - zero) * scale``.

Source: StableHLO spec "Quantized types".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.dialect.constants import constant
from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value

_HEAD = re.compile(r"^!quant\.uniform<([iu])(\d+)(?:<(-?\d+):(-?\d+)>)?:(\w+)(?::(\d+))?,")


@dataclass(frozen=True)
class Quantized:
    """A uniform quantized element type.

    Attributes:
        storage: the integer type of its values.
        expressed: the float type of what they represent.
        low, high: the least and greatest stored value.
        axis: the dimension along which scales and zeros vary; None if there is one of each.
        scales: in the expressed type, ``[]`` or ``[n]``.
        zeros: s64, of the same shape.
    """

    storage: ElementType
    expressed: ElementType
    low: int
    high: int
    axis: int | None
    scales: np.ndarray[Any, Any]
    zeros: np.ndarray[Any, Any]

    def spread(self, numbers: np.ndarray[Any, Any], dtype: Any, like: Value) -> Value:
        """Scales or zeros as an array of the shape of ``like`` (whose sizes may be dynamic except for the axis)."""
        if self.axis is None:
            return constant(numbers, dtype)
        sizes = [len(numbers) if d == self.axis else 1 for d in range(like.rank)]
        return constant(numbers.reshape(sizes), dtype)


def is_quantized(type_: ir.Type) -> bool:
    """Whether an MLIR type is a tensor of quantized elements."""
    return isinstance(type_, ir.RankedTensorType) and str(type_.element_type).startswith("!quant")


def storage_of(type_: Any) -> ir.RankedTensorType:
    """The tensor type of the integers of a quantized tensor type."""
    match = _head(type_.element_type)
    return ir.RankedTensorType.get(type_.shape, ir.Type.parse(("ui" if match[1] == "u" else "i") + match[2]))


def _head(element: ir.Type) -> re.Match[str]:
    match = _HEAD.match(str(element))
    if match is None:
        raise ValueError(f"{element} is no uniform quantized type of StableHLO")
    return match


def quantized(element: ir.Type) -> Quantized:
    """The parameters of a quantized element type.

    Raises:
        ValueError: another kind of quantized type (``!quant.any``, sub-channel).
    """
    match = _head(element)
    text = str(element)
    unsigned, bits = match[1] == "u", int(match[2])
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if match[3] is not None:
        low, high = int(match[3]), int(match[4])
    axis = None if match[6] is None else int(match[6])
    # Scales are printed with all of their digits.
    entries = [entry.partition(":") for entry in text[match.end() :].strip(" {}>").split(",")]
    expressed = element_type(match[5])
    scales = np.array([float(scale) for scale, _, _ in entries]).astype(expressed.dtype)
    zeros = np.array([int(zero or 0) for _, _, zero in entries], np.int64)
    shape = [] if axis is None else [len(entries)]
    return Quantized(
        element_type(f"{'u' if unsigned else 's'}{bits}"),
        expressed,
        low,
        high,
        axis,
        scales.reshape(shape),
        zeros.reshape(shape),
    )
