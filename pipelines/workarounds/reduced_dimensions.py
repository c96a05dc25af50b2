"""``legalize-reduced-dimensions``: reduce dimensions that are apart from each other as one, in memory.

Before::

    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 2, 4] : tensor<2x3x2x3x2xf32>

After::

    %t = stablehlo.transpose %x, dims = [1, 3, 0, 2, 4] : tensor<3x3x2x2x2xf32>
    %b = stablehlo.optimization_barrier %t
    %r = stablehlo.reshape %b : tensor<3x3x8xf32>
    %s = stablehlo.reduce(%r init: %zero) applies stablehlo.add across dimensions = [2]

IREE 3.13 deals the elements of a reduction out to the threads of a workgroup for Vulkan. The number of a thread is
divided by the sizes along each dimension from the last on, but after the second one by the product of all sizes so
far, by which it was divided already: of three dimensions that have several threads each, the first was read at 0 only,
silently (``delinearizeLaneId`` in MLIR's ``VectorDistribute.cpp``). How many dimensions get threads depends on their
sizes and on the device, so this pass asks for the dimensions alone.

Two dimensions that are apart have no SPIR-V where each gets threads and a vector does not divide the last one
(``x.sum((0, 2))`` of 16x5x5 or 16x5x14, of 32x3x7x7 along all but the second). All such programs of 250 that were
compiled have 16, 32 or 64 places in the other; those with any multiple of 16 become one dimension here.

IREE takes dimensions that lie side by side in all arrays that it reads for one. They are apart where it reads an array
in another order (``(x * y.T).sum()``), or one that lacks some of them (``(x * row).sum()``), with what it computes of
arrays before it reduces. Where a size is known only at the call, IREE makes one of those in memory itself, without the
reshape. Source: XLA "Reduce".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.passes import VULKAN, PatternPass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Pattern, Replacement, pattern

# As many groups of dimensions IREE deals out to threads correctly.
_MOST = 2
# Of two groups, numbers of a vector in the last one, and places of the other that get a thread each.
_VECTOR, _THREADS = 4, 16
# What is in memory before a reduction reads it, in the order of its dimensions.
_STORED = frozenset(
    {"stablehlo.constant", "stablehlo.dot_general", "stablehlo.optimization_barrier", "stablehlo.while"}
)


@pattern("stablehlo.reduce")
def as_one_dimension(op: ir.Operation) -> Replacement:
    """The reduction of the last dimension of arrays in memory."""
    arrays = [Value(op.operands[number]) for number in range(len(op.results))]
    dims, reduced = arrays[0].dims, sorted(integers(op, "dimensions"))
    long = [d for d in reduced if dims[d] != 1]
    apart = [
        second for first, second in pairwise(long) if not all(_are_neighbours(a.ir, first, second) for a in arrays)
    ]
    if 0 in dims or not (len(apart) >= _MOST or (len(apart) == 1 and _are_uneven(dims, long, apart[0]))):
        return NoMatch("it reduces one group of dimensions, or two that IREE deals out to threads")
    kept = [d for d in range(len(dims)) if d not in reduced]
    for number, array in enumerate(arrays):
        ordered = ops.optimization_barrier(ops.transpose(array, [*kept, *reduced]))
        op.operands[number] = (ordered.reshape(*(dims[d] for d in kept), -1) if is_static(op) else ordered).ir
    op.attributes["dimensions"] = ir.DenseI64ArrayAttr.get(list(range(len(kept), Value(op.operands[0]).rank)))
    return REWRITTEN


def _are_uneven(dims: Sequence[int], reduced: Sequence[int], second: int) -> bool:
    """Whether both of two groups get threads, and no whole vectors; a size that is not known may be any.

    Args:
        second: the first dimension of the second group.
    """
    groups = [[dims[d] for d in reduced if (d < second) == is_first] for is_first in (True, False)]
    are_threads = [min(sizes) < 0 or math.prod(sizes) % _THREADS == 0 for sizes in groups]
    have_rests = [min(sizes) < 0 or math.prod(sizes) % _VECTOR != 0 for sizes in groups]
    # An operand may have them in the other order.
    return (are_threads[0] and have_rests[1]) or (are_threads[1] and have_rests[0])


def _are_neighbours(array: SSAValue, one: int, other: int) -> bool:
    """Whether two dimensions lie side by side, the first outside, in every array that IREE computes an array from."""
    waiting: list[tuple[Any, int, int]] = [(array, one, other)]
    seen = set()
    while waiting:
        value, first, second = waiting.pop()
        if (value, first, second) in seen:
            continue
        seen.add((value, first, second))
        dims = Value(value).dims
        if first > second or any(dims[d] != 1 for d in range(first + 1, second)):
            return False
        op = defining_op(value)
        if op is None or (op.name in _STORED and not _is_outer_product(op)):
            continue
        found = _sources(op, first, second)
        if found is None:
            return False
        waiting += found
    return True


def _is_outer_product(op: ir.Operation) -> bool:
    """Whether an operation is a product without a sum, which IREE computes where it is read."""
    if op.name != "stablehlo.dot_general":
        return False
    return not stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"]).lhs_contracting_dimensions


def _sources(op: ir.Operation, first: int, second: int) -> list[tuple[Any, int, int]] | None:
    """The operands that have both dimensions, and where; None if one has one of them alone, or if that is unknown."""
    if op.name in ELEMENTWISE:
        rank = Value(op.results[0]).rank
        arrays = [operand for operand in op.operands if Value(operand).rank > 0]
        return [(a, first, second) for a in arrays] if all(Value(a).rank == rank for a in arrays) else None
    if op.name == "stablehlo.transpose":
        order = integers(op, "permutation")
        return [(op.operands[0], order[first], order[second])]
    if op.name == "stablehlo.broadcast_in_dim":
        source, made = Value(op.operands[0]), Value(op.results[0])
        places = {to: d for d, to in enumerate(integers(op, "broadcast_dimensions")) if source.dims[d] == made.dims[to]}
        if first in places and second in places:
            return [(source.ir, places[first], places[second])]
        return None if first in places or second in places else []
    return None


@register
@dataclass(frozen=True)
class LegalizeReducedDimensions(PatternPass):
    """Reduce dimensions that are apart from each other as one, in memory."""

    name: ClassVar[str] = "legalize-reduced-dimensions"
    targets: ClassVar[frozenset[str]] = VULKAN
    patterns: ClassVar[tuple[Pattern, ...]] = as_one_dimension
