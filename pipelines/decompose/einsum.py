"""``decompose-einsum``: sums of products over named dimensions as dot_general.

Before::

    %r = stablehlo.einsum %x, %y, config = "ijk,jl->li" : (tensor<3x4x5xf32>, tensor<4x2xf32>) -> tensor<2x3xf32>

After::

    %s = reduce(%x) over k : tensor<3x4xf32>
    %d = stablehlo.dot_general %s, %y, contracting_dims = [1] x [0] : ... -> tensor<3x2xf32>
    %r = stablehlo.transpose %d, dims = [1, 0]

IREE 3.13 takes configurations alone whose every dimension is in the result or in both operands. A name that is
twice in an operand takes its diagonal. Source: StableHLO spec "einsum"; numpy.einsum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.idioms import zeros
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.einsum")
def as_dot(op: ir.Operation) -> Replacement:
    """einsum -> diagonals and sums of each operand, dot_general, transpose; static shapes, no ellipsis."""
    config = ir.StringAttr(op.attributes["einsum_config"]).value
    if "." in config or not all(value.type.has_static_shape for value in (*op.operands, *op.results)):
        return NoMatch("dynamic size, or dimensions without names")
    terms, _, wanted = config.replace(" ", "").partition("->")
    names = terms.split(",")
    operands = [_diagonal(Value(operand), name) for operand, name in zip(op.operands, names, strict=True)]
    (lhs, left), (rhs, right) = (
        _summed(value, name, other + wanted)
        for (value, name), (_, other) in zip(operands, reversed(operands), strict=True)
    )
    shared = [name for name in left if name in right]
    batch, contracted = ([n for n in shared if (n in wanted) == kept] for kept in (True, False))
    made = [*batch, *(n for n in left if n not in shared), *(n for n in right if n not in shared)]
    sizes = dict(zip([*left, *right], [*lhs.dims, *rhs.dims], strict=True))
    numbers = stablehlo.DotDimensionNumbers.get(
        lhs_batching_dimensions=[left.index(n) for n in batch],
        rhs_batching_dimensions=[right.index(n) for n in batch],
        lhs_contracting_dimensions=[left.index(n) for n in contracted],
        rhs_contracting_dimensions=[right.index(n) for n in contracted],
    )
    type_ = ir.RankedTensorType.get([sizes[n] for n in made], op.results[0].type.element_type)
    product = emit("stablehlo.dot_general", [lhs, rhs], type_, dot_dimension_numbers=numbers)
    return ops.transpose(product, [made.index(n) for n in wanted])


def _diagonal(value: Value, name: str) -> tuple[Value, str]:
    """The elements at equal positions of dimensions of one name, and the names that are left."""
    for number, letter in enumerate(name):
        first = name.index(letter)
        if first == number:
            continue
        places = [ops.iota("s32", value.dims, d) for d in (first, number)]
        kept = ops.select(ops.eq(places[0], places[1]), value, zeros(value.element_type, value.dims))
        return _diagonal(_sum(kept, [number]), name[:number] + name[number + 1 :])
    return value, name


def _summed(value: Value, name: str, others: str) -> tuple[Value, str]:
    """The sum over the dimensions that nothing else names."""
    alone = [number for number, letter in enumerate(name) if letter not in others]
    kept = "".join(letter for letter in name if letter in others)
    return (_sum(value, alone) if alone else value), kept


def _sum(value: Value, dimensions: Sequence[int]) -> Value:
    return ops.reduce(value, 0, ops.add, dimensions)


@register
@dataclass(frozen=True)
class DecomposeEinsum(PatternPass):
    """Replace einsum by dot_general and reductions."""

    name: ClassVar[str] = "decompose-einsum"
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SAFE_PRODUCTS})
    patterns: ClassVar[tuple[Pattern, ...]] = as_dot
