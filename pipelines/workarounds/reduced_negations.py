"""``legalize-reduced-negations``: what is added up is multiplied by -1, and not negated.

Before::

    %n = stablehlo.negate %x : tensor<16x64xf32>
    %s = stablehlo.reduce(%n init: %zero) applies stablehlo.add across dimensions = [1]

After::

    %m = stablehlo.multiply %x, %minus_one : tensor<16x64xf32>
    %s = stablehlo.reduce(%m init: %zero) applies stablehlo.add across dimensions = [1]

IREE 3.13 makes differences of sums of negated floats (``s + -x`` is ``s - x``). For Vulkan it deals a reduction out to
threads only if it knows with what its operation begins, and a difference has no such number: "Failed to get an identity
value for the reduction operation", as for ``(-jnp.log(p)).sum()``. Of integers it does so with products by -1, which
are negations here. A product with -1 is exact, and has a negation's bits but for the sign of NaN. Source: XLA "Reduce".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.dense_values import array_of
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op
from hloforge.dialect.traits import VIEWS
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.passes import VULKAN, PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_REDUCTIONS = frozenset({"stablehlo.reduce", "stablehlo.reduce_window"})


@pattern("stablehlo.negate")
def as_product(op: ir.Operation) -> Replacement:
    """negate x -> multiply x, -1, for floats that a reduction reads."""
    value = Value(op.operands[0])
    if not value.element_type.is_float or not is_static(op):
        return NoMatch("no floats, or dynamic")
    if not _is_reduced(op.results[0]):
        return NoMatch("no reduction reads it")
    return ops.mul(value, full(value, -1))


@pattern("stablehlo.multiply")
def as_negation(op: ir.Operation) -> Replacement:
    """multiply x, -1 -> negate x, for integers that a reduction reads."""
    if Value(op.operands[0]).element_type.is_float or not is_static(op):
        return NoMatch("floats, or dynamic")
    others = [op.operands[1 - number] for number in range(2) if _is_minus_one(op.operands[number])]
    if not others or not _is_reduced(op.results[0]):
        return NoMatch("no product with -1 that a reduction reads")
    return ops.neg(Value(others[0]))


def _is_reduced(value: SSAValue) -> bool:
    """Whether a reduction reads a value, or a view of it."""
    for use in value.uses:
        reader = use.owner.operation
        if reader.name in _REDUCTIONS or (reader.name in VIEWS and _is_reduced(reader.results[0])):
            return True
    return False


def _is_minus_one(value: SSAValue) -> bool:
    """Whether a value is an array of -1, also by a broadcast."""
    spread = defining_op(value, "stablehlo.broadcast_in_dim")
    maker = defining_op(value if spread is None else spread.operands[0], "stablehlo.constant")
    return (
        maker is not None
        and Value(maker.results[0]).element_type.is_integer
        and bool(np.all(array_of(maker.attributes["value"]) == -1))
    )


@register
@dataclass(frozen=True)
class LegalizeReducedNegations(PatternPass):
    """Add up products with -1 instead of negated floats."""

    name: ClassVar[str] = "legalize-reduced-negations"
    targets: ClassVar[frozenset[str]] = VULKAN
    patterns: ClassVar[tuple[Pattern, ...]] = (*as_product, *as_negation)
