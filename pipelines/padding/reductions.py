"""Reductions and products: padding is what changes no sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.dialect.mlir import stablehlo
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.padding.frame import Frame, greatest, least, refuse, rule
from hloforge.pipelines.padding.layouts import Dim


def neutral_of(op: Any, inits: Sequence[Any]) -> list[Any]:
    """What changes nothing in a reduction, for each of its operands.

    XLA says that the initial values are such: it may combine them any number of times. Importers do not always keep to
    it for a single operand, whose body tells.
    """
    block = op.regions[0].blocks[0]
    body = [view.operation for view in block.operations]
    if len(inits) == 1 and len(body) == 2 and set(body[0].operands) == set(block.arguments):
        value = Value(op.operands[0])
        row = value.element_type
        name = body[0].name.removeprefix("stablehlo.")
        if name == "add":
            return [0]
        if name == "multiply":
            return [1]
        if name in ("maximum", "minimum") and not row.is_complex:
            return [least(row) if name == "maximum" else greatest(row)]
        if name in ("or", "xor"):
            return [0]
        if name == "and":
            return [-1 if row.name != "pred" else True]
    return [Value(init) for init in inits]


@rule("reduce")
def reduce(frame: Frame, op: Any) -> None:
    count = len(op.operands) // 2
    values, layout = frame.together([Value(operand) for operand in list(op.operands)[:count]])
    dimensions = integers(op, "dimensions")
    fills = neutral_of(op, list(op.operands)[count:])
    for number, (value, fill) in enumerate(zip(values, fills, strict=True)):
        op.operands[number] = frame.masked(value, dimensions, fill).ir
    for result in op.results:
        frame.set(result, [dim for d, dim in enumerate(layout) if d not in dimensions])


@rule("dot_general")
def dot_general(frame: Frame, op: Any) -> None:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs, rhs = map(Value, op.operands)
    batch = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    sums = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    shared: dict[int, Dim | None] = {}
    for left, right in (*batch, *sums):
        dim = frame.common([frame.layout(lhs)[left], frame.layout(rhs)[right]])
        if dim is not None:
            lhs, rhs = frame.relaid(lhs, left, dim), frame.relaid(rhs, right, dim)
        shared[left] = dim
    lhs = frame.masked(lhs, [left for left, _ in sums], 0)
    rhs = frame.masked(rhs, [right for _, right in sums], 0)
    op.operands[0], op.operands[1] = lhs.ir, rhs.ir
    taken = {left for left, _ in (*batch, *sums)}, {right for _, right in (*batch, *sums)}
    frame.set(
        op.results[0],
        [
            *(shared[left] for left, _ in batch),
            *(dim for d, dim in enumerate(frame.layout(lhs)) if d not in taken[0]),
            *(dim for d, dim in enumerate(frame.layout(rhs)) if d not in taken[1]),
        ],
    )


@rule("dot")
def dot(frame: Frame, op: Any) -> None:
    lhs, rhs = map(Value, op.operands)
    left = lhs.rank - 1
    dim = frame.common([frame.layout(lhs)[left], frame.layout(rhs)[0]])
    if dim is not None:
        lhs, rhs = frame.relaid(lhs, left, dim), frame.relaid(rhs, 0, dim)
    op.operands[0], op.operands[1] = frame.masked(lhs, [left], 0).ir, frame.masked(rhs, [0], 0).ir
    frame.set(op.results[0], [*frame.layout(lhs)[:left], *frame.layout(rhs)[1:]])


@rule("chlo.ragged_dot", "select_and_scatter", "batch_norm_training", "batch_norm_grad")
def without(frame: Frame, op: Any) -> None:
    raise refuse(op, "it combines elements in a way that no number leaves alone")
