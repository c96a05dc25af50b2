"""Elementwise arithmetic, comparisons, logic and activations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.element_types import ElementType, Kind
from hloforge.dialect.emission import emit
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once
from hloforge.importers.onnx.texts import is_text
from hloforge.importers.tensors import along, cast, together

_BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "Add": ops.add,
    "And": ops.and_,
    "BitwiseAnd": ops.and_,
    "BitwiseOr": ops.or_,
    "BitwiseXor": ops.xor,
    # Integers are divided towards zero, in ONNX as in XLA.
    "Div": ops.div,
    "Equal": ops.eq,
    "Greater": ops.gt,
    "GreaterOrEqual": ops.ge,
    "Less": ops.lt,
    "LessOrEqual": ops.le,
    "Mul": ops.mul,
    "Or": ops.or_,
    "Sub": ops.sub,
    "Xor": ops.xor,
}
_UNARY: dict[str, Callable[[Value], Value]] = {
    "Abs": ops.abs,
    "BitwiseNot": ops.not_,
    "Ceil": ops.ceil,
    "Cos": ops.cos,
    "Erf": ops.erf,
    "Exp": ops.exp,
    "Floor": ops.floor,
    "Log": ops.log,
    "Neg": ops.neg,
    "Not": ops.not_,
    "Round": ops.round_nearest_even,
    "Sigmoid": ops.logistic,
    "Sign": ops.sign,
    "Sin": ops.sin,
    "Sqrt": ops.sqrt,
    "Tan": ops.tan,
    "Tanh": ops.tanh,
}
# Functions that StableHLO lacks and CHLO has.
_CHLO = ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh")


@operator(*_BINARY, since=7)
def binary(node: Node) -> Value:
    return _BINARY[node.name](*together(node.tensor(0), node.tensor(1)))


@operator(
    *(name for name in _BINARY if name in ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Sub", "Xor"))
)
def binary_by_axis(node: Node) -> Value:
    """Before version 7 the second operand is placed at ``axis``, if ``broadcast`` says so."""
    lhs, rhs = node.value(0), node.value(1)
    if node.attribute("broadcast", 0) and rhs.rank < lhs.rank:
        start = int(node.attribute("axis", lhs.rank - rhs.rank))
        rhs = ops.reshape(rhs, [1] * start + list(rhs.dims) + [1] * (lhs.rank - start - rhs.rank))
    return _BINARY[node.name](*together(lhs, rhs))


@operator(*_UNARY)
def unary(node: Node) -> Value:
    return _UNARY[node.name](node.value(0))


@operator(*_CHLO)
def from_chlo(node: Node) -> Value:
    x = node.value(0)
    return emit(f"chlo.{node.name.lower()}", [x], x.shape)


@operator("Reciprocal")
def reciprocal(node: Node) -> Value:
    return 1.0 / node.value(0)


@operator("Max", "Min", "Sum", "Mean")
@rounds_once
def variadic(node: Node) -> Value:
    values = together(*(node.tensor(number) for number in range(len(node.inputs))))
    combine: Callable[[Any, Any], Any] = {"Max": ops.max, "Min": ops.min}.get(node.name, ops.add)
    result = functools.reduce(combine, values)
    return result / float(len(values)) if node.name == "Mean" else result


@operator("Pow")
def power(node: Node) -> Value:
    """The result has the base's element type, whatever the exponent's is."""
    row, given = node.row(), node.tensor(1)
    if row.is_float and isinstance(given, np.ndarray):
        # A known exponent stays one, of which powers are products.
        given = given.astype(row.dtype)
    base, exponent = together(node.tensor(0), given)
    if row == exponent.element_type:
        return ops.pow(base, exponent)
    if row.is_float:
        return ops.pow(base, cast(exponent, row))
    if exponent.element_type.is_float:
        return cast(ops.pow(cast(base, exponent.element_type), exponent), row)
    return ops.pow(base, cast(exponent, row))


@operator("Mod")
@rounds_once
def modulo(node: Node) -> Value:
    """C's remainder with ``fmod``; else Python's, which has the divisor's sign."""
    dividend, divisor = together(node.tensor(0), node.tensor(1))
    rest = ops.rem(dividend, divisor)
    if node.attribute("fmod", 0) or dividend.element_type.kind is Kind.UNSIGNED:
        return rest
    other_side = ops.and_(rest.ne(0), ops.ne(rest < 0, divisor < 0))
    return ops.select(other_side, rest + divisor, rest)


