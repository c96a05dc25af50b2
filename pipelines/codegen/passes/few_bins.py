"""``legalize-few-bins``: a scatter into a few elements is a reduction for each of them.

Before, counts of four kinds::

    %r = stablehlo.scatter(%zeros, %i, %ones) ({ add })
      : (tensor<4xi32>, tensor<28556x1xi32>, tensor<28556xi32>) -> tensor<4xi32>

After, with the indices and updates repeated for each of the elements, ``[4, 28556]``::

    %mine = stablehlo.compare EQ, %i, (stablehlo.iota dim = 0)
    %u    = stablehlo.select %mine, %ones, %zero
    %s    = stablehlo.reduce %u, %zero ({ add }) across dimensions = [1]
    %r    = stablehlo.add %zeros, %s

A scatter changes one element after the other, and waits for what it stored just before if that was the same one. The
reductions are vectors, and have several workgroups. An index that is out of bounds equals no element's place, so that
its update is left out, as the scatter does. Only computations whose order makes no difference: sums of floats keep
theirs, as XLA does. Source: StableHLO spec "scatter".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.mlir import ir
from hloforge.dialect.regions import inline_region, vectorize_region
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.scatter_combiner import Combiner
from hloforge.pipelines.decompose.scatter_windows import Windows
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# Bytes of the elements, or of as many indices: vectors of AVX-512 compare so many with an index in an instruction. An
# update costs one for each element, and 3 to 15 cycles in a scatter.
_MOST_BYTES = 64
# Updates of an element from which on it pays.
_LEAST = 16
# Sums of floats have another result in another order; extremes have not.
_ORDERLESS = frozenset({"stablehlo.maximum", "stablehlo.minimum"})


@pattern("stablehlo.scatter")
def of_few_elements(op: ir.Operation) -> Replacement:
    """Reduce what each element is given."""
    windows = Windows.of(op)
    if not windows.is_static or len(windows.operands) != 1 or set(windows.window) != {1}:
        return NoMatch("of unknown size, of several arrays, or its windows have several elements")
    places = {*windows.scattered, *windows.numbers.input_batching_dims}
    if not windows.scattered or len(places) < len(windows.dims):
        return NoMatch("its windows begin at the same place")
    (operand,), count = windows.operands, prod(windows.dims[d] for d in windows.scattered)
    widest = max(operand.element_type.bits, windows.indices.element_type.bits) // 8
    if count * widest > _MOST_BYTES or windows.count < _LEAST * prod(windows.dims):
        return NoMatch("into many elements, or of few updates")
    neutral = Combiner(op.regions[0]).identity(0)
    (*_, last) = op.regions[0].blocks[0].operations
    if neutral is None or not _is_orderless(operand, Value(last.operands[0])):
        return NoMatch("its order makes a difference")

    def joined(one: Value, other: Value) -> Value:
        (both,) = inline_region(op.regions[0], [one, other])
        return both

    along = [len(windows.scattered) + n for n, d in enumerate(windows.batch) if d not in _batching(windows)]
    found = ops.reduce(_given(windows, neutral), constant(neutral, operand.element_type), joined, along)
    # Of what is left, the dimensions in the operand's order.
    pairs = zip(windows.numbers.input_batching_dims, _batching(windows), strict=True)
    kept = [*windows.scattered, *(d for d, _ in sorted(pairs, key=lambda pair: pair[1]))]
    found = ops.transpose(found, [kept.index(d) for d in range(operand.rank)])
    (new,) = vectorize_region(op.regions[0], [operand, found])
    return new


def _is_orderless(operand: Value, made: Value) -> bool:
    return not operand.element_type.is_float or made.ir.owner.name in _ORDERLESS


def _batching(windows: Windows) -> list[int]:
    return list(windows.numbers.scatter_indices_batching_dims)


def _given(windows: Windows, neutral: Any) -> Value:
    """For each element, and each window: the update if that is its own, else one that changes nothing."""
    vector, indices = windows.numbers.index_vector_dim, windows.indices
    bins = [windows.dims[d] for d in windows.scattered]
    sizes = [indices.dims[d] for d in windows.batch]
    shape, behind = [*bins, *sizes], range(len(bins), len(bins) + len(sizes))

    def repeated(array: Value) -> Value:
        return ops.broadcast_in_dim(ops.reshape(array, sizes), shape, behind)

    is_own: Value | None = None
    for component in range(len(bins)):
        starts = [component if d == vector else 0 for d in range(indices.rank)]
        limits = [component + 1 if d == vector else size for d, size in enumerate(indices.dims)]
        place = repeated(ops.slice(indices, starts, limits))
        fits = ops.eq(place, ops.iota(indices.element_type, shape, component))
        is_own = fits if is_own is None else is_own & fits
    assert is_own is not None
    update = repeated(windows.updates[0])
    return ops.select(is_own, update, full(update, neutral))


@register
@dataclass(frozen=True)
class LegalizeFewBins(PatternPass):
    """Scatters into a few elements are reductions."""

    name: ClassVar[str] = "legalize-few-bins"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = of_few_elements
