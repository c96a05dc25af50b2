"""``decompose-trigonometric``: sine, cosine and tan of real floats as arithmetic.

Before::

    %s = stablehlo.sine %x : tensor<4xf64>

After: the angle modulo pi/2 in integers, two polynomials, and a choice by quadrant.

IREE has no f64 form of these (they need a libm, which its linker lacks), and its f32 form loses all digits above about
1e5 and the sign of -0. Half precision and f32 are computed in f64 with shorter polynomials.
Polynomials: FreeBSD msun k_sin.c, k_cos.c, k_sindf.c, k_cosdf.c (Sun Microsystems, 1993).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.angle_reduction import Reduced, reduce_float32, reduce_float64
from hloforge.pipelines.decompose.real_arithmetic import (
    REAL_TYPES,
    SIGN,
    Pair,
    bits,
    fast_two_sum,
    from_bits,
    narrowed,
    polynomial,
    quotient,
    widened,
)
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.series import COSINE, SHORT_COSINE, SHORT_SINE, SINE

# Below it, x^3/3 is under half an ulp of x in every float type.
_TINY = 2.0**-28


def _sine_and_cosine(angle: Reduced) -> tuple[Pair, Pair]:
    """Sine and cosine of the rest, each as a float64 and a correction."""
    r, low = angle.high, angle.low
    assert low is not None
    square = r * r
    cube = square * r
    tail = polynomial(square, SINE[1:])
    sine = -((square * (low * 0.5 - cube * tail) - low) - cube * SINE[0])
    half = square * 0.5
    whole = 1.0 - half
    cosine = ((1.0 - whole) - half) + (square * square * polynomial(square, COSINE) - r * low)
    return (r, sine), (whole, cosine)


def _short_sine_and_cosine(angle: Reduced) -> tuple[Value, Value]:
    """The same to 32 bits, for results that are rounded to float32."""
    r = angle.high
    square = r * r
    return r + (square * r) * polynomial(square, SHORT_SINE), square * polynomial(square, SHORT_COSINE) + 1.0


def _odd(angle: Reduced) -> Value:
    # The sign bit decides: vector units choose by it without a comparison.
    return ops.bitcast_convert_type(angle.quadrant << 63, "s64") < 0


def _negated_if(value: Value, word: Value) -> Value:
    """``value`` with its sign changed where the highest bit of ``word`` is set."""
    return from_bits(bits(value) ^ (word & SIGN))


def _valid(x: Value, result: Value) -> Value:
    """NaN for infinite angles and NaN."""
    return ops.select(ops.abs(x) < inf, result, nan)


def _sine(x: Value, sine: Value, cosine: Value, angle: Reduced) -> Value:
    chosen = ops.select(_odd(angle), cosine, sine)
    return _negated_if(chosen, (angle.quadrant << 62) ^ bits(x))


def _cosine(_: Value, sine: Value, cosine: Value, angle: Reduced) -> Value:
    chosen = ops.select(_odd(angle), sine, cosine)
    return _negated_if(chosen, (angle.quadrant + 1) << 62)


def _signed_tangent(x: Value, ratio: Value, angle: Reduced) -> Value:
    """tan of the angle from sin/cos of the rest, or cos/sin in odd quadrants, where tan is minus the cotangent."""
    return _negated_if(ratio, (angle.quadrant << 63) ^ bits(x))


def _long_tangent(x: Value) -> Value:
    angle = reduce_float64(x)
    sine, cosine = (fast_two_sum(*pair) for pair in _sine_and_cosine(angle))
    odd = _odd(angle)
    numerator = ops.select(odd, cosine[0], sine[0]), ops.select(odd, cosine[1], sine[1])
    denominator = ops.select(odd, sine[0], cosine[0]), ops.select(odd, sine[1], cosine[1])
    return _signed_tangent(x, quotient(numerator, denominator), angle)


def _short_tangent(x: Value) -> Value:
    angle = reduce_float32(x)
    sine, cosine = _short_sine_and_cosine(angle)
    odd = _odd(angle)
    return _signed_tangent(x, ops.select(odd, cosine, sine) / ops.select(odd, sine, cosine), angle)


def _long(finish: Callable[..., Value]) -> Callable[[Value], Value]:
    def build(x: Value) -> Value:
        angle = reduce_float64(x)
        sine, cosine = _sine_and_cosine(angle)
        return finish(x, sine[0] + sine[1], cosine[0] + cosine[1], angle)

    return build


def _short(finish: Callable[..., Value]) -> Callable[[Value], Value]:
    def build(x: Value) -> Value:
        angle = reduce_float32(x)
        return finish(x, *_short_sine_and_cosine(angle), angle)

    return build


_LONG = {"stablehlo.sine": _long(_sine), "stablehlo.cosine": _long(_cosine), "stablehlo.tan": _long_tangent}
_SHORT = {"stablehlo.sine": _short(_sine), "stablehlo.cosine": _short(_cosine), "stablehlo.tan": _short_tangent}


@pattern(*_LONG)
def by_quadrant(op: ir.Operation) -> Replacement:
    """sine, cosine, tan of f16, bf16, f32, f64 -> reduction modulo pi/2 and polynomials; any shape."""
    operand = Value(op.operands[0])
    row = operand.element_type
    if row.name not in REAL_TYPES:
        return NoMatch(f"no form for {row}")
    x = widened(operand)
    # The short reduction makes NaN of infinities by itself.
    result = _valid(x, _LONG[op.name](x)) if row.name == "f64" else narrowed(_SHORT[op.name](x), row.name)
    if op.name == "stablehlo.cosine":
        return result
    # Both are the identity here to the last bit, and runtimes that flush subnormals in arithmetic do not in selection.
    return ops.select(ops.abs(operand) < _TINY, operand, result)


@register
@dataclass(frozen=True)
class DecomposeTrigonometric(PatternPass):
    """Replace sine, cosine and tan of real floats by arithmetic."""

    name: ClassVar[str] = "decompose-trigonometric"
    patterns: ClassVar[tuple[Pattern, ...]] = by_quadrant
