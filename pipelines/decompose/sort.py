"""``decompose-sort``: sorts by a comparator as sorts of arrays of integers.

Before::

    %0:2 = "stablehlo.sort"(%keys, %values) <{dimension = 0}> ({ ^bb0(%a, %b, %c, %d): return f(%a) < f(%b) })

After, the sorted dimension brought to the end::

    %k = order_bits(f(%keys))                                     integers that order like the keys
    %1:3 = "stablehlo.sort"(%k, %keys, %values) {hloforge.keys = 1}      for ``dispatch-sorts``: stable, ascending

Operands that cannot move as integers, or are too wide to move in every pass of the sort, stay where they are: their
positions are sorted, and they are gathered at the end. If only the first few of the sorted elements are used, as of the
largest, only those are made. Comparators that order by no keys (``sort_keys.py``) run as ``sorting_network.py`` says.

IREE's own sort is quadratic (22 s for 65,536 floats), puts whole rows on a 32 KB stack and ignores ``is_stable``.
Source: XLA "Sort", "TopK".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType, Kind
from hloforge.dialect.idioms import take
from hloforge.dialect.marks import KEYS
from hloforge.dialect.mlir import AnyOp, SSAValue, in_context, ir
from hloforge.dialect.operations import defining_op, integer, operations
from hloforge.dialect.regions import is_elementwise, vectorize_region
from hloforge.dialect.values import Value, leaves
from hloforge.pipelines.decompose.sort_keys import SortKey, from_order_bits, order_bits, sort_keys
from hloforge.pipelines.decompose.sorting_network import sort_by_network
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace

# What moves with the keys in every pass; one position takes less than two numbers of 64 bits.
_MOVED_BITS = 64
# Keys of one sort. IREE takes 32 buffers in a dispatch, and each array that moves has two.
_MOST_KEYS = 7


@register
@dataclass(frozen=True)
class DecomposeSort(Pass):
    """Replace sorts of static size with an elementwise comparator.

    Attributes:
        by_network: sort by sorting networks alone, which run on any device, instead of leaving sorts of integers.
    """

    name: ClassVar[str] = "decompose-sort"
    by_network: bool = False

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.sort"}):
                if _can_decompose(op):
                    with ir.InsertionPoint(op), op.location:
                        _decompose(op, self.by_network)


def _can_decompose(op: ir.Operation) -> bool:
    static = op.operands[0].type.has_static_shape
    return static and KEYS not in op.attributes and is_elementwise(op.regions[0])


def _decompose(op: ir.Operation, by_network: bool) -> None:
    lines = _Lines.of(op)
    operands = [Value(operand) for operand in op.operands]
    if lines.size <= 1 or lines.rows == 0:
        replace_prefix(op, operands)
        return
    keys = None if by_network else sort_keys(op.regions[0])
    rows = [lines.to_rows(operand) for operand in operands]
    if keys is None:
        found = sort_by_network(op, rows)
    else:
        found = _Records(op, keys, rows, prefix_length(op)).sorted()
    replace_prefix(op, [lines.from_rows(result) for result in found])


@dataclass(frozen=True)
class _Lines:
    """How the lines along the sorted dimension become rows.

    Attributes:
        dims: of the operands.
        dimension: the sorted one.
    """

    dims: tuple[int, ...]
    dimension: int

    @classmethod
    def of(cls, op: Any) -> _Lines:
        dims = tuple(int(size) for size in op.operands[0].type.shape)
        return cls(dims, sorted_dimension(op))

    @property
    def size(self) -> int:
        return self.dims[self.dimension]

    @property
    def rows(self) -> int:
        return prod(self.dims) // self.size if self.size else 0

    @property
    def _others(self) -> list[int]:
        return [d for d in range(len(self.dims)) if d != self.dimension]

    def to_rows(self, array: Value) -> Value:
        """From an operand to [rows, size]; positions in a line stay an iota, which a sort makes as it goes."""
        if is_iota(array.ir, self.dimension):
            return ops.iota(array.element_type, (self.rows, self.size), 1)
        return ops.reshape(ops.transpose(array, [*self._others, self.dimension]), (self.rows, self.size))

    def from_rows(self, rows: Value) -> Value:
        """From [rows, m] to the shape of the operands, with m elements along the dimension."""
        order = [*self._others, self.dimension]
        whole = ops.reshape(rows, [*(self.dims[d] for d in self._others), rows.dims[1]])
        return ops.transpose(whole, [order.index(d) for d in range(len(order))])


@dataclass(frozen=True)
class _Records:
    """A sort of rows by keys.

    Attributes:
        op: the sort.
        keys: how it orders.
        rows: its operands, [rows, n] each.
        count: how many of a row's first elements are wanted.
    """

    op: Any
    keys: Sequence[SortKey]
    rows: Sequence[Value]
    count: int

    def sorted(self) -> list[Value]:
        """The first elements of each operand in order, [rows, count] each; any of those that nobody uses."""
        pairs = [row for row in self.rows for _ in range(2)]
        numbers = vectorize_region(self.op.regions[0], pairs, [key.value for key in self.keys])
        bits = [order_bits(number, key) for number, key in zip(numbers, self.keys, strict=True)]
        bits, places = self._by_last_keys(bits)
        made_of = {key.operand(): number for number, key in enumerate(self.keys[: len(bits)])}
        moved = [n for n, result in enumerate(self.op.results) if n not in made_of and any(result.uses)]
        if places is None and sum(_moved_bits(self.rows[n].element_type) for n in moved) > _MOVED_BITS:
            places = ops.iota("s32", self.rows[0].dims, 1)
        carried = [_as_integers(self.rows[n]) for n in moved] if places is None else [places]
        results = self._first(_sort_by(bits, carried))
        bits, carried = results[: len(bits)], results[len(bits) :]
        if places is None:
            found = {
                n: _from_integers(result, self.rows[n].element_type) for n, result in zip(moved, carried, strict=True)
            }
        else:
            found = {n: _gather(self.rows[n], carried[0]) for n in moved}
        for operand, number in made_of.items():
            if operand is not None:
                found[operand] = from_order_bits(bits[number], self.keys[number])
        return [found[n] if n in found else self._first([row])[0] for n, row in enumerate(self.rows)]

    def _by_last_keys(self, bits: Sequence[Value]) -> tuple[list[Value], Value | None]:
        """Sort by all keys but the first few; returns the others in that order, and the positions they come from."""
        groups = [bits[n : n + _MOST_KEYS] for n in range(0, len(bits), _MOST_KEYS)]
        if len(groups) == 1:
            return list(bits), None
        places = ops.iota("s32", bits[0].dims, 1)
        for group in groups[:0:-1]:
            ordered = [_gather(key, places) for key in group]
            *_, places = _sort_by(ordered, [places])
        return [_gather(key, places) for key in groups[0]], places

    def _first(self, rows: Sequence[Value]) -> list[Value]:
        """The first elements of each row."""
        number, size = rows[0].dims
        if self.count == size:
            return list(rows)
        return [ops.slice(row, [0, 0], [number, self.count]) for row in rows]


def _sort_by(keys: Sequence[Value], others: Sequence[Value]) -> list[Value]:
    """Sort rows of integers by the keys, of which the first counts most."""

    def before(*scalars: Value) -> Value:
        pairs = list(zip(scalars[::2], scalars[1::2], strict=True))[: len(keys)]
        one, other = pairs.pop()
        flag = one < other
        for one, other in reversed(pairs):
            flag = (one < other) | (one.eq(other) & flag)
        return flag

    results = leaves(ops.sort([*keys, *others], before, dimension=1, is_stable=True))
    sorting = results[0].ir.owner
    sorting.attributes[KEYS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(keys))
    return results


def _moved_bits(row: ElementType) -> int:
    """The bits of an element that moves with the keys; too many for one that cannot."""
    return 2 * _MOVED_BITS if row.is_complex else max(8, row.bits)


def _as_integers(array: Value) -> Value:
    row = array.element_type
    if row.kind is Kind.PRED or row.bits < 8:
        return ops.convert_element_type(array, "s8")
    return array if row.kind is Kind.SIGNED else ops.bitcast_convert_type(array, f"s{row.bits}")


def _from_integers(bits: Value, row: ElementType) -> Value:
    if row.kind is Kind.PRED or row.bits < 8:
        return ops.convert_element_type(bits, row)
    return bits if row.kind is Kind.SIGNED else ops.bitcast_convert_type(bits, row)


def _gather(rows: Value, places: Value) -> Value:
    """``rows[i, places[i, j]]``."""
    number, size = rows.dims
    flat = ops.reshape(places + ops.iota("s32", places.dims, 0) * size, [prod(places.dims)])
    return ops.reshape(take(ops.reshape(rows, [number * size]), flat, 0), places.dims)


def is_iota(value: SSAValue, dimension: int) -> bool:
    """Whether an array holds the position of each element along a dimension."""
    iota = defining_op(value, "stablehlo.iota")
    return iota is not None and integer(iota, "iota_dimension") == dimension


def sorted_dimension(op: AnyOp) -> int:
    """The dimension along which a ``stablehlo.sort`` sorts."""
    rank = len(op.operands[0].type.shape)
    dimension = integer(op, "dimension") if "dimension" in op.attributes else -1
    return dimension % rank


def prefix_length(op: AnyOp) -> int:
    """How many of the first elements along a sort's dimension are used; all of them where it is not sure."""
    size = int(op.operands[0].type.shape[sorted_dimension(op)])
    uses = [use.owner.operation for result in op.results for use in result.uses]
    limits = [_prefix_limit(use, sorted_dimension(op)) for use in uses]
    known = [limit for limit in limits if limit is not None]
    return max(1, *known) if known and len(known) == len(limits) else size


