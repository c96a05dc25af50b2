"""Operations for which padding is nothing special, if it is at the same places in all operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.operations import integer
from hloforge.dialect.traits import ELEMENTWISE, QUANTIZATIONS
from hloforge.dialect.values import Value
from hloforge.pipelines.padding.frame import Frame, refuse, rule
from hloforge.pipelines.padding.sizes import Number

_CHLO = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "conj", "cosh", "digamma", "erf", "erf_inv"),
    *("erfc", "is_inf", "is_neg_inf", "is_pos_inf", "lgamma", "next_after", "polygamma", "sinh", "square", "tan"),
    *("zeta", "asin_acos_kernel", "_asin_acos_kernel"),
)


@rule(
    *sorted((ELEMENTWISE | QUANTIZATIONS) - {"stablehlo.bitcast_convert"}),
    *(f"chlo.{name}" for name in _CHLO),
    *("map", "rng"),
)
def elementwise(frame: Frame, op: Any) -> None:
    result = op.results[0]
    rank = len(result.type.shape)
    if op.name == "stablehlo.rng":
        frame.set(result, frame.prefixes(result))
        return
    places = [n for n, operand in enumerate(op.operands) if len(operand.type.shape) == rank]
    values, layout = frame.together([Value(op.operands[number]) for number in places])
    for number, value in zip(places, values, strict=True):
        op.operands[number] = value.ir
    frame.set(result, layout)


@rule("optimization_barrier")
def barrier(frame: Frame, op: Any) -> None:
    for operand, result in zip(op.operands, op.results, strict=True):
        frame.set(result, frame.layout(operand))


@rule("batch_norm_inference")
def batch_norm(frame: Frame, op: Any) -> None:
    layout = frame.layout(op.operands[0])
    if layout[integer(op, "feature_index")] is not None:
        raise refuse(op, "its features have an open size")
    frame.set(op.results[0], layout)


@rule("rng_bit_generator")
def random_bits(frame: Frame, op: Any) -> None:
    for result in op.results:
        frame.set(result, frame.prefixes(result))


@rule("iota")
def iota(frame: Frame, op: Any) -> None:
    along = integer(op, "iota_dimension")
    others = [d for d in range(len(op.results[0].type.shape)) if d != along]
    frame.set(op.results[0], frame.prefixes(op.results[0], uniform=others))


@rule("constant")
def constants(frame: Frame, op: Any) -> None:
    """What depends on a size is computed of it; of an array that grows with a size, padding is what comes later."""
    result = op.results[0]
    place = frame.place(op)
    found = frame.family.numbers(place)
    if found is None:
        rank = len(result.type.shape)
        frame.set(result, frame.prefixes(result, uniform=range(rank) if frame.family.is_splat(place) else ()))
        return
    shape, numbers = found
    value = Value(result)
    row = value.element_type
    if not shape:
        wide = ops.broadcast_in_dim(_scalar(frame, numbers[0], row), list(value.dims), [])
        frame.replace(op, [wide], [frame.prefixes(result, uniform=range(value.rank))])
        return
    flat = constant_of(op).reshape(-1)
    parts = []
    for element, number in zip(flat, numbers, strict=True):
        is_fixed = number.size.number is not None
        scalar = constant(element, row) if is_fixed else _scalar(frame, number, row)
        parts.append(ops.reshape(scalar, [1]))
    made = ops.reshape(ops.concat_in_dim(parts, 0), list(shape))
    frame.replace(op, [made], [[None] * len(shape)])


def _scalar(frame: Frame, number: Number, row: Any) -> Value:
    size = frame.size(number.size)
    if number.form == "size":
        return ops.convert_element_type(size, row)
    # Rounded once, as the importer's own arithmetic is.
    wide = ops.convert_element_type(size, "f64" if np.dtype(row.dtype).itemsize == 8 else "f32")
    if number.form != "reciprocal":
        wide = ops.sqrt(wide)
    if number.form != "sqrt":
        wide = ops.div(constant(1.0, wide.element_type), wide)
    return ops.convert_element_type(wide, row)
