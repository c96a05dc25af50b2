"""``legalize-constant-reductions``: reductions of one number over and over, which IREE does not see.

Before::

    %w = stablehlo.broadcast_in_dim %quarter, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %s = stablehlo.reduce(%w init: %zero) applies stablehlo.add

After::

    %h = stablehlo.optimization_barrier %w
    %s = stablehlo.reduce(%h init: %zero) applies stablehlo.add

IREE 3.13 puts the number into the computation, which then reads no array; beside another reduction in one dispatch the
two share the memory of their results, and ``jnp.cov`` with constant weights was infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.program import entry_function
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.pipelines.passes import Pass, register

_VIEWS = frozenset(f"stablehlo.{name}" for name in ("broadcast_in_dim", "reshape", "reverse", "slice", "transpose"))


@register
@dataclass(frozen=True)
class LegalizeConstantReductions(Pass):
    """Hide arrays of one number from IREE where they are reduced."""

    name: ClassVar[str] = "legalize-constant-reductions"

    def run(self, module: Any) -> None:
        block = entry_function(module).operation.regions[0].blocks[0]
        equal: set[Any] = set()
        with in_context(module):
            for op in [op.operation for op in block.operations]:
                if op.name == "stablehlo.reduce":
                    _hide(op, equal)
                elif _is_of_one_number(op, equal):
                    equal.update(op.results)


def _is_of_one_number(op: Any, equal: set[Any]) -> bool:
    """Whether all elements of an operation's result are one number that is known now.

    Complex constants count as such: the bindings do not read their attribute, and hiding one too many costs nothing.
    """
    if op.name == "stablehlo.constant":
        if isinstance(op.results[0].type.element_type, ir.ComplexType):
            return True
        value = op.attributes["value"]
        return isinstance(value, ir.DenseElementsAttr) and bool(value.is_splat)
    return op.name in ELEMENTWISE | _VIEWS and all(operand in equal for operand in op.operands)


def _hide(op: Any, equal: set[Any]) -> None:
    for number in range(len(op.operands) // 2):
        if op.operands[number] in equal:
            with ir.InsertionPoint(op), op.location:
                array = op.operands[number]
                hidden = ir.Operation.create("stablehlo.optimization_barrier", results=[array.type], operands=[array])
                op.operands[number] = hidden.results[0]
