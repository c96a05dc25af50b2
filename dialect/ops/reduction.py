"""Reductions over dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value, constant

# A computation takes one Value per operand and side, scalars all, and returns the combined Value.
Computation: TypeAlias = Callable[..., Value]


def reduce(operand: Value, init: Value | float | bool, computation: Computation, dimensions: Sequence[int]) -> Value:
    """Combine the elements along ``dimensions`` with ``computation``, starting from ``init`` (XLA "Reduce").

    Args:
        operand: any array.
        init: a scalar of the operand's element type, the identity of the computation.
        computation: a function of two scalar Values; must be associative.
        dimensions: the dimensions that vanish.

    Returns:
        An array of the operand's element type without ``dimensions``.
    """
    row = operand.element_type
    start = init if isinstance(init, Value) else constant(init, row)
    kept = [operand.type.shape[d] for d in range(operand.rank) if d not in dimensions]
    result = ir.RankedTensorType.get(kept, operand.type.element_type)
    op = ir.Operation.create(
        "stablehlo.reduce",
        results=[result],
        operands=[operand.ir, start.ir],
        attributes={"dimensions": ir.DenseI64ArrayAttr.get(list(dimensions))},
        regions=1,
    )
    scalar = ir.RankedTensorType.get([], operand.type.element_type)
    fill_region(op.regions[0], [scalar, scalar], computation)
    return Value(op.results[0])


def reduce_pair(
    operands: tuple[Value, Value],
    inits: tuple[int, int],
    computation: Callable[[Value, Value, Value, Value], Sequence[Value]],
    dimension: int,
) -> tuple[Value, Value]:
    """Reduce two arrays of equal sizes together along a dimension (variadic XLA "Reduce").

    Args:
        inits: the identity of the computation, one scalar an array.
        computation: from (a0, a1, b0, b1) to the combined pair; associative and commutative.
    """
    starts = [constant(init, operand.element_type) for operand, init in zip(operands, inits, strict=True)]
    sizes = [size for d, size in enumerate(operands[0].dims) if d != dimension]
    elements = [operand.type.element_type for operand in operands]
    op = ir.Operation.create(
        "stablehlo.reduce",
        results=[ir.RankedTensorType.get(sizes, element) for element in elements],
        operands=[value.ir for value in (*operands, *starts)],
        attributes={"dimensions": ir.DenseI64ArrayAttr.get([dimension])},
        regions=1,
    )
    scalars = [ir.RankedTensorType.get([], element) for element in elements]
    fill_region(op.regions[0], [*scalars, *scalars], computation)
    return Value(op.results[0]), Value(op.results[1])


def fill_region(region: Any, types: Sequence[Any], computation: Callable[..., Value | Sequence[Value]]) -> None:
    """Give a region one block with arguments of ``types`` whose terminator returns what ``computation`` builds."""
    location = ir.Location.current
    block = region.blocks.append(*types, arg_locs=[location] * len(types))
    with ir.InsertionPoint(block):
        results = computation(*map(Value, block.arguments))
        values = [results] if isinstance(results, Value) else list(results)
        ir.Operation.create("stablehlo.return", operands=[value.ir for value in values])
