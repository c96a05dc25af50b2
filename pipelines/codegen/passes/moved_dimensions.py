"""A transposition moved behind the operations that follow it, until another one undoes it.

These are elementwise operations, and of images whose features were moved to the last dimension those that have a rule
in ``image_operations.py``: joints, borders, windows, pixels that are gathered.
"""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.shapes import Shape
from hloforge.dialect.traits import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.codegen.passes.image_operations import Reorder, first, images_of, last
from hloforge.pipelines.codegen.passes.integer_factors import facts_of_parameters, spread_of
from hloforge.pipelines.framework.patterns import replace

_TRANSPOSE = "stablehlo.transpose"
_OF_IMAGES = frozenset(
    f"stablehlo.{name}" for name in ("concatenate", "gather", "pad", "reduce_window", "reverse", "slice")
)


def follow(value: Value) -> None:
    """Move the transposition that makes a value, if one does: its readers compute before it."""
    op = defining_op(value.ir, _TRANSPOSE)
    waiting = [] if op is None else [op]
    while waiting:
        top = waiting.pop()
        order = integers(top, "permutation")
        for user in dict.fromkeys(use.owner.operation for use in list(top.results[0].uses)):
            moved = _moved(user, order)
            if moved is not None:
                replace(user, [moved])
                made = defining_op(moved.ir)
                assert made is not None
                waiting.append(made)


def _moved(op: ir.Operation, order: Sequence[int]) -> Value | None:
    """An operation before the transposition; None where it has no rule, or other operands than such."""
    if len(op.results) != 1:
        return None
    if op.name not in ELEMENTWISE or op.regions:
        return _moved_image(op, order)
    places = [list(order).index(d) for d in range(len(order))]
    dims = Value(op.results[0]).dims
    before = [dims[places[d]] for d in range(len(order))]
    with ir.InsertionPoint(op), op.location:
        operands = []
        for operand in op.operands:
            found = _before(operand, order, before)
            if found is None:
                return None
            operands.append(found)
        attributes = {name: op.attributes[name] for name in op.attributes}
        shape = Shape.array(Value(op.results[0]).element_type, *before)
        return ops.transpose(emit(op.name, operands, shape, **attributes), list(order))


def _moved_image(op: ir.Operation, order: Sequence[int]) -> Value | None:
    """An operation on images whose features become the first ones after it."""
    images = images_of(op) if op.name in _OF_IMAGES and tuple(order) == first(len(order)) else []
    if op.results[0] not in images:
        return None
    found = {}
    with ir.InsertionPoint(op), op.location:
        for operand in dict.fromkeys(value for value in op.operands if value in images):
            dims = Value(operand).dims
            before = _before(operand, order, [dims[d] for d in last(len(dims))])
            if before is None:
                return None
            found[operand] = before
        return ops.transpose(Reorder(found.__getitem__, Value).write(op), list(order))


def _before(operand: SSAValue, order: Sequence[int], dims: Sequence[int]) -> Value | None:
    """What an operand is in the order of the dimensions before the transposition."""
    value = Value(operand)
    if not value.rank:
        return value
    made = defining_op(operand, _TRANSPOSE)
    if made is not None and integers(made, "permutation") == list(order):
        return Value(made.operands[0])
    spread = spread_of(operand, facts_of_parameters())
    return spread.moved(order).over(dims, value.element_type) if spread else None
