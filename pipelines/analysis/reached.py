"""Whether a run of a program, as it was imported, certainly comes to an operation that nothing can drop.

Passes drop what nobody reads, functions that nobody calls, and branches whose choice turns out to be a constant. This
analysis reads a program before any pass ran, with its calls, fusions and tuples. It answers "certainly" or "perhaps",
and climbs from the operation to ``main``, so that it costs nothing where there is nothing to ask about.
"""

from __future__ import annotations

from typing import Any

from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.operations import operations, string_attribute, symbols
from hloforge.dialect.program import entry_function
from hloforge.dialect.traits import Trait, with_traits

_FUNCTION = "func.func"
_CONDITIONALS = frozenset({"stablehlo.case", "stablehlo.if", "mhlo.case", "mhlo.if"})
# Whose function may be replaced by something else, whole: handlers know composites by their names.
_REPLACED = frozenset({"stablehlo.composite", "mhlo.composite"})
# What has no operand and is a constant, or has operands and asks only for their sizes.
_CONSTANT = frozenset({"stablehlo.constant", "mhlo.constant", "stablehlo.iota", "mhlo.iota", "arith.constant"})
_SIZES = frozenset({"stablehlo.get_dimension_size", "mhlo.get_dimension_size", "shape.shape_of", "tensor.dim"})
_EFFECTS = with_traits(Trait.EFFECTS)
_TERMINATORS = frozenset({"func.return", "stablehlo.return", "mhlo.return", "sdy.return"})


class Reached:
    """Answers for one module, which must not change meanwhile."""

    def __init__(self, module: ir.Module) -> None:
        self.entry = entry_function(module).operation
        self.callers: dict[str, list[ir.Operation]] = {}
        for op in operations(module):
            for symbol in symbols(op):
                self.callers.setdefault(symbol, []).append(op)
        self.functions: dict[tuple[str, bool], bool] = {}

    def certainly(self, op: AnyOp, *, effects: bool | None = None) -> bool:
        """Whether each run that comes to the end comes to this operation, or would if its loops turn at all.

        Args:
            effects: whether it does more than to compute its results; by default what the operation says.
        """
        effects = _has_effects(op) if effects is None else effects
        while True:
            if not effects and not _is_read(op):
                return False
            parent = op.parent.operation if op.parent is not None else None
            if parent is None or parent.name == _FUNCTION:
                return parent is not None and self._is_called(parent, effects)
            if parent.name in _REPLACED or (parent.name in _CONDITIONALS and not self._is_open(parent.operands[0])):
                return False
            op = parent

    def _is_called(self, function: ir.Operation, effects: bool) -> bool:
        if function == self.entry:
            return True
        key = string_attribute(function, "sym_name"), effects
        if key not in self.functions:
            # Of a recursion, which is an error elsewhere.
            self.functions[key] = False
            callers = self.callers.get(key[0], [])
            called = (one.name not in _REPLACED and self.certainly(one, effects=effects) for one in callers)
            self.functions[key] = any(called)
        return self.functions[key]

    def _is_open(self, choice: Any) -> bool:
        """Whether a value depends on an input of ``main``, so that no pass can make a constant of it."""
        pending, seen = [choice], set()
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            if isinstance(value.owner, ir.Block):
                function = value.owner.owner.operation
                if function == self.entry:
                    return True
                if function.name == _FUNCTION:
                    callers = self.callers.get(string_attribute(function, "sym_name"), [])
                    # One constant of several choices is enough to leave the branch open.
                    if len(callers) != 1 or len(callers[0].operands) <= value.arg_number:
                        return False
                    pending.append(callers[0].operands[value.arg_number])
                continue
            op = value.owner.operation
            if op.name in _EFFECTS:
                return True
            if op.name not in _CONSTANT | _SIZES:
                pending += op.operands
        return False


def _has_effects(op: AnyOp) -> bool:
    if "has_side_effect" in op.attributes:
        return bool(ir.BoolAttr(op.attributes["has_side_effect"]).value)
    return op.name in _EFFECTS and not op.name.endswith(".custom_call")


def _is_read(op: AnyOp) -> bool:
    """Whether a result goes, through whatever computes with it, to the end of a block or to an effect."""
    pending, seen = [op.operation], set()
    while pending:
        for result in pending.pop().results:
            for use in result.uses:
                user = use.owner.operation
                if user.name in _TERMINATORS or _has_effects(user):
                    return True
                if user not in seen:
                    seen.add(user)
                    pending.append(user)
    return False
