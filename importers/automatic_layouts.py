"""Layouts of results that JAX leaves to the compiler (``Layout.AUTO``): the order in which the values already lie.

A transposition only renames dimensions if its result may lie as its operand does, and an elementwise operation writes
in the order in which it reads. What anything else makes lies row after row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op, integers, string_attribute
from hloforge.dialect.shapes import Layout, Shape
from hloforge.dialect.traits import ELEMENTWISE

# Dimensions in memory, the fastest varying one first; None: row after row.
Order = tuple[int, ...] | None

_TRANSPOSE, _CALL, _CUSTOM_CALL = "stablehlo.transpose", "func.call", "stablehlo.custom_call"
# They change neither elements nor places.
_SAME = frozenset({"sdy.sharding_constraint", "stablehlo.optimization_barrier"})
_SAME_TARGETS = frozenset({"Sharding", "annotate_device_placement"})
# Operations that are looked through, of a chain that has more of them the first ones.
_DEPTH = 100


def automatic(
    function: Any, parameters: Sequence[Shape], results: Sequence[Shape], auto: Sequence[bool]
) -> list[Shape]:
    """The shapes of main's results, with layouts where ``auto`` says that they are open.

    Args:
        function: main.
        parameters, results: the shapes of its arguments and its results; one without a layout lies row after row.
    """
    orders = [None if shape.layout is None else shape.layout.minor_to_major for shape in parameters]
    found = list(results)
    for number, (shape, value) in enumerate(zip(results, _returned(function), strict=True)):
        order = _order(value, dict(enumerate(orders)), _DEPTH) if auto[number] else None
        if order is not None:
            found[number] = Shape.parse(f"{shape.without_layout()}{Layout(order)}")
    return found


def _returned(function: Any) -> list[SSAValue]:
    *_, last = function.regions[0].blocks[0].operations
    return list(last.operands)


def _order(value: Any, arguments: Mapping[int, Order], depth: int) -> Order:
    """How a value lies in memory, by how the arguments of its function do."""
    op = defining_op(value)
    if op is None:
        return arguments.get(ir.BlockArgument(value).arg_number)
    if depth == 0 or len(op.operands) == 0:
        return None
    number = ir.OpResult(value).result_number
    if op.name == _TRANSPOSE:
        return _transposed(_order(op.operands[0], arguments, depth - 1), integers(op, "permutation"))
    if op.name in _SAME or (op.name == _CUSTOM_CALL and string_attribute(op, "call_target_name") in _SAME_TARGETS):
        return _order(op.operands[number], arguments, depth - 1)
    if op.name in ELEMENTWISE:
        like = next((operand for operand in op.operands if _rank(operand) == _rank(value)), None)
        return None if like is None else _order(like, arguments, depth - 1)
    callee = _callee(op) if op.name == _CALL else None
    if callee is None:
        return None
    given = {n: _order(operand, arguments, depth - 1) for n, operand in enumerate(op.operands)}
    return _order(_returned(callee)[number], given, depth - 1)


def _transposed(order: Order, permutation: Sequence[int]) -> Order:
    """Of a transposition's result that has the memory of its operand."""
    before = order or tuple(reversed(range(len(permutation))))
    places = {dimension: place for place, dimension in enumerate(permutation)}
    return tuple(places[dimension] for dimension in before)


def _callee(call: Any) -> Any:
    name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    module = call.parent
    while module.name != "builtin.module":
        module = module.parent
    return ir.SymbolTable(module)[name]


def _rank(value: Any) -> int:
    type_ = value.type
    return int(type_.rank) if isinstance(type_, ir.RankedTensorType) else -1
