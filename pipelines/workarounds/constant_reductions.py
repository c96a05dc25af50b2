"""``legalize-constant-reductions``: reductions of uniform arrays, which IREE counts once.

Before::

    %m = stablehlo.compare GE, %x, %zero : (tensor<5xui8>, tensor<5xui8>) -> tensor<5xi1>
    %n = stablehlo.convert %m : (tensor<5xi1>) -> tensor<5xi32>
    %s = stablehlo.reduce(%n init: %i) applies stablehlo.add

After, ``%hidden`` being 0 after an ``optimization_barrier``::

    %m = stablehlo.compare GE, %x, %hidden : (tensor<5xui8>, tensor<5xui8>) -> tensor<5xi1>

IREE 3.13 puts what is computed element by element into the computation of the reduction, and folds it. Where a number
is left that reads no array, MLIR's vectorization of linear algebra adds it once instead of once an element (``%s`` was
1, not 5); and beside another reduction in one dispatch the two share the memory of their results (``jnp.cov`` with
constant weights was infinite). So arrays of one number are hidden where they are reduced; so is, in functions of other
arrays that are reduced, each operand by which MLIR finds that the function is one number (``constant_folds.py``).
So is what a part is read of whose start is known at run time, unless it is a constant, as the part then is: IREE fills
the array and copies the part in one dispatch, and refuses some of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.mlir import AnyOp, SSAValue, in_context, ir
from hloforge.dialect.operations import blocks, defining_op
from hloforge.dialect.program import entry_function
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.workarounds.constant_folds import deciding_operand, number_of

# What a view or a selection of positions has of its first operand.
_VIEWS = frozenset(
    f"stablehlo.{name}"
    for name in ("broadcast_in_dim", "dynamic_slice", "gather", "reshape", "reverse", "slice", "transpose")
)
_PRODUCTS = frozenset({"stablehlo.convolution", "stablehlo.dot", "stablehlo.dot_general"})
_REDUCTIONS = _PRODUCTS | {"stablehlo.reduce", "stablehlo.reduce_window"}
# What IREE computes where all operands are constants.
_COMPUTED_BY_IREE = _PRODUCTS | {"stablehlo.reduce_window"}
_NESTING = frozenset({"stablehlo.case", "stablehlo.if", "stablehlo.while"})
# Computations that a number changes once at most.
_IDEMPOTENT = frozenset(f"stablehlo.{name}" for name in ("and", "maximum", "minimum", "or"))


@register
@dataclass(frozen=True)
class LegalizeConstantReductions(Pass):
    """Hide uniform arrays from IREE where they are reduced, and the operations that make arrays uniform."""

    name: ClassVar[str] = "legalize-constant-reductions"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            _Hiding().visit(entry_function(module).operation.regions[0].blocks[0])


@dataclass
class _Hiding:
    """The state of the pass.

    Attributes:
        equal: values whose elements are one number that is known now.
        seen: results of operations whose operands were looked at.
    """

    equal: set[Any] = field(default_factory=set)
    seen: set[Any] = field(default_factory=set)

    def visit(self, block: ir.Block) -> None:
        for op in [op.operation for op in block.operations]:
            if op.name in _NESTING:
                for inner in blocks(op):
                    self.visit(inner)
            elif op.name in _REDUCTIONS:
                arrays = range(len(op.operands) if op.name in _PRODUCTS else len(op.operands) // 2)
                self.hide(op, arrays)
                if not _is_idempotent(op):
                    for number in arrays:
                        self.uncover(op.operands[number])
            elif op.name == "stablehlo.dynamic_slice":
                self.part(op)
            elif self.is_of_one_number(op):
                self.equal.update(op.results)

    def part(self, op: AnyOp) -> None:
        """A part of a constant is a constant; of what only IREE finds to be one number, it is read after a barrier."""
        array, result = op.operands[0], Value(op.results[0])
        known = number_of(array)
        if known is None:
            if not isinstance(array.type.element_type, ir.ComplexType):
                self.hide(op, [0])
            self.uncover(op.operands[0])
            return
        with ir.InsertionPoint(op), op.location:
            constant = full(result, known, result.element_type).ir
        result.ir.replace_all_uses_with(constant)
        self.equal.add(constant)

    def is_of_one_number(self, op: ir.Operation) -> bool:
        """Whether all elements of an operation's result are one number that is known now.

        Complex constants count as such: the bindings do not read their attribute, and hiding one too many costs
        nothing.
        """
        if op.name == "stablehlo.constant":
            if isinstance(op.results[0].type.element_type, ir.ComplexType):
                return True
            value = op.attributes["value"]
            return isinstance(value, ir.DenseElementsAttr) and bool(value.is_splat)
        if op.name in _VIEWS:
            return op.operands[0] in self.equal
        if op.name not in ELEMENTWISE | {"stablehlo.concatenate"}:
            return False
        return all(operand in self.equal for operand in op.operands)

    def hide(self, op: AnyOp, arrays: Sequence[int]) -> None:
        """Put a barrier before reduced arrays of one number.

        A product has none if it reads another array. IREE computes constant products and windows by themselves.
        """
        operands = [op.operands[number] for number in arrays]
        if op.name in _PRODUCTS and not self.equal.issuperset(operands):
            return
        if op.name in _COMPUTED_BY_IREE and all(number_of(array) is not None for array in operands):
            return
        for number, array in zip(arrays, operands, strict=True):
            if array in self.equal:
                with ir.InsertionPoint(op), op.location:
                    op.operands[number] = _hidden(array)

    def uncover(self, value: SSAValue) -> None:
        """Hide the operands that make one number of what is computed of other arrays, element by element."""
        pending = [value]
        while pending:
            value = pending.pop()
            op = defining_op(value)
            if op is None or value in self.seen or op.name not in ELEMENTWISE | _VIEWS:
                continue
            self.seen.add(value)
            pending += op.operands
            number = deciding_operand(op, self.equal)
            if number is not None:
                _hide_operand(op, number)


def _hide_operand(op: ir.Operation, number: int) -> None:
    """Put a barrier before an operand: where it is a constant, before its number, which fuses on."""
    array, known = op.operands[number], number_of(op.operands[number])
    with ir.InsertionPoint(op), op.location:
        if known is None or not array.type.has_static_shape:
            op.operands[number] = _hidden(array)
            return
        scalar = ops.constant(known, Value(array).element_type)
        op.operands[number] = ops.broadcast(Value(_hidden(scalar.ir)), array.type.shape).ir


def _hidden(value: SSAValue) -> Any:
    """A value after a barrier, at the insertion point."""
    return ir.Operation.create("stablehlo.optimization_barrier", results=[value.type], operands=[value]).result


def _is_idempotent(op: ir.Operation) -> bool:
    body = [inner.operation.name for block in blocks(op) for inner in block.operations]
    return len(body) == 2 and body[0] in _IDEMPOTENT