@operator("BitShift")
def shift(node: Node) -> Value:
    value, bits = together(node.tensor(0), node.tensor(1))
    return value << bits if node.attribute("direction") == "LEFT" else value >> bits


@operator("IsNaN")
def is_nan(node: Node) -> Value:
    x = node.value(0)
    return x.ne(x)


@operator("IsInf")
def is_infinite(node: Node) -> Value:
    x = node.value(0)
    x = cast(x, "f32") if x.element_type.bits < 32 else x
    found = full(x, False, "pred")
    if node.attribute("detect_positive", 1):
        found = found | x.eq(float("inf"))
    if node.attribute("detect_negative", 1):
        found = found | x.eq(float("-inf"))
    return found


@operator("Where")
def where(node: Node) -> Value:
    condition, one, other = together(node.tensor(0), node.tensor(1), node.tensor(2))
    return ops.select(condition, one, other)


@operator("Clip")
def clip(node: Node) -> Value:
    """Bounds are attributes before version 11, inputs from then on; the upper one is applied last."""
    x = node.value(0)
    for number, name, bound in ((1, "min", ops.max), (2, "max", ops.min)):
        if node.has(number):
            x, limit = together(x, node.tensor(number))
            x = bound(x, limit)
        elif node.attribute(name) is not None:
            x = bound(x, full(x, node.attribute(name)))
    return x


@operator("Relu")
def relu(node: Node) -> Value:
    return ops.max(node.value(0), 0)


@operator("LeakyRelu")
def leaky_relu(node: Node) -> Value:
    x = node.value(0)
    return ops.select(x >= 0, x, x * float(node.attribute("alpha", 0.01)))


@operator("PRelu")
def parametric_relu(node: Node) -> Value:
    x, slope = node.value(0), node.value(1)
    if node.version < 7 and slope.rank == 1 and x.rank > 1:
        slope = along(slope, 1, x.rank)
    x, slope = together(x, slope)
    return ops.select(x >= 0, x, x * slope)


@operator("Elu", "Celu", "Selu")
@rounds_once
def exponential_linear(node: Node) -> Value:
    x = node.value(0)
    alpha = float(node.attribute("alpha", 1.67326319217681884765625 if node.name == "Selu" else 1.0))
    if node.name == "Celu":
        return ops.max(x, 0) + ops.min(alpha * ops.expm1(x / alpha), 0)
    gamma = float(node.attribute("gamma", 1.05070102214813232421875)) if node.name == "Selu" else 1.0
    return gamma * ops.select(x > 0, x, alpha * ops.expm1(x))


@operator("HardSigmoid")
@rounds_once
def hard_sigmoid(node: Node) -> Value:
    alpha, beta = float(node.attribute("alpha", 0.2)), float(node.attribute("beta", 0.5))
    return ops.clamp(0.0, alpha * node.value(0) + beta, 1.0)


@operator("HardSwish")
@rounds_once
def hard_swish(node: Node) -> Value:
    x = node.value(0)
    return x * ops.clamp(0.0, x / 6.0 + 0.5, 1.0)


@operator("Softplus")
@rounds_once
def softplus(node: Node) -> Value:
    return _softplus(node.value(0))


def _softplus(x: Value) -> Value:
    return ops.max(x, 0) + ops.log1p(ops.exp(-ops.abs(x)))


@operator("Mish")
@rounds_once
def mish(node: Node) -> Value:
    x = node.value(0)
    return x * ops.tanh(_softplus(x))


@operator("Swish")
@rounds_once
def swish(node: Node) -> Value:
    x = node.value(0)
    return x * ops.logistic(float(node.attribute("alpha", 1.0)) * x)


@operator("Gelu")
@rounds_once
def gelu(node: Node) -> Value:
    x = node.value(0)
    if node.attribute("approximate", "none") == "tanh":
        return 0.5 * x * (1.0 + ops.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + ops.erf(x * 0.7071067811865476))


