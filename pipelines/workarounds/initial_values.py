"""``legalize-initial-values``: reductions of windows share the array of their initial values with nothing.

Before::

    %p = "stablehlo.reduce_window"(%x, %zero) ... : (tensor<3x130xi32>, tensor<i32>) -> tensor<3x129xi32>
    %q = "stablehlo.reduce_window"(%y, %zero) ... : (tensor<3x130xi32>, tensor<i32>) -> tensor<3x129xi32>

After::

    %g = stablehlo.optimization_barrier %zero : tensor<i32>
    %p = "stablehlo.reduce_window"(%x, %g) ... : (tensor<3x130xi32>, tensor<i32>) -> tensor<3x129xi32>
    %h = stablehlo.optimization_barrier %g : tensor<i32>
    %q = "stablehlo.reduce_window"(%y, %h) ... : (tensor<3x130xi32>, tensor<i32>) -> tensor<3x129xi32>

IREE 3.13 fills an array with the initial value of each, which windows then update, and merges equal ones: those of
several windows, and zeros that a scatter updates. What other reductions begin with it repeats in each dispatch. That of
windows it returns from the first one's dispatch beside the result, so that the first one needs a copy of it, for which
there is no memory in code for CUDA: "failed to bufferize op". The second one's barrier reads the first one's, because
IREE merges equal barriers as well.

IREE drops dimensions, and begins a running sum with an array that has one less, so that arrays of other shapes may be
equal as well. Source: XLA "ReduceWindow".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import CUDA, Pass, register


@register
@dataclass(frozen=True)
class LegalizeInitialValues(Pass):
    """Let each reduction of windows begin with a value that nothing else has."""

    name: ClassVar[str] = "legalize-initial-values"
    targets: ClassVar[frozenset[str]] = CUDA
    needs: ClassVar[frozenset[str]] = frozenset({"stablehlo.reduce_window"})

    def run(self, module: ir.Module) -> None:
        chains: dict[int, _Chain] = {}
        with in_context(module):
            for op in operations(module, ("stablehlo.reduce_window",)):
                for number, result in enumerate(op.results):
                    # Whatever the shape is, and whatever the sign of integers, which IREE drops.
                    chain = chains.setdefault(Value(result).element_type.bits, _Chain())
                    chain.begin(op, len(op.results) + number)


@dataclass
class _Chain:
    """Initial values of arrays that may be equal: behind one barrier, two, three …

    Attributes:
        length: how many barriers the last one is behind.
        ends: the last one of an initial value and block, and its number of barriers.
    """

    length: int = 0
    ends: dict[tuple[Any, Any], tuple[Value, int]] = field(default_factory=dict)

    def begin(self, op: ir.Operation, number: int) -> None:
        """Let an operand of a reduction be the next one."""
        self.length += 1
        init = op.operands[number]
        value, behind = self.ends.get((init, op.block), (Value(init), 0))
        with ir.InsertionPoint(op), op.location:
            for _ in range(self.length - behind):
                value = ops.optimization_barrier(value)
        self.ends[init, op.block] = value, self.length
        op.operands[number] = value.ir
