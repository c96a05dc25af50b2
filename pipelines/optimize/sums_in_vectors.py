"""``sums-in-vectors``: vectorize sums of products that IREE does not recognize as matrix products.

Before::

    %p = stablehlo.multiply %x, %y
    %s = stablehlo.reduce(%p init: 0.0) applies stablehlo.add

After::

    %p = stablehlo.multiply %x, %y
    %q = stablehlo.add %p, 0.0
    %s = stablehlo.reduce(%q init: 0.0) applies stablehlo.add

IREE 3.13 fuses both loops, and makes a contraction of a product and a sum (``vector.contract``), whose lowering takes
one element at a time: the sum of squares of rows takes four to seven times as long as that of the numbers themselves.
Adding zero changes no sum that starts from zero: it is exact, and -0 counts as nothing either way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import defining_op, is_made_by, operations, splat
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import combiner
from hloforge.pipelines.framework.passes import CPU, Pass, register

_SHAPED = frozenset({"stablehlo.reshape", "stablehlo.transpose"})


@register
@dataclass(frozen=True)
class SumsInVectors(Pass):
    """Put an addition of zero between a product and its sum, so that IREE vectorizes it; f32 and f64."""

    name: ClassVar[str] = "sums-in-vectors"
    targets: ClassVar[frozenset[str]] = CPU

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.reduce"}):
                if _sums_products(op):
                    with ir.InsertionPoint(op), op.location:
                        op.operands[0] = (Value(op.operands[0]) + 0.0).ir


def _sums_products(op: ir.Operation) -> bool:
    """A sum from +0 of what a multiplication makes, in whatever shape."""
    if len(op.operands) != 2 or combiner(op) != "stablehlo.add":
        return False
    row = Value(op.operands[0]).element_type
    return row.name in ("f32", "f64") and _starts_at_zero(op.operands[1]) and _is_product(op.operands[0])


def _starts_at_zero(init: SSAValue) -> bool:
    constant = defining_op(init, "stablehlo.constant")
    if constant is None:
        return False
    value = splat(constant)
    return bool(value == 0 and not np.signbit(value))


def _is_product(value: SSAValue) -> bool:
    while view := defining_op(value, *_SHAPED):
        value = view.operands[0]
    return is_made_by(value, "stablehlo.multiply")
