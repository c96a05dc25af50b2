"""``legalize-factor-scales``: numbers that both factors of a product are multiplied by are one, of the smaller factor.

Before, as attention is exported, of one query::

    %q = %x * 0.35 : tensor<8x1x64xf32>
    %k = %y * 0.35 : tensor<8x2048x64xf32>
    %s = stablehlo.dot_general %q, %k : (tensor<8x1x64xf32>, tensor<8x2048x64xf32>) -> tensor<8x1x2048xf32>

After::

    %q = %x * 0.1225 : tensor<8x1x64xf32>
    %s = stablehlo.dot_general %q, %y : (tensor<8x1x64xf32>, tensor<8x2048x64xf32>) -> tensor<8x1x2048xf32>

PyTorch and ONNX multiply queries and keys by the root of the scale each. The keys are a cache, which is read as it is
then, and was copied. One rounding of each key is left out, so that scores are no less exact. Likewise the sums of a
softmax divide the product of its exponentials, which has fewer elements where there are more keys than features.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.codegen.passes.known_divisors import known_number
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Pattern, Replacement, pattern

_VIEWS = frozenset(
    {"stablehlo.transpose", "stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.slice", "stablehlo.reverse"}
)
# Numbers between these: products of two factors that each is multiplied by leave the range where the program's do.
_LEAST, _GREATEST = 2.0**-20, 2.0**20


@dataclass(frozen=True)
class _Scaled:
    """A factor that is views of ``numbers * scale``.

    Attributes:
        views: from the product on.
    """

    numbers: SSAValue
    scale: float
    views: tuple[ir.Operation, ...]

    def times(self, scale: float) -> Value:
        """The factor of the numbers times another scale."""
        found = Value(self.numbers)
        if scale != 1:
            found = ops.mul(found, full(found, scale))
        for view in reversed(self.views):
            made = ir.Operation.create(
                view.name,
                results=[view.results[0].type],
                operands=[found.ir],
                attributes={name: view.attributes[name] for name in view.attributes},
            )
            found = Value(made.results[0])
        return found


@pattern("stablehlo.dot_general")
def of_scaled_factors(op: ir.Operation) -> Replacement:
    """Multiply the smaller factor by both."""
    if not is_static(op) or Value(op.operands[0]).element_type.name not in ("f32", "f64"):
        return NoMatch("of unknown size, or factors that are rounded")
    pair = [_scaled(value) for value in op.operands]
    if pair[0] is None or pair[1] is None:
        return NoMatch("no scale, or of one factor alone")
    sizes = [prod(one.numbers.type.shape) for one in pair if one is not None]
    small = int(sizes[1] < sizes[0])
    kept, plain = pair[small], pair[1 - small]
    assert kept is not None
    assert plain is not None
    row = np.float64 if Value(op.operands[0]).element_type.name == "f64" else np.float32
    op.operands[small] = kept.times(float(row(kept.scale) * row(plain.scale))).ir
    op.operands[1 - small] = plain.times(1).ir
    return REWRITTEN


@pattern("stablehlo.dot_general")
def of_shares(op: ir.Operation) -> Replacement:
    """Divide what the exponentials of a softmax weigh by their sums, not each exponential."""
    result = Value(op.results[0])
    if not is_static(op) or result.element_type.name not in ("f32", "f64"):
        return NoMatch("of unknown size, or results that are rounded")
    found = next(((side, sums) for side in range(2) if (sums := _sums_of(op.operands[side])) is not None), None)
    if found is None or Value(op.operands[0]).element_type.name != result.element_type.name:
        return NoMatch("no softmax")
    side, (exponentials, totals, dims) = found
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch = [list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)]
    summed = [list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)]
    if set(dims) & set(summed[side]):
        return NoMatch("sums that differ along the terms")
    if prod(result.dims) >= prod(exponentials.type.shape):
        return NoMatch("as many quotients")
    free = [[d for d in range(Value(op.operands[n]).rank) if d not in {*batch[n], *summed[n]}] for n in range(2)]
    # Where each dimension of the factor is in the result.
    order = [*batch[side], *([-1] * len(free[0]) if side else []), *free[side]]
    made: Any = ir.Operation.create(
        op.name,
        results=[op.results[0].type],
        operands=[exponentials if n == side else op.operands[n] for n in range(2)],
        attributes={name: op.attributes[name] for name in op.attributes},
    )
    places = [order.index(d) for d in dims]
    ways = sorted(range(len(dims)), key=places.__getitem__)
    turned = ops.transpose(totals, ways) if ways != sorted(ways) else totals
    return [ops.div(Value(made.results[0]), ops.broadcast_in_dim(turned, result.dims, sorted(places)))]


def _sums_of(value: SSAValue) -> tuple[SSAValue, Value, list[int]] | None:
    """Of exponentials that are divided by their sums: they, the sums, and the dimensions that these go along."""
    op = defining_op(value)
    if op is None or op.name != "stablehlo.divide":
        return None
    top, below = (defining_op(one) for one in op.operands)
    if (
        top is None
        or top.name != "stablehlo.exponential"
        or below is None
        or below.name != "stablehlo.broadcast_in_dim"
    ):
        return None
    totals, dims = below.operands[0], integers(below, "broadcast_dimensions")
    inner = defining_op(totals)
    while inner is not None and inner.name in ("stablehlo.reshape", "stablehlo.broadcast_in_dim"):
        if prod(inner.operands[0].type.shape) != prod(totals.type.shape):
            return None
        inner = defining_op(inner.operands[0])
    if inner is None or inner.name != "stablehlo.reduce" or inner.operands[0] != op.operands[0]:
        return None
    kept = [d for d, size in zip(dims, totals.type.shape, strict=True) if size != 1 or value.type.shape[d] == 1]
    sizes = [value.type.shape[d] for d in kept]
    return op.operands[0], ops.reshape(Value(totals), sizes), kept


def _scaled(value: SSAValue) -> _Scaled | None:
    """A factor as views of what is multiplied by a number; None of another one."""
    views = []
    while (op := defining_op(value)) is not None and op.name in _VIEWS:
        views.append(op)
        value = op.operands[0]
    if op is None or op.name != "stablehlo.multiply":
        return None
    for number in (1, 0):
        scale = known_number(op.operands[number])
        if scale is not None and _LEAST <= abs(scale) <= _GREATEST and known_number(op.operands[1 - number]) is None:
            return _Scaled(op.operands[1 - number], scale, tuple(views))
    return None


@register
@dataclass(frozen=True)
class LegalizeFactorScales(PatternPass):
    """Products of factors that are each scaled scale one."""

    name: ClassVar[str] = "legalize-factor-scales"
    patterns: ClassVar[tuple[Pattern, ...]] = of_scaled_factors + of_shares
