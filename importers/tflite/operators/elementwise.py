"""Elementwise arithmetic, comparisons and functions; activations; casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.element_types import Kind
from hloforge.dialect.values import Value
from hloforge.importers.tensors import Array, along, broadcast_to, cast, fill, lift, row_of, together
from hloforge.importers.tflite.activations import activated
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.registry import operator


def _numbers(node: Node, *numbers: int) -> list[Value]:
    """Inputs as the numbers that they represent, in their common shape."""
    return together(*(node.real(number) for number in numbers))


def _floor_div(a: Value, b: Value) -> Value:
    if a.element_type.is_float:
        return ops.floor(a / b)
    quotient, rest = ops.div(a, b), ops.rem(a, b)
    return ops.select(rest.ne(0) & ((rest < 0) ^ (b < 0)), quotient - 1, quotient)


def _floor_mod(a: Value, b: Value) -> Value:
    rest = ops.rem(a, b)
    return ops.select(rest.ne(0) & ((rest < 0) ^ (b < 0)), rest + b, rest)


_BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "ADD": ops.add,
    "SUB": ops.sub,
    "MUL": ops.mul,
    "DIV": ops.div,
    "FLOOR_DIV": _floor_div,
    "FLOOR_MOD": _floor_mod,
    "MAXIMUM": ops.max,
    "MINIMUM": ops.min,
    "POW": ops.pow,
    "ATAN2": ops.atan2,
    "SQUARED_DIFFERENCE": lambda a, b: (a - b) * (a - b),
    "EQUAL": ops.eq,
    "NOT_EQUAL": ops.ne,
    "LESS": ops.lt,
    "LESS_EQUAL": ops.le,
    "GREATER": ops.gt,
    "GREATER_EQUAL": ops.ge,
    "LOGICAL_AND": ops.and_,
    "LOGICAL_OR": ops.or_,
    "BITWISE_XOR": ops.xor,
}


@operator(*_BINARY)
def binary(node: Node) -> Value:
    return activated(node, _BINARY[node.name](*_numbers(node, 0, 1)))


@operator("RIGHT_SHIFT")
def right_shift(node: Node) -> Value:
    """Signed numbers keep their sign; from their width on, shifts leave nothing but it."""
    x, places = _numbers(node, 0, 1)
    signed = x.element_type.kind is Kind.SIGNED
    return (ops.shift_right_arithmetic if signed else ops.shift_right_logical)(x, places)


@operator("ADD_N")
def add_all(node: Node) -> Value:
    result, *others = _numbers(node, *range(node.count))
    for other in others:
        result = result + other
    return result


def _relu6(x: Value) -> Value:
    return ops.clamp(0.0, x, 6.0)


_UNARY: dict[str, Callable[[Value], Value]] = {
    "ABS": ops.abs,
    "CEIL": ops.ceil,
    "COMPLEX_ABS": ops.abs,
    "COS": ops.cos,
    "ELU": lambda x: ops.select(x > 0, x, ops.expm1(ops.min(x, 0.0))),
    "EXP": ops.exp,
    "FLOOR": ops.floor,
    "HARD_SWISH": lambda x: x * _relu6(x + 3.0) / 6.0,
    "IMAG": ops.imag,
    "LOG": ops.log,
    "LOGICAL_NOT": ops.not_,
    "LOGISTIC": ops.logistic,
    "NEG": ops.neg,
    "REAL": ops.real,
    "RELU": lambda x: ops.max(x, 0),
    "RELU6": _relu6,
    "RELU_0_TO_1": lambda x: ops.clamp(0.0, x, 1.0),
    "RELU_N1_TO_1": lambda x: ops.clamp(-1.0, x, 1.0),
    "ROUND": ops.round_nearest_even,
    "RSQRT": ops.rsqrt,
    "SIGN": ops.sign,
    "SIN": ops.sin,
    "SQRT": ops.sqrt,
    "SQUARE": lambda x: x * x,
    "TANH": ops.tanh,
}


@operator(*_UNARY)
def unary(node: Node) -> Value:
    return _UNARY[node.name](node.real(0))


@operator("LEAKY_RELU")
def leaky_relu(node: Node) -> Value:
    x = node.real(0)
    return ops.select(x >= 0, x, x * float(node.option("Alpha")))


@operator("PRELU")
def parametric_relu(node: Node) -> Value:
    x, slope = _numbers(node, 0, 1)
    return ops.select(x >= 0, x, x * slope)


@operator("GELU")
def gelu(node: Node) -> Value:
    x = node.real(0)
    if node.option("Approximate"):
        return 0.5 * x * (1.0 + ops.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + ops.erf(x * 0.7071067811865476))


@operator("SELECT", "SELECT_V2")
def select(node: Node) -> Value:
    """The early version takes a vector of conditions for the first dimension."""
    condition: Value | Array = node.tensor(0)
    one, other = (node.aligned(number) for number in (1, 2))
    if node.name == "SELECT" and len(node.dims(0)) == 1 and one.rank > 1:
        condition = along(lift(condition), 0, one.rank)
    pred, one, other = together(condition, one, other)
    return ops.select(pred, one, other)


@operator("CAST")
def convert(node: Node) -> Value:
    x, row = node.value(0), node.result().row
    if row.kind is Kind.PRED:
        return x.ne(full(x, 0))
    if x.element_type.is_complex and not row.is_complex:
        x = ops.real(x)
    if row.is_complex and not x.element_type.is_complex:
        real = cast(x, "f32")
        return cast(ops.complex(real, full(real, 0)), row)
    return cast(x, row)


@operator("BITCAST")
def bit_cast(node: Node) -> Value:
    x, row = node.value(0), node.result().row
    return ops.bitcast_convert_type(x, row)


@operator("ZEROS_LIKE")
def zeros_like(node: Node) -> Value:
    x = node.value(0)
    return full(x, False if x.element_type.kind is Kind.PRED else 0)


@operator("FAKE_QUANT")
def fake_quant(node: Node) -> Value:
    """Numbers rounded to those that integers of some bits would represent; the range is moved so that zero is one."""
    x = node.value(0)
    least, most = float(node.option("Min")), float(node.option("Max"))
    low, high = float(bool(node.option("NarrowRange"))), float((1 << int(node.option("NumBits"))) - 1)
    scale = np.float32((most - least) / (high - low))
    zero = np.clip(np.floor(low - least / scale + 0.5), low, high)
    first, last = (low - zero) * scale, (high - zero) * scale
    bounded = ops.clamp(float(first), x, float(last))
    return ops.floor((bounded - float(first)) / float(scale) + 0.5) * float(scale) + float(first)


@operator("QUANTIZE", "DEQUANTIZE")
def requantize(node: Node) -> Value:
    """The walk quantizes the numbers for what the output's tensor says."""
    return cast(node.real(0), "f32")


