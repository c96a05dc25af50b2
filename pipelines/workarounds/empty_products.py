"""``legalize-empty-products``: dots and convolutions with nothing to multiply as zeros.

Before::

    %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x0xi1>, tensor<0x3xi1>) -> tensor<2x3xi1>

After::

    %r = stablehlo.broadcast_in_dim %false, dims = [] : (tensor<i1>) -> tensor<2x3xi1>

IREE 3.13 divides by the number of features, zero, where booleans or complex numbers are multiplied; other types it
folds in the same way. Source: StableHLO spec "dot_general", "convolution": the sum over no elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.idioms import zeros
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import multiplies_nothing
from hloforge.pipelines.framework.facts import NORMALIZED, Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.dot_general", "stablehlo.convolution")
def as_zeros(op: ir.Operation) -> Replacement:
    """A sum of no products."""
    if not multiplies_nothing(op):
        return NoMatch("both operands have elements")
    result = Value(op.results[0])
    return zeros(result.element_type, result.dims)


@register
@dataclass(frozen=True)
class LegalizeEmptyProducts(PatternPass):
    """Replace dots and convolutions of empty arrays by zeros."""

    name: ClassVar[str] = "legalize-empty-products"
    requires: ClassVar[Facts] = NORMALIZED | frozenset({Fact.NO_CHLO})
    establishes: ClassVar[Facts] = frozenset({Fact.SAFE_PRODUCTS})
    patterns: ClassVar[tuple[Pattern, ...]] = as_zeros
