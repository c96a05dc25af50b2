"""Sorts by any comparator: bitonic networks over whole arrays.

For n elements padded to a power of two::

    for k in 2, 4, ..., n:
      for j in k/2, k/4, ..., 1:        one loop over both; compare every element with the one at distance j, and
                                        exchange the pair if it is out of order: upwards in even blocks of k,
                                        downwards in odd ones

Every step is one elementwise pass over the array, so the comparator runs on vectors, and the IR does not grow with n;
n elements take log2(n)² / 2 steps. The position of an element, as a last operand, breaks ties for a stable sort and
marks the padding.

Source: XLA "Sort"; K. E. Batcher, "Sorting networks and their applications" (1968).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.idioms import take
from hloforge.dialect.mlir import AnyOp
from hloforge.dialect.regions import vectorize_region
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_stable


@dataclass(frozen=True)
class _Network:
    """A sort of each row of some arrays.

    Attributes:
        op: the sort.
        size: of a row.
        length: n padded to a power of two.
        position: the number of the operand that holds each element's position; None if nothing needs it.
        stable: whether equal elements keep their order.
    """

    op: Any
    size: int
    length: int
    position: int | None
    stable: bool

    def before(self, arrays: Sequence[Value], others: Sequence[Value]) -> Value:
        """Elementwise, whether an element of ``arrays`` belongs before its counterpart in ``others``."""
        count = len(self.op.operands)
        pairs = [value for pair in zip(arrays[:count], others[:count], strict=True) for value in pair]
        (result,) = vectorize_region(self.op.regions[0], pairs)
        if self.position is None:
            return result
        mine, theirs = arrays[self.position], others[self.position]
        if self.stable:
            swapped = [pairs[number ^ 1] for number in range(len(pairs))]
            (after,) = vectorize_region(self.op.regions[0], swapped)
            result = result | (~after & (mine < theirs))
        if self.length == self.size:
            return result
        padding = theirs >= self.size
        return (mine < self.size) & (padding | result)

    def exchange(self, block: Value, distance: Value, arrays: Sequence[Value]) -> list[Value]:
        """Compare the elements at ``distance``, and put each pair in the order of its block of size ``block``."""
        shape = arrays[0].dims
        places = ops.iota("s32", (self.length,), 0)
        partners = [take(array, places ^ ops.broadcast_in_dim(distance, (self.length,), []), 1) for array in arrays]
        along = ops.iota("s32", shape, 1)
        downwards = (along & ops.broadcast_in_dim(block, shape, [])).ne(0)
        upper = (along & ops.broadcast_in_dim(distance, shape, [])).ne(0)
        # The pair is exchanged if the element that should come last belongs first; both ends see the same comparison.
        partner_last = ~(upper ^ downwards)
        first = [ops.select(partner_last, other, own) for own, other in zip(arrays, partners, strict=True)]
        last = [ops.select(partner_last, own, other) for own, other in zip(arrays, partners, strict=True)]
        wrong = self.before(first, last)
        return [ops.select(wrong, other, own) for own, other in zip(arrays, partners, strict=True)]

    def run(self, arrays: list[Value]) -> list[Value]:
        """The sorted arrays, [rows, length] each."""

        def step(block: Value, distance: Value, *current: Value) -> list[Value]:
            exchanged = self.exchange(block, distance, current)
            is_last = distance.eq(1)
            return [ops.select(is_last, block * 2, block), ops.select(is_last, block, distance >> 1), *exchanged]

        start = [constant(2, "s32"), constant(1, "s32"), *arrays]
        _, _, *results = ops.while_(lambda block, *_: block <= self.length, step, start)
        return results


def sort_by_network(op: AnyOp, arrays: Sequence[Value]) -> list[Value]:
    """The sorted arrays, in their own shape.

    Args:
        op: a sort whose comparator is elementwise.
        arrays: its operands as [rows, n], n > 1.
    """
    rows, size = arrays[0].dims
    length = 1 << (size - 1).bit_length()
    stable = is_stable(op) and not _ties_are_equal(arrays)
    padded = [ops.pad(array, 0, [(0, 0), (0, length - size)]) for array in arrays]
    position = None
    if stable or length != size:
        position = len(padded)
        padded.append(ops.iota("s32", (rows, length), 1))
    results = _Network(op, size, length, position, stable).run(padded)[: len(arrays)]
    return [ops.slice(result, [0, 0], [rows, size]) for result in results]


def _ties_are_equal(operands: Sequence[Value]) -> bool:
    """Whether elements that compare equal are the same: integers without companions have nothing else to differ in."""
    return len(operands) == 1 and operands[0].element_type.is_integer
