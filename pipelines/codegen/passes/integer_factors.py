"""What a factor of a product represents: stored integers less a zero point, times a scale.

A program says so in elementwise operations, in the order of its front end: ``(convert(q) - z) * s``, with any views
between. Zero points and scales are numbers, or vectors along some dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.evaluation.known import KnownValues

Array: TypeAlias = np.ndarray[Any, Any]

# Elements of zero points and scales that are looked into.
_MOST = 1 << 16
# Operations between a product and the stored integers.
_DEEP = 24
_NARROW = frozenset({"s8", "u8"})


@dataclass(frozen=True)
class Spread:
    """A number, or a vector along some dimensions, for each element of an array.

    Attributes:
        value: its elements, of as many dimensions as ``dims``.
        dims: the array's dimension that each of them becomes, in any order.
        array: the elements, if they are known.
    """

    value: Value
    dims: tuple[int, ...]
    array: Array | None = None

    def over(self, sizes: Sequence[int], row: Any) -> Value:
        """For each element of an array of such sizes, in an element type."""
        order = sorted(range(len(self.dims)), key=lambda d: self.dims[d])
        value = ops.convert_element_type(self.value, row)
        if order != list(range(len(order))):
            value = ops.transpose(value, order)
        return ops.broadcast_in_dim(value, list(sizes), sorted(self.dims))

    def moved(self, places: Sequence[int]) -> Spread:
        """Of an array in which dimension ``d`` is number ``places[d]``."""
        return replace(self, dims=tuple(places[d] for d in self.dims))


def known(array: Array, dims: Sequence[int] = ()) -> Spread:
    """Numbers that are known. A vector of one number is a number."""
    if array.size == 1:
        array, dims = array.reshape(()), ()
    return Spread(constant(array), tuple(dims), array)


def in_dims(array: Array, dims: Sequence[int], rank: int) -> Array:
    """A vector along some dimensions, in the form that numpy broadcasts."""
    order = np.argsort(np.array(dims, int), kind="stable")
    sizes = [1] * rank
    for place, d in enumerate(dims):
        sizes[d] = array.shape[place]
    return np.transpose(array, order).reshape(sizes)


@dataclass(frozen=True)
class Factor:
    """``(codes - zero) * scale``.

    Attributes:
        codes: integers of 8 bits.
        array: these, if the program states them.
    """

    codes: Value
    zero: Spread | None = None
    scale: Spread | None = None
    array: Array | None = None

    @property
    def is_plain(self) -> bool:
        return self.zero is None and self.scale is None


def factor_of(value: SSAValue, facts: KnownValues) -> Factor | None:
    """What an operand of a product represents, if it is stored in integers of 8 bits. Builds views of these."""
    return _factor(value, facts, _DEEP)


def facts_of_parameters() -> KnownValues:
    """For ``factor_of`` and ``spread_of``."""
    return KnownValues(_MOST)


def _factor(value: SSAValue, facts: KnownValues, left: int) -> Factor | None:
    op = defining_op(value)
    if op is None or not left or len(op.results) != 1:
        return None
    rule = _RULES.get(op.name)
    return rule(op, facts, left - 1) if rule else None


def _converted(op: ir.Operation, facts: KnownValues, left: int) -> Factor | None:
    source, result = Value(op.operands[0]), Value(op.results[0])
    if not (result.element_type.is_float or result.element_type.bits >= 16 or result.element_type.name == "pred"):
        return None
    if source.element_type.name in _NARROW and result.element_type.name != "pred":
        return Factor(source, array=_stored(source.ir, left))
    inner = _factor(source.ir, facts, left)
    if inner is None or result.element_type.name == "pred" or (inner.scale and not result.element_type.is_float):
        return None
    # Integers less a zero point have 9 bits and a sign; a scale may be rounded.
    narrows = result.element_type.bits < source.element_type.bits and inner.scale is not None
    return None if narrows or result.element_type.name == "bf16" else inner


def _stored(value: SSAValue, left: int) -> Array | None:
    """The integers of a constant, or of a view of one."""
    op = defining_op(value, "stablehlo.constant", "stablehlo.reshape", "stablehlo.transpose", "stablehlo.slice")
    if op is None or not left:
        return None
    if op.name == "stablehlo.constant":
        return constant_of(op)
    array = _stored(op.operands[0], left - 1)
    if array is None or op.name == "stablehlo.reshape":
        return array if array is None else array.reshape(Value(value).dims)
    if op.name == "stablehlo.transpose":
        return np.transpose(array, integers(op, "permutation"))
    bounds = (integers(op, name) for name in ("start_indices", "limit_indices", "strides"))
    return array[tuple(slice(*bound) for bound in zip(*bounds, strict=True))]


def _scaled(op: ir.Operation, facts: KnownValues, left: int) -> Factor | None:
    if not Value(op.results[0]).element_type.is_float:
        return None
    for one, other in (op.operands, tuple(op.operands)[::-1]):
        scale = spread_of(other, facts)
        inner = _factor(one, facts, left) if scale else None
        if inner is not None and inner.scale is None:
            return replace(inner, scale=scale)
    return None


def _centered(op: ir.Operation, facts: KnownValues, left: int) -> Factor | None:
    zero = spread_of(op.operands[1], facts)
    if zero is None or not _is_integral(zero):
        return None
    inner = _factor(op.operands[0], facts, left)
    if inner is None or not inner.is_plain:
        return None
    if zero.array is not None and not zero.array.any():
        return inner
    return replace(inner, zero=zero)


def _is_integral(zero: Spread) -> bool:
    """Whether zero points are integers of 8 bits, for all that is known."""
    if zero.array is not None:
        return bool((zero.array == np.round(zero.array)).all() and (np.abs(zero.array) <= 255).all())
    value = zero.value
    while value.element_type.name not in _NARROW:
        op = defining_op(value.ir, "stablehlo.convert", "stablehlo.reshape")
        if op is None:
            return False
        value = Value(op.operands[0])
    return True


def _transposed(op: ir.Operation, facts: KnownValues, left: int) -> Factor | None:
    inner = _factor(op.operands[0], facts, left)
    if inner is None:
        return None
    order = integers(op, "permutation")
    places = [order.index(d) for d in range(len(order))]
    zero, scale = (part.moved(places) if part else None for part in (inner.zero, inner.scale))
    array = None if inner.array is None else np.transpose(inner.array, order)
    return Factor(transposed(inner.codes, order), zero, scale, array)


def _reshaped(op: ir.Operation, facts: KnownValues, left: int) -> Factor | None:
    inner = _factor(op.operands[0], facts, left)
    if inner is None or any(part is not None and part.dims for part in (inner.zero, inner.scale)):
        return None
    dims = Value(op.results[0]).dims
    array = None if inner.array is None else inner.array.reshape(dims)
    return Factor(ops.reshape(inner.codes, dims), inner.zero, inner.scale, array)


_RULES = {
    "stablehlo.convert": _converted,
    "stablehlo.multiply": _scaled,
    "stablehlo.subtract": _centered,
    "stablehlo.transpose": _transposed,
    "stablehlo.reshape": _reshaped,
}


def transposed(value: Value, order: Sequence[int]) -> Value:
    """A transposition; of a transposition, which it may undo, one or none."""
    made = defining_op(value.ir, "stablehlo.transpose")
    if made is not None:
        before = integers(made, "permutation")
        value, order = Value(made.operands[0]), [before[d] for d in order]
    return value if list(order) == list(range(len(order))) else ops.transpose(value, list(order))


def spread_of(value: SSAValue, facts: KnownValues) -> Spread | None:
    """An array that repeats a number or a vector; None for others."""
    op, dims = defining_op(value), tuple(range(len(value.type.shape)))
    if op is not None and op.name == "stablehlo.convert":
        # A conversion of what repeats something repeats its conversion.
        inner = spread_of(op.operands[0], facts)
        if inner is None:
            return None
        row = Value(value).element_type
        if inner.array is not None:
            return known(_converted_array(inner.array, row), inner.dims)
        return replace(inner, value=ops.convert_element_type(inner.value, row))
    if op is not None and op.name == "stablehlo.broadcast_in_dim":
        value, dims = op.operands[0], tuple(integers(op, "broadcast_dimensions"))
    elif op is not None and op.name == "stablehlo.constant" and ir.DenseElementsAttr(op.attributes["value"]).is_splat:
        return known(np.asarray(constant_of(op)).reshape(-1)[:1].reshape(()))
    elif sum(size > 1 for size in value.type.shape) > 1:
        return None
    sizes = value.type.shape
    kept = [place for place, size in enumerate(sizes) if size != 1]
    array = known_array(value, facts)
    if array is not None:
        if array.size and (array == array.flat[0]).all():
            return known(array.reshape(-1)[:1].reshape(()))
        return known(array.reshape([sizes[place] for place in kept]), [dims[place] for place in kept])
    found = Value(value)
    if len(kept) < len(sizes):
        found = ops.reshape(found, [sizes[place] for place in kept])
    return Spread(found, tuple(dims[place] for place in kept))


def _converted_array(array: Array, row: Any) -> Array:
    if row.is_integer and array.dtype.kind == "f":
        return np.trunc(array).astype(row.dtype)
    return array.astype(row.dtype)


def known_array(value: SSAValue, facts: KnownValues, *, deep: int = _DEEP) -> Array | None:
    """A small array that follows from constants without a choice of rounding.

    Args:
        deep: operations that are looked through, one after the other. Chains of steps are thousands long, and end in
            an argument.
    """
    # Nothing is computed beside what is not known.
    return _evaluated(value, facts) if _follows(value, facts, deep, {}) else None


def _follows(value: SSAValue, facts: KnownValues, deep: int, walked: dict[SSAValue, int]) -> bool:
    """Whether a value is made of constants alone.

    Args:
        walked: how many operations were looked through behind each value that is not.
    """
    if facts.is_known(value):
        return True
    op = defining_op(value)
    if op is None or not deep or op.regions or op.name == "stablehlo.constant" or len(op.results) != 1:
        return False
    if walked.get(value, 0) >= deep or not value.type.has_static_shape or np.prod(value.type.shape) > _MOST:
        return False
    if all(_follows(operand, facts, deep - 1, walked) for operand in op.operands):
        return True
    walked[value] = deep
    return False


def _evaluated(value: SSAValue, facts: KnownValues) -> Array | None:
    found = facts.of(value)
    op = defining_op(value)
    if found is not None or op is None:
        return found
    if any(_evaluated(operand, facts) is None for operand in op.operands):
        return None
    array = facts.result(op, list(op.operands), are_stated=True)
    if array is not None:
        facts.add(value, array)
    return array
