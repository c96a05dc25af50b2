"""``decompose-exponential``: float64 exp, expm1, logistic, log1p and tanh as arithmetic.

Before::

    %e = stablehlo.exponential %x : tensor<4xf64>

After: e^x = 2^k e^r with r = x - k ln 2, the last factor by a polynomial, 2^k by adding k to the exponent's bits.

IREE calls a scalar exp for each element, computes exp(x) - 1 and log(1 + x) literally, which leaves no digit near 0,
and has no f64 tanh without a libm. Its log is right to half an ulp and stays. Sources: P. Tang, "Table-driven
implementation of the Expm1 function", ACM TOMS 18 (1992); W. Kahan's log1p, HP-15C Advanced Functions Handbook (1982).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.real_arithmetic import (
    EXPONENT_OF_ONE,
    INTEGER_ORIGIN,
    bits,
    fast_two_sum,
    from_bits,
    two_sum,
    with_sign_of,
)
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.polynomials import estrin
from hloforge.pipelines.series import EXPONENTIAL_CUBE, EXPONENTIAL_SQUARE, LN2

_LOG2_E = 1.4426950408889634
# Above, e^x overflows; below the second, it is no normal number; below the third, e^x - 1 rounds to -1.
_LARGEST, _LEAST_NORMAL, _SMALLEST = 709.782712893384, -708.3964185322641, -60.0
# Below it, each of these functions is the identity to the last bit.
_TINY = 2.0**-54


@dataclass(frozen=True)
class _Reduced:
    """``x = k ln 2 + rest + error``, with ``|rest|`` at most half of ln 2.

    Attributes:
        exponent: u64, k where a float64 has its exponent, modulo 2^64.
    """

    exponent: Value
    rest: Value
    error: Value


def _reduced(x: Value) -> _Reduced:
    """Of float64 below 2^20 in magnitude; other numbers give meaningless ones."""
    shifted = x * _LOG2_E + INTEGER_ORIGIN
    turns = shifted - INTEGER_ORIGIN
    high, low = x - turns * LN2[0], turns * LN2[1]
    rest = high - low
    return _Reduced(bits(shifted) << 52, rest, (high - rest) - low)


def _times_power_of_two(x: Value, exponent: Value) -> Value:
    """``x * 2**k`` where both are normal numbers; ``exponent`` as of ``_Reduced``."""
    return from_bits(bits(x) + exponent)


def exp(x: Value) -> Value:
    """e^x of float64, within 0.52 ulp; 0 where it would be subnormal."""
    reduced = _reduced(x)
    r = reduced.rest
    whole, rounding = fast_two_sum(full(x, 1.0), r)
    value = whole + (r * r * estrin(r, EXPONENTIAL_SQUARE) + (rounding + reduced.error))
    result = ops.select(x <= _LARGEST, _times_power_of_two(value, reduced.exponent), x * inf)
    return ops.select(x < _LEAST_NORMAL, 0.0, result)


def logistic(x: Value) -> Value:
    """1 / (1 + e^-x) of float64."""
    return 1.0 / (exp(-x) + 1.0)


def expm1(x: Value) -> Value:
    """e^x - 1 of float64, within an ulp."""
    result = ops.select(x <= _LARGEST, _expm1(x), x * inf)
    return ops.select(ops.abs(x) < _TINY, x, ops.select(x < _SMALLEST, -1.0, result))


def _expm1(x: Value) -> Value:
    """The same between the numbers where it is -1 and where it overflows."""
    reduced = _reduced(x)
    r, error = reduced.rest, reduced.error
    tail = r * r * (estrin(r, EXPONENTIAL_CUBE) * r + 0.5) + (error + error * r)
    # 2^-k; where it is no normal number it is far below an ulp, and its sign bit says so.
    inverse = from_bits(EXPONENT_OF_ONE - reduced.exponent)
    whole, rest = two_sum(1.0 - ops.max(inverse, 0.0), r)
    return _times_power_of_two(whole + (rest + tail), reduced.exponent)


def log1p(x: Value) -> Value:
    """ln(1 + x) of float64, within an ulp: the logarithm of the rounded sum and a correction for its rounding."""
    total, error = two_sum(full(x, 1.0), x)
    correction = error / total
    regular = (total > 0.0) & (total < inf)
    result = ops.log(total) + ops.select(regular, correction, 0.0)
    return ops.select(ops.abs(x) < _TINY, x, result)


def tanh(x: Value) -> Value:
    """Hyperbolic tangent of float64: t / (2 - t) with t = 1 - e^(-2|x|)."""
    magnitude = ops.abs(x)
    rise = ops.select(magnitude > -_SMALLEST, 1.0, -_expm1(magnitude * -2.0))
    # NaN too comes out as it went in: integers have been added to the bits of the other branch's.
    return ops.select(magnitude >= _TINY, with_sign_of(rise / (2.0 - rise), x), x)


_FUNCTIONS = {
    "stablehlo.exponential": exp,
    "stablehlo.exponential_minus_one": expm1,
    "stablehlo.log_plus_one": log1p,
    "stablehlo.logistic": logistic,
    "stablehlo.tanh": tanh,
}


@pattern(*_FUNCTIONS)
def without_cancellation(op: ir.Operation) -> Replacement:
    """exp, expm1, logistic, log1p, tanh of f64 -> arithmetic, and IREE's log; any shape."""
    operand = Value(op.operands[0])
    if operand.element_type.name != "f64":
        return NoMatch("not f64")
    return _FUNCTIONS[op.name](operand)


@register
@dataclass(frozen=True)
class DecomposeExponential(PatternPass):
    """Replace float64 exp, expm1, logistic, log1p and tanh by arithmetic."""

    name: ClassVar[str] = "decompose-exponential"
    patterns: ClassVar[tuple[Pattern, ...]] = without_cancellation
