"""A transposition moved behind the operations that follow it, until another one undoes it.

These are elementwise operations, and of images whose features were moved to the last dimension those that have a rule
in ``image_operations.py``: joints, borders, windows, pixels that are gathered. Who reads a factor of a product finds
here what it is before such a move (``order_of``, ``before_transposition``).
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


def order_of(value: Value) -> tuple[int, ...] | None:
    """The permutation of the transposition that a value is computed of by elementwise operations; None for none.

    Nobody else reads what they compute, so that they may as well compute it before the transposition.
    """
    op = defining_op(value.ir)
    if op is None:
        return None
    if op.name == _TRANSPOSE:
        return tuple(integers(op, "permutation"))
    if not _is_elementwise(op) or len(list(op.results[0].uses)) > 1:
        return None
    found = {order for operand in op.operands if (order := order_of(Value(operand))) is not None}
    return found.pop() if len(found) == 1 else None


def before_transposition(value: Value, order: Sequence[int]) -> Value | None:
    """What a value is in the order of the dimensions before its transposition (``order_of``); None without a rule."""
    dims = [value.dims[list(order).index(d)] for d in range(len(order))]
    if (found := _before(value.ir, order, dims)) is not None:
        return found
    op = defining_op(value.ir)
    if op is None or not _is_elementwise(op) or order_of(value) != tuple(order):
        return None
    with ir.InsertionPoint(op), op.location:
        operands = [before_transposition(Value(operand), order) for operand in op.operands]
        moved = [operand for operand in operands if operand is not None]
        return _computed(op, moved, dims) if len(moved) == len(operands) else None


def _is_elementwise(op: ir.Operation) -> bool:
    return len(op.results) == 1 and op.name in ELEMENTWISE and not op.regions


def _computed(op: ir.Operation, operands: Sequence[Value], dims: Sequence[int]) -> Value:
    attributes = {name: op.attributes[name] for name in op.attributes}
    return emit(op.name, operands, Shape.array(Value(op.results[0]).element_type, *dims), **attributes)


def _moved(op: ir.Operation, order: Sequence[int]) -> Value | None:
    """An operation before the transposition; None where it has no rule, or other operands than such."""
    if len(op.results) != 1:
        return None
    if not _is_elementwise(op):
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
        return ops.transpose(_computed(op, operands, before), list(order))


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
