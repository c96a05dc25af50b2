"""``decompose-cube-root``: the real cube root as arithmetic.

Before::

    %r = stablehlo.cbrt %x : tensor<4xf64>

After: an estimate from a third of the exponent, a polynomial step, and one step of Newton's with an exact square.

IREE has no f64 form without a libm, and its f32 form is off by 11 ulp and NaN at infinity; f32 and half precision are
computed in f64. Source: FreeBSD msun s_cbrt.c (Sun Microsystems, 1993; B. D. Evans and D. Schultz).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.real_arithmetic import (
    REAL_TYPES,
    SUBNORMAL_EXPONENT,
    bits,
    from_bits,
    in_float64,
    is_regular,
    normalized,
    polynomial,
    with_sign_of,
)
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.series import CUBE_ROOT, THIRD_OF_EXPONENT

_ROUND = (1 << 31, ~((1 << 30) - 1) & (2**64 - 1))


def cube_root(x: Value) -> Value:
    """Cube root of float64, within 0.7 ulp."""
    normal, subnormal = normalized(ops.abs(x))
    # A third of the upper word, by multiplication: there is no vector division of integers.
    third = ((bits(normal) >> 32) * 0x55555556) >> 32
    estimate = from_bits((third + THIRD_OF_EXPONENT) << 32)
    estimate = estimate * polynomial((estimate * estimate) * (estimate / normal), CUBE_ROOT)
    # 23 bits, so that the square below is exact.
    estimate = from_bits((bits(estimate) + _ROUND[0]) & _ROUND[1])
    ratio = normal / (estimate * estimate)
    root = estimate + estimate * ((ratio - estimate) / (estimate + estimate + ratio))
    root = ops.select(subnormal, root * 2.0 ** (SUBNORMAL_EXPONENT // 3), root)
    return ops.select(is_regular(x), with_sign_of(root, x), x)


@pattern("stablehlo.cbrt")
def by_newton(op: ir.Operation) -> Replacement:
    """cbrt of f16, bf16, f32, f64 -> arithmetic; any shape."""
    operand = Value(op.operands[0])
    if operand.element_type.name not in REAL_TYPES:
        return NoMatch(f"no form for {operand.element_type}")
    return in_float64(cube_root, operand)


@register
@dataclass(frozen=True)
class DecomposeCubeRoot(PatternPass):
    """Replace cube roots of real floats by arithmetic."""

    name: ClassVar[str] = "decompose-cube-root"
    patterns: ClassVar[tuple[Pattern, ...]] = by_newton