@operator("BROADCAST_TO")
def broadcast(node: Node) -> Value:
    return broadcast_to(node.value(0), node.integers(1))


@operator("FILL")
def filled(node: Node) -> Value:
    element: Any = node.value(1)
    return ops.broadcast_in_dim(ops.reshape(element, []), node.integers(0), [])


@operator("ONE_HOT")
def one_hot(node: Node) -> Value:
    """``on`` where the number is the position along a new axis, ``off`` elsewhere."""
    places, depth = node.value(0), node.integers(1)[0]
    axis = node.option("Axis") % (places.rank + 1) if node.option("Axis") >= 0 else places.rank
    dims = [*places.dims[:axis], depth, *places.dims[axis:]]
    spread = ops.broadcast_in_dim(places, dims, [d for d in range(len(dims)) if d != axis])
    hit = spread.eq(ops.iota(row_of(places), dims, axis))
    on, off = (ops.broadcast_in_dim(ops.reshape(node.value(number), []), dims, []) for number in (2, 3))
    return ops.select(hit, on, off)


@operator("RANGE")
def range_(node: Node) -> Value:
    """Numbers known beforehand are folded; here some come with the call."""
    start, stop, step = (node.known(number).item() for number in range(3))
    return lift(np.arange(start, stop, step).astype(node.result().row.dtype))


@operator("SHAPE", "RANK", "BROADCAST_ARGS")
def sizes(node: Node) -> Value:
    """All sizes are known while a model is imported, so these are folded unless an input comes with the call."""
    return lift(np.asarray(np.broadcast_shapes(*(node.integers(number) for number in range(node.count))), np.int64))


@operator("BUCKETIZE")
def bucketize(node: Node) -> Value:
    """How many of ascending boundaries are no greater."""
    x = node.real(0)
    boundaries = np.asarray(node.listed_floats("Boundaries"), np.float32)
    result = fill(x.dims, 0, "s32")
    for boundary in boundaries:
        result = result + cast(cast(x, "f32") >= float(boundary), "s32")
    return result