def _prefix_limit(use: Any, dimension: int) -> int | None:
    """The number of first elements along a dimension that a slice takes; None if it is no such slice."""
    if use.name != "stablehlo.slice":
        return None
    starts, limits, strides = (list(use.attributes[name]) for name in ("start_indices", "limit_indices", "strides"))
    sizes = [int(size) for size in use.operands[0].type.shape]
    whole = all(limit == size for d, (limit, size) in enumerate(zip(limits, sizes, strict=True)) if d != dimension)
    return int(limits[dimension]) if whole and not any(starts) and set(strides) == {1} else None


def replace_prefix(op: ir.Operation, found: Sequence[Value]) -> None:
    """Put the first elements in the place of a sort's results, of which no others are used, and erase it.

    Args:
        found: an array for each result, of ``prefix_length`` or more elements along the sort's dimension.
    """
    dimension = sorted_dimension(op)
    for result, array in zip(op.results, found, strict=True):
        if array.type == result.type:
            result.replace_all_uses_with(array.ir)
            continue
        for use in list(result.uses):
            limit = _prefix_limit(use.owner.operation, dimension)
            assert limit is not None
            sizes = [limit if d == dimension else size for d, size in enumerate(array.dims)]
            replace(use.owner.operation, [ops.slice(array, [0] * len(sizes), sizes)])
    op.erase()
