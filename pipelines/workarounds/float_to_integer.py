"""``legalize-float-to-integer``: conversions that saturate, and turn NaN into 0; of complex numbers, the real part.

Before::

    %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi8>

After::

    %0 = convert(clamp(-128.0, %x, 127.0)), then 127 where %x > 127.0, -128 where %x < -128.0, 0 where %x is NaN

The backend's instruction is undefined outside the integer's range; XLA saturates. Source: XLA "ConvertElementType".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType, Kind
from hloforge.dialect.emission import emit
from hloforge.dialect.marks import IN_RANGE
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import may_overflow_an_integer
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.convert")
def saturating(op: ir.Operation) -> Replacement:
    """Clamp before the conversion, and pick the limits and NaN's zero after it."""
    if not may_overflow_an_integer(op):
        return NoMatch("not a conversion from float to integer")
    x, target = Value(op.operands[0]), Value(op.results[0]).element_type
    if x.element_type.is_complex:
        x = ops.real(x)
    low, high = float_limits(x.element_type, target)
    clamped = ops.min(ops.max(x, low), high)
    result = emit("stablehlo.convert", [clamped], op.results[0].type, **{IN_RANGE: ir.UnitAttr.get()})
    least, greatest = integer_limits(target)
    result = ops.select(x > high, greatest, result)
    result = ops.select(x < low, least, result)
    return ops.select(x.ne(x), 0, result)


def integer_limits(target: ElementType) -> tuple[int, int]:
    """The least and greatest value of an integer type."""
    if target.kind is Kind.SIGNED:
        return -(2 ** (target.bits - 1)), 2 ** (target.bits - 1) - 1
    return 0, 2**target.bits - 1


def float_limits(source: ElementType, target: ElementType) -> tuple[float, float]:
    """The least and greatest finite float of ``source`` inside the integer type ``target``."""
    least, greatest = integer_limits(target)
    info = ml_dtypes.finfo(source.dtype)
    return float(max(least, float(info.min))), _at_most(greatest, source.dtype)


def _at_most(limit: int, dtype: np.dtype[Any]) -> float:
    """The greatest finite value of a float type that is at most ``limit``."""
    info = ml_dtypes.finfo(dtype)
    if float(info.max) <= limit:
        return float(info.max)
    rounded = np.asarray(limit).astype(dtype)
    if int(float(rounded)) > limit:
        rounded = np.nextafter(rounded, np.asarray(0).astype(dtype))
    return float(rounded)


@register
@dataclass(frozen=True)
class LegalizeFloatToInteger(PatternPass):
    """Make every conversion from a float to an integer type saturate."""

    name: ClassVar[str] = "legalize-float-to-integer"
    patterns: ClassVar[tuple[Pattern, ...]] = saturating
