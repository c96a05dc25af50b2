"""Sums of products over arrays of any size: one ``linalg.generic`` with affine maps.

IREE recognizes matrix products and convolutions in such operations, and makes vectors and tiles of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.dialect.mlir import arith, ir
from hloforge.pipelines.framework import generics as at
from hloforge.pipelines.framework.builders import constant, create

# Of floats and of integers.
_ON_REALS = {"add": (arith.addf, arith.addi), "mul": (arith.mulf, arith.muli)}


def can_multiply(element: Any) -> bool:
    """Whether ``sum_of_products`` takes elements of a type: integers of bytes, floats and complex numbers."""
    if isinstance(element, ir.IntegerType):
        return bool(element.width >= 8)
    return isinstance(element, (ir.FloatType, ir.ComplexType))


def sum_of_products(
    operands: Sequence[Any], elements: Sequence[Any], maps: Sequence[Any], sizes: Sequence[at.Number], summed: int
) -> Any:
    """``result[p...] = sum over s... of lhs[map(p, s)] * rhs[map(p, s)]``.

    Args:
        operands: two signless arrays.
        elements: the element types that they represent, and that of the result; the sum is carried in the last.
        maps: the ``AffineMap`` of each operand, from (p..., s...).
        sizes: of the result.
        summed: the number of dimensions s.
    """
    target = _signless(elements[-1])
    kept, rank = len(sizes), len(sizes) + summed
    init = at.array_by_index(sizes, target, lambda *_: _zero(target))
    result = ir.AffineMap.get(rank, 0, [ir.AffineExpr.get_dim(d) for d in range(kept)])
    generic = create(
        "linalg.generic",
        [*operands, init],
        [init.type],
        1,
        indexing_maps=ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in (*maps, result)]),
        iterator_types=at.iterators(kept, summed),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([2, 1]),
    )
    types = [*(operand.type.element_type for operand in operands), target]
    block = ir.Block.create_at_start(generic.regions[0], types)
    with ir.InsertionPoint(block):
        lhs, rhs = (
            _widened(value, element, target) for value, element in zip(block.arguments, elements[:2], strict=False)
        )
        create("linalg.yield", [_op("add", _op("mul", lhs, rhs), block.arguments[2])], ())
    return generic.results[0]


def _signless(element: Any) -> Any:
    is_integer = isinstance(element, ir.IntegerType)
    return ir.IntegerType.get_signless(element.width) if is_integer else element


def _zero(element: Any) -> Any:
    if isinstance(element, ir.ComplexType):
        part = ir.FloatAttr.get(element.element_type, 0.0)
        return create("complex.constant", (), [element], value=ir.ArrayAttr.get([part, part])).results[0]
    make = ir.IntegerAttr.get if isinstance(element, ir.IntegerType) else ir.FloatAttr.get
    return constant(make(element, 0))


def _widened(value: Any, element: Any, target: Any) -> Any:
    """A factor in the type of the sum."""
    if value.type == target:
        return value
    if isinstance(element, ir.IntegerType) and isinstance(target, ir.IntegerType):
        widen = arith.extui if element.is_unsigned or element.width == 1 else arith.extsi
    elif isinstance(element, ir.IntegerType):
        widen = arith.uitofp if element.is_unsigned else arith.sitofp
    else:
        widen = arith.extf
    return widen(target, value)


def _op(kind: str, left: Any, right: Any) -> Any:
    if isinstance(left.type, ir.ComplexType):
        return create(f"complex.{kind}", [left, right], [left.type]).result
    return _ON_REALS[kind][isinstance(left.type, ir.IntegerType)](left, right)
