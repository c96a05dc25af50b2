"""``legalize-transposed-reductions``: keep a reduction of several arrays apart from what transposes its results.

Before::

    %r:2 = stablehlo.reduce(%x init: %low), (%iota init: %zero) ... : tensor<2x3xf32>, tensor<2x3xi32>
    %t = stablehlo.transpose %r#1, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>

After::

    %b = stablehlo.optimization_barrier %r#1 : tensor<2x3xi32>
    %t = stablehlo.transpose %b, dims = [1, 0]

IREE 3.13 moves a transposition into the linalg operation that computes its operand, and hands that the transposed
initial value alone, without those of the other results: ``'linalg.yield' op expected number of yield values (2) to
match``. So ``jnp.argmax(x, 1).T`` did not compile. Transpositions get there also through functions of the result and
reshapes, and products of matrices make some of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, SSAValue, in_context, ir
from hloforge.dialect.operations import integers, operations
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import Pass, register

_REDUCTIONS = ("stablehlo.reduce", "stablehlo.reduce_window")
# What a transposition may be moved ahead of.
_PASSED = ELEMENTWISE | {"stablehlo.broadcast_in_dim", "stablehlo.reshape"}
_TRANSPOSING = ("stablehlo.transpose", "stablehlo.dot_general")


@register
@dataclass(frozen=True)
class LegalizeTransposedReductions(Pass):
    """Put a barrier between a reduction of several arrays and the transposition of one of its results."""

    name: ClassVar[str] = "legalize-transposed-reductions"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, _REDUCTIONS):
                if len(op.results) < 2:
                    continue
                for result in op.results:
                    if len(result.type.shape) > 1 and _is_transposed(result):
                        _hold_back(op, result)


def _is_transposed(result: SSAValue) -> bool:
    """Whether an array is transposed, by itself or after elementwise functions."""
    seen, waiting = {result}, [result]
    while waiting:
        for use in waiting.pop().uses:
            user = use.owner.operation
            if user.name in _TRANSPOSING or _is_transposing_broadcast(user):
                return True
            new = [made for made in user.results if made not in seen] if user.name in _PASSED else []
            seen.update(new)
            waiting += new
    return False


def _is_transposing_broadcast(op: AnyOp) -> bool:
    order = integers(op, "broadcast_dimensions") if op.name == "stablehlo.broadcast_in_dim" else []
    return order != sorted(order)


def _hold_back(op: ir.Operation, result: SSAValue) -> None:
    """Let everybody read a result after a barrier."""
    users = [(use.owner.operation, use.operand_number) for use in result.uses]
    with ir.InsertionPoint.after(op), op.location:
        held = ops.optimization_barrier(Value(result)).ir
    for user, number in users:
        user.operands[number] = held
