"""Replace an operation by the body of its region, or a call by the body of its function.

jaxlib's native ``inline`` pass leaves calls behind, knowing no interface of ``func``; this one is exhaustive.
"""

from __future__ import annotations

from typing import Any

from hloforge.dialect.errors import Location, PassError
from hloforge.dialect.mlir import AnyOp, in_context, inlined_func_call, ir
from hloforge.dialect.operations import location_of, operations

# Operations that the copies of called functions may add to a program. Calls that double at each level make 2**30 of a
# few kB of text; IREE's compiler takes half a minute for 20,000.
COPIES_LIMIT = 1 << 18


def too_many_copies(name: str, made: int) -> str:
    """The message for a program that calls would make so large."""
    return f"calls are inlined, and those of {name} would add {made:,} operations: more than {COPIES_LIMIT:,}"


TOO_MANY_HINT = "make a loop of calls that repeat, or pass their common results on instead of calling again"


def splice(op: AnyOp, block: Any) -> None:
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


def inline_calls(module: ir.Module) -> None:
    """Inline every ``func.call`` whose function has a body; functions that stay unused are left to ``symbol-dce``.

    Raises:
        PassError: a function calls itself, directly or through others, or the copies would be too many.
    """
    functions = {
        ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation
        for op in module.body.operations
        if op.operation.name == "func.func"
    }
    with in_context(module):
        order = _Order(functions)
        for name in functions:
            order.visit(name, None)
        # Nothing is copied before all is counted.
        for name in order.done:
            for call, callee in order.calls[name]:
                copy_call(call, functions[callee])


class _Order:
    """Callees first, so that each body is copied when it is whole.

    Attributes:
        done: functions in that order, with the operations that they will have.
        calls: the calls in each that are inlined.
    """

    def __init__(self, functions: dict[str, Any]) -> None:
        self.functions = functions
        self.done: dict[str, int] = {}
        self.calls: dict[str, list[tuple[Any, str]]] = {}
        self.active: set[str] = set()
        self.copies = 0

    def visit(self, name: str, caller: ir.Operation | None) -> None:
        if name in self.active:
            raise PassError(f"@{name} calls itself, and XLA has no recursion", location=_place(caller))
        if name in self.done:
            return
        self.active.add(name)
        inside = operations(self.functions[name])
        self.calls[name] = [(op, callee) for op in inside if (callee := self.callee(op))]
        copied, largest = 0, (-1, None)
        for call, callee in self.calls[name]:
            self.visit(callee, call)
            copied += self.done[callee]
            largest = max(largest, (self.done[callee], call), key=lambda entry: entry[0])
        self.copies += copied
        if self.copies > COPIES_LIMIT:
            raise PassError(too_many_copies(f"@{name}", self.copies), location=_place(largest[1]), hint=TOO_MANY_HINT)
        self.active.discard(name)
        # Without the calls, which are gone then, and the return, which is not copied.
        self.done[name] = len(inside) - len(self.calls[name]) - 1 + copied

    def callee(self, op: ir.Operation) -> str:
        """The name of a function that a call copies; empty for anything else."""
        if op.name != "func.call":
            return ""
        callee = str(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        function = self.functions.get(callee)
        return callee if function is not None and function.regions[0].blocks else ""


def _place(call: Any) -> Location | None:
    return None if call is None else location_of(call)


def copy_call(call: ir.Operation, function: ir.Operation) -> None:
    """Replace an operation by a copy of a function's body, its operands and results being those of the function."""
    with ir.InsertionPoint(call):
        results = inlined_func_call(function, list(call.operands), call.location)
    for old, new in zip(call.results, results, strict=True):
        old.replace_all_uses_with(new)
    call.erase()
