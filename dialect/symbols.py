"""Functions beside ``main`` in the module under construction."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from hloforge.dialect.emission import create, mlir_type_of
from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.operations import operations, string_attribute
from hloforge.dialect.program import ENTRY, Program
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import OPEN, Value, leaves, nest


def enclosing_module() -> Any:
    """The ``builtin.module`` operation around the insertion point."""
    op = ir.InsertionPoint.current.block.owner.operation
    while op.name != "builtin.module":
        op = op.parent.operation
    return op


def unique_symbol(module: AnyOp, name: str, taken: Collection[str] = ()) -> str:
    """``name``, spelled as a symbol and with a number if the module has one of that name or it is ``taken``."""
    stem = re.sub(r"[^\w.$]", "_", name) or "computation"
    table, number, symbol = ir.SymbolTable(module), 0, stem
    while symbol == ENTRY or symbol in taken or symbol in table:
        symbol, number = f"{stem}_{number}", number + 1
    return symbol


def define_function(name: str, parameters: Sequence[Shape], trace: Callable[[list[Value]], Value]) -> tuple[str, Shape]:
    """Add a private function to the enclosing module.

    Args:
        name: what to call it; a number is added if the name is taken.
        trace: builds the body from its parameters; tuples are flat arguments of the function.

    Returns:
        Its symbol, and the shape of its result.
    """
    module = enclosing_module()
    flat = [leaf for shape in parameters for leaf in shape.leaves()]
    types = [mlir_type_of(leaf) for leaf in flat]
    function = ir.Operation.create(
        "func.func",
        attributes={
            "sym_name": ir.StringAttr.get(unique_symbol(module, name)),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
            "sym_visibility": ir.StringAttr.get("private"),
        },
        regions=1,
        ip=ir.InsertionPoint(module.regions[0].blocks[0]),
    )
    block = function.regions[0].blocks.append(*types, arg_locs=[ir.Location.current] * len(types))
    arguments = map(Value, block.arguments, flat)
    try:
        with ir.InsertionPoint(block):
            result = trace([nest(shape, arguments) for shape in parameters])
            finish_function(function, block, leaves(result))
    except BaseException:
        discard(function)
        raise
    return string_attribute(function, "sym_name"), result.shape


def discard(op: AnyOp) -> None:
    """Take away an operation whose computation failed.

    The user may hold Values that point into it (a traceback shows them), so that it lives as long as its program.
    """
    builder = OPEN.get(op.context)
    if builder is None:
        op.erase()
        return
    # In a module of its own, whose end and the program's may come in any order: nothing in one uses the other.
    attic = ir.Module.create(op.location)
    with ir.InsertionPoint(attic.body):
        for user in [*operations(op), op]:
            for number, operand in enumerate(user.operands):
                if not _within(operand, op):
                    stand_in = ir.Operation.create("builtin.unrealized_conversion_cast", results=[operand.type])
                    user.operands[number] = stand_in.results[0]
    attic.body.append(op)
    builder.discarded.append(attic)


def _within(value: Any, op: AnyOp) -> bool:
    """Whether a value belongs to a region of an operation."""
    owner = value.owner
    block = owner if isinstance(owner, ir.Block) else owner.operation.block
    while block is not None:
        around = block.owner.operation
        if around == op:
            return True
        block = around.block if around.parent else None
    return False


def finish_function(function: ir.Operation, block: ir.Block, results: Sequence[Value]) -> None:
    """Return ``results`` from the one block of a function, and give the function the type that follows."""
    with ir.InsertionPoint(block):
        create("func.return", results, [], 0)
    type_ = ir.FunctionType.get([argument.type for argument in block.arguments], [value.type for value in results])
    function.attributes["function_type"] = ir.TypeAttr.get(type_)


def adopt(program: Program) -> Any:
    """A copy of a program in the current context, its functions other than ``main`` moved into the enclosing module.

    Every program has a context of its own, so the copy goes through text. Its ``main`` lives as long as the copy.
    """
    home = enclosing_module()
    guest = ir.Module.parse(program.text(locations=True))
    anchor = home.regions[0].blocks[0].operations[0]
    functions = {string_attribute(function, "sym_name"): function for function in guest.body.operations}
    del functions[ENTRY]
    names: set[str] = set()
    for symbol, function in functions.items():
        # No name that another function of the guest has or had: their uses would become one.
        fresh = unique_symbol(home, symbol, names | functions.keys() - {symbol})
        names.add(fresh)
        if fresh != symbol:
            ir.SymbolTable.replace_all_symbol_uses(symbol, fresh, guest.operation)
            function.operation.attributes["sym_name"] = ir.StringAttr.get(fresh)
    # Functions call each other, so that all have their names before the first one leaves the guest.
    for function in functions.values():
        function.operation.move_before(anchor)
    return guest
