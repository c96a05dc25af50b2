"""``legalize-reduction-orders``: what is reduced of a rearranged array is computed in the order of its memory.

Before, sums over groups of features, which are last in memory, as of a group norm::

    %t = stablehlo.transpose %y, dims = [2, 0, 1] : (tensor<128x128x64xf32>) -> tensor<64x128x128xf32>
    %g = stablehlo.reshape %t : (tensor<64x128x128xf32>) -> tensor<32x32768xf32>
    %s = stablehlo.reduce(%g init: %zero) applies stablehlo.add across dimensions = [1] -> tensor<32xf32>

After::

    %p = stablehlo.reshape %y : (tensor<128x128x64xf32>) -> tensor<128x128x32x2xf32>
    %l = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [0, 1] -> tensor<32x2xf32>
    %s = stablehlo.reduce(%l init: %zero) applies stablehlo.add across dimensions = [1] -> tensor<32xf32>

Loops go over a reduction's operand from its first to its last dimension: where these lie apart in memory, each element
is in a line of the cache of its own. What is elementwise between the rearranged array and the reduction is computed in
that order as well. Sums and extremes have no order of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.traits import keeps_shape
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import combiner, is_static
from hloforge.pipelines.codegen.passes.other_shapes import elementwise, is_splat, repeated
from hloforge.pipelines.codegen.passes.tall_reductions import COMBINERS
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_RESHAPE, _TRANSPOSE = "stablehlo.reshape", "stablehlo.transpose"
# Elements from which on the order matters, operations that are computed in another one, and dimensions of that.
_LARGE, _MOST, _DIMENSIONS = 1 << 12, 32, 8
# How often an array is repeated that is read in another order than its own.
_REPEATED = 8


@dataclass(eq=False)
class _Part:
    """A part of a dimension: what rearrangements move as a whole."""

    size: int


class _Rearranged:
    """A value that is another one with its elements in another order.

    Attributes:
        source: the other one.
        inner: the parts of its dimensions, from the outermost to the innermost one in its memory.
        dims: the parts of each dimension of the value.
        steps: what was done to the source.
    """

    def __init__(self, value: SSAValue) -> None:
        chain: list[ir.Operation] = []
        op = defining_op(value)
        while op is not None and op.name in (_RESHAPE, _TRANSPOSE):
            chain.insert(0, op)
            value = op.operands[0]
            op = defining_op(value)
        self.source = Value(value)
        self.dims = [[_Part(size)] if size > 1 else [] for size in self.source.dims]
        self.inner = [part for dim in self.dims for part in dim]
        self.steps: list[tuple[str, tuple[int, ...]]] = []
        self.is_known = all(self._follow(op) for op in chain)

    def _follow(self, op: ir.Operation) -> bool:
        """Do what an operation does. False if a dimension would have a piece of a part that has no such piece."""
        if op.name == _TRANSPOSE:
            order = integers(op, "permutation")
            self.dims = [self.dims[d] for d in order]
            self.steps.append((op.name, tuple(order)))
            return True
        left = [part for dim in self.dims for part in dim]
        sizes = Value(op.results[0]).dims
        self.dims = []
        for size in sizes:
            dim: list[_Part] = []
            while size > 1:
                part = left.pop(0)
                if part.size > size:
                    if part.size % size:
                        return False
                    left.insert(0, self._split(part, size))
                if size % part.size:
                    return False
                dim.append(part)
                size //= part.size
            self.dims.append(dim)
        self.steps.append((op.name, tuple(sizes)))
        return True

    def _split(self, part: _Part, size: int) -> _Part:
        """Leave so many of a part's places to it, each of which has the rest, which is returned."""
        rest = _Part(part.size // size)
        part.size = size
        self.inner.insert(self.inner.index(part) + 1, rest)
        return rest

    @property
    def moves(self) -> bool:
        """Whether the innermost part in memory is another one than that of the value's order."""
        order = [part for dim in self.dims for part in dim]
        return self.is_known and bool(order) and order[-1] is not self.inner[-1]

    def is_like(self, other: _Rearranged) -> bool:
        """Whether another value's elements lie in memory as this one's."""
        return self.is_known and self.steps == other.steps and self.source.dims == other.source.dims


@dataclass
class _InOrder:
    """Values of a rearranged one's shape, with its source's order of elements.

    Attributes:
        left: operations that may still be looked at.
    """

    order: _Rearranged
    left: int = _MOST
    found: dict[SSAValue, Value] = field(default_factory=dict)

    @property
    def sizes(self) -> list[int]:
        return [part.size for part in self.order.inner]

    def has(self, value: SSAValue) -> bool:
        """Whether a value can be computed in that order."""
        op, self.left = defining_op(value), self.left - 1
        if self.left < 0:
            return False
        if op is None or op.name in (_RESHAPE, _TRANSPOSE):
            return _Rearranged(value).is_like(self.order)
        if op.name == "stablehlo.constant":
            return is_splat(op)
        if op.name == "stablehlo.broadcast_in_dim":
            # What is nearly as large has an order of its own.
            return prod(Value(op.operands[0]).dims) * _REPEATED <= prod(self.sizes)
        rank = Value(value).rank
        return keeps_shape(op) and all(Value(one).rank == rank and self.has(one) for one in op.operands)

    def of(self, value: SSAValue) -> Value:
        """The value in that order, at the current insertion point."""
        if value not in self.found:
            self.found[value] = self._made(value)
        return self.found[value]

    def _made(self, value: SSAValue) -> Value:
        op = defining_op(value)
        if op is None or op.name in (_RESHAPE, _TRANSPOSE):
            return ops.reshape(_Rearranged(value).source, self.sizes)
        if op.name == "stablehlo.broadcast_in_dim":
            return self._repeated(Value(op.operands[0]), integers(op, "broadcast_dimensions"))
        if op.name == "stablehlo.constant":
            return repeated(Value(value), self.sizes)
        return elementwise(op, [self.of(one) for one in op.operands], self.sizes)

    def _repeated(self, value: Value, places: Sequence[int]) -> Value:
        dims = [self.order.dims[d] if size > 1 else [] for d, size in zip(places, value.dims, strict=True)]
        own = [self.order.inner.index(part) for dim in dims for part in dim]
        value = ops.reshape(value, [self.order.inner[place].size for place in own])
        turned = sorted(range(len(own)), key=own.__getitem__)
        if turned != list(range(len(own))):
            value = ops.transpose(value, turned)
        return ops.broadcast_in_dim(value, self.sizes, sorted(own))


def _rearranged_in(value: SSAValue) -> _Rearranged | None:
    """The first rearranged array that elementwise operations compute a value of."""
    waiting, seen = [value], 0
    while waiting and seen < _MOST:
        one, seen = waiting.pop(), seen + 1
        op = defining_op(one)
        if op is None:
            continue
        if op.name in (_RESHAPE, _TRANSPOSE):
            found = _Rearranged(one)
            if found.moves:
                return found
        elif keeps_shape(op):
            waiting += op.operands
    return None


@pattern("stablehlo.reduce")
def in_memory_order(op: ir.Operation) -> Replacement:
    """A reduction whose operand is computed of an array whose innermost dimension is not its own."""
    if len(op.results) != 1 or not is_static(op) or combiner(op) not in COMBINERS:
        return NoMatch("several results, or of unknown size or computation")
    array, start = map(Value, op.operands)
    if prod(array.dims) < _LARGE or array.element_type.is_complex:
        return NoMatch("few elements, or complex ones")
    order = _rearranged_in(array.ir)
    if order is None:
        return NoMatch("its elements follow each other in memory, or nothing is known of them")
    values = _InOrder(order)
    if len(order.inner) > _DIMENSIONS or [prod(part.size for part in dim) for dim in order.dims] != list(array.dims):
        return NoMatch("many dimensions, or views of another shape below")
    if not values.has(array.ir):
        return NoMatch("it is computed of arrays in several orders")
    combine, inner, reduced = COMBINERS[combiner(op)], order.inner, set(integers(op, "dimensions"))
    summed = [inner.index(part) for d in reduced for part in order.dims[d]]
    kept = [inner.index(part) for d, dim in enumerate(order.dims) if d not in reduced for part in dim]
    # A line of numbers is reduced first, over what is outside of it, and then what is inside, as long as both are.
    outer = sorted(place for place in summed if kept and place < max(kept))
    rest = [place - len(outer) for place in sorted(summed) if place not in outer]
    total = values.of(array.ir)
    if outer and rest:
        none = 0 if combine is ops.add else start
        total = ops.reduce(total, none, combine, outer)
        total = ops.reduce(total, start, combine, rest)
    else:
        total = ops.reduce(total, start, combine, sorted(summed))
    ranks = sorted(kept)
    turned = [ranks.index(place) for place in kept]
    if turned != list(range(len(turned))):
        total = ops.transpose(total, turned)
    return ops.reshape(total, Value(op.results[0]).dims)


@register
@dataclass(frozen=True)
class LegalizeReductionOrders(PatternPass):
    """Reduce rearranged arrays in the order of their memory."""

    name: ClassVar[str] = "legalize-reduction-orders"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = in_memory_order