@operator("Softsign")
@rounds_once
def softsign(node: Node) -> Value:
    x = node.value(0)
    return x / (1.0 + ops.abs(x))


@operator("ThresholdedRelu")
def thresholded_relu(node: Node) -> Value:
    x = node.value(0)
    return ops.select(x > float(node.attribute("alpha", 1.0)), x, full(x, 0))


@operator("Shrink")
@rounds_once
def shrink(node: Node) -> Value:
    x = node.value(0)
    threshold, bias = float(node.attribute("lambd", 0.5)), float(node.attribute("bias", 0.0))
    row = x.element_type
    wide = x if row.is_float else cast(x, "f32")
    shrunk = ops.select(wide < -threshold, wide + bias, ops.select(wide > threshold, wide - bias, full(wide, 0)))
    return cast(shrunk, row)


@operator("Dropout")
def dropout(node: Node) -> Any:
    """Inference; in training ``training_mode`` draws numbers, which random.py does."""
    x = node.value(0)
    training = node.has(2) and bool(node.known(2))
    ratio = float(node.known(1)) if training and node.has(1) else float(node.attribute("ratio", 0.5))
    if training and ratio > 0:
        from hloforge.importers.onnx.operators.random import uniform

        kept = uniform(node, x.dims, "f32") >= ratio
        dropped = ops.select(kept, x / (1.0 - ratio), full(x, 0))
        return Outputs([dropped, kept])
    return Outputs([x, full(x, True, "pred")])


@operator("Identity")
def identity(node: Node) -> Any:
    return node.inputs[0]


# Of ``TensorProto.DataType``.
_STRING = 8


@operator("CastLike", "Cast")
def convert(node: Node) -> Any:
    if is_text(node.inputs[0]):
        if int(node.attribute("to", _STRING)) == _STRING:
            return node.inputs[0]
        raise UnsupportedError("strings are numbers in a program, and are not read as others")
    x = node.value(0)
    row = node.row(1) if node.name == "CastLike" else node.dtype("to")
    from_row = x.element_type
    if row == from_row:
        return x
    if row.kind is Kind.PRED:
        return x.ne(0)
    if row.name == "f8e8m0fnu":
        return _to_exponent(x, row, bool(node.attribute("saturate", 1)), str(node.attribute("round_mode", "up")))
    if row.is_float and row.bits <= 8:
        return to_narrow_float(x, row, saturate=bool(node.attribute("saturate", 1)))
    if from_row.is_float and row.is_sub_byte:
        # Of numbers out of range the low bits remain.
        return cast(cast(x, "s32"), row)
    return cast(x, row)


def to_narrow_float(x: Value, row: ElementType, *, saturate: bool) -> Value:
    """Out of range, the greatest number with ``saturate``; else what the type has for it (infinity, NaN)."""
    wide = cast(x, "f32") if x.element_type.bits < 32 or not x.element_type.is_float else x
    if saturate:
        most = float(ml_dtypes.finfo(row.dtype).max)
        wide = ops.select(wide.ne(wide), wide, ops.clamp(-most, wide, most))
    return cast(wide, row)


def _to_exponent(x: Value, row: ElementType, saturate: bool, mode: str) -> Value:
    """To the type that is an exponent alone: that of f32, which its mantissa rounds up or down."""
    bits = ops.bitcast_convert_type(ops.abs(cast(x, "f32")), "u32")
    exponent, mantissa = ops.shift_right_logical(bits, full(bits, 23)), bits & full(bits, 0x7FFFFF)
    # Below the least normal number a mantissa of one half is the least power itself.
    half = full(bits, 0x400000)
    exact = ops.select(exponent.eq(0), half, full(bits, 0))
    rounds = {"up": mantissa > exact, "nearest": (mantissa >= half) & exponent.ne(0) | (mantissa > half)}
    infinite = exponent.eq(255)
    rounded = exponent + cast(rounds[mode], "u32") if mode in rounds else exponent
    rounded = ops.min(rounded, 254 if saturate else 255)
    beyond = ops.select(mantissa.ne(0), full(bits, 255), full(bits, 254 if saturate else 255))
    return ops.bitcast_convert_type(cast(ops.select(infinite, beyond, rounded), "u8"), row)
