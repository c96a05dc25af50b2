"""Variables that a loaded program keeps between operations, iterations of a loop, and calls.

Each is a global of IREE's runtime behind a function, because IREE moves a bare store past loops that load, but not past
calls::

    util.global private mutable @hloforge.count = dense<0> : tensor<i64>
    util.func private @hloforge.count.take(%step)       (load the variable, store it raised by %step)
    %n = util.call @hloforge.count.take(%step)

Source: IREE, dialect "util".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hloforge.dialect.emission import create, emit
from hloforge.dialect.mlir import ir
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value


def take(
    op: Any, name: str, initial: int | Sequence[int], advance: Callable[[Value, Value], Value], step: Value
) -> Value:
    """What a variable holds, of which ``advance`` makes what it holds next.

    Args:
        op: an operation of the module; the call is made at the current insertion point.
        name: the variable's symbol; it is declared where the module does not have it.
        initial: the s64 scalar or array that it holds when a program is loaded.
        advance: builds the next value from this one and ``step``, with operations that need no decomposition.
    """
    shape = Shape.array("s64", *np.shape(initial))
    function = f"{name}.take"
    module = op
    while module.parent is not None:
        module = module.parent
    body = module.regions[0].blocks[0]
    if not any(_symbol(known) == name for known in body.operations):
        with ir.InsertionPoint.at_block_begin(body):
            _declare_variable(name, np.asarray(initial, np.int64), shape.mlir_type())
            _declare_function(function, name, advance, shape.mlir_type(), step.type)
    return emit("util.call", [step], shape, callee=ir.FlatSymbolRefAttr.get(function))


def _declare_variable(name: str, initial: np.ndarray[Any, Any], type_: ir.RankedTensorType) -> None:
    elements = [ir.IntegerAttr.get(type_.element_type, int(element)) for element in initial.flat]
    create(
        "util.global",
        [],
        [],
        0,
        sym_name=ir.StringAttr.get(name),
        sym_visibility=ir.StringAttr.get("private"),
        type=ir.TypeAttr.get(type_),
        is_mutable=ir.UnitAttr.get(),
        initial_value=ir.DenseElementsAttr.get(elements, type_),
    )


def _declare_function(
    name: str, variable: str, advance: Callable[[Value, Value], Value], type_: ir.Type, step: ir.Type
) -> None:
    function = create(
        "util.func",
        [],
        [],
        1,
        sym_name=ir.StringAttr.get(name),
        sym_visibility=ir.StringAttr.get("private"),
        function_type=ir.TypeAttr.get(ir.FunctionType.get([step], [type_])),
        **{"inlining.policy": ir.Attribute.parse("#util.inline.never")},
    )
    block = function.regions[0].blocks.append(step, arg_locs=[ir.Location.current])
    symbol = {"global": ir.FlatSymbolRefAttr.get(variable)}
    with ir.InsertionPoint(block):
        held = emit("util.global.load", [], type_, **symbol)
        create("util.global.store", [advance(held, Value(block.arguments[0]))], [], 0, **symbol)
        create("util.return", [held], [], 0)


def _symbol(op: ir.OpView) -> str:
    attributes = op.operation.attributes
    return str(ir.StringAttr(attributes["sym_name"]).value) if "sym_name" in attributes else ""
