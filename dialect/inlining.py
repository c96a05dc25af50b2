"""Putting the body of a region or function in the place of the operation that holds or calls it.

jaxlib's native ``inline`` pass leaves calls behind, knowing no interface of ``func``; this one is exhaustive.
"""

from __future__ import annotations

from typing import Any

from hloforge.dialect.errors import PassError
from hloforge.dialect.mlir import in_context, inlined_func_call, ir
from hloforge.dialect.operations import location_of, operations


def splice(op: Any, block: Any) -> None:
    """Move a block's operations before ``op``, its operands for the block's arguments, and erase ``op``.

    The block ends in a terminator whose operands become the results of ``op``.
    """
    for argument, operand in zip(block.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *body, terminator = list(block.operations)
    for entry in body:
        entry.operation.move_before(op)
    for result, value in zip(op.results, list(terminator.operation.operands), strict=True):
        result.replace_all_uses_with(value)
    terminator.operation.erase()
    op.erase()


def inline_calls(module: Any) -> None:
    """Inline every ``func.call`` whose function has a body; functions that stay unused are left to ``symbol-dce``.

    Raises:
        PassError: a function calls itself, directly or through others.
    """
    functions = {
        ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation
        for op in module.body.operations
        if op.operation.name == "func.func"
    }
    with in_context(module):
        inliner = _Inliner(functions)
        for name in functions:
            inliner.visit(name)


class _Inliner:
    """Callees first, so that each body is copied when it is whole."""

    def __init__(self, functions: dict[str, Any]) -> None:
        self.functions = functions
        self.done: set[str] = set()
        self.active: list[str] = []

    def visit(self, name: str) -> None:
        if name in self.done:
            return
        self.active.append(name)
        for call in operations(self.functions[name], {"func.call"}):
            self.inline(call)
        self.active.pop()
        self.done.add(name)

    def inline(self, call: Any) -> None:
        callee = str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
        function = self.functions.get(callee)
        if function is None or not function.regions[0].blocks:
            return
        if callee in self.active:
            raise PassError(f"@{callee} calls itself, and XLA has no recursion", location=location_of(call))
        self.visit(callee)
        copy_call(call, function)


def copy_call(call: Any, function: Any) -> None:
    """Replace an operation by a copy of a function's body, its operands and results being those of the function."""
    with ir.InsertionPoint(call):
        results = inlined_func_call(function, list(call.operands), call.location)
    for old, new in zip(call.results, results, strict=True):
        old.replace_all_uses_with(new)
    call.erase()
