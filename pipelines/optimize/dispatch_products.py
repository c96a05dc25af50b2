"""``dispatch-products``: large matrix products as dispatches of their own loops.

IREE 3.13 tiles a product over its result, and reads a few columns of the right factor again for every few rows: its
rows are far apart, so that each read is of another line and page of memory. Where the right factor is larger than a
core's cache, that takes two to three times the time of the arithmetic. Its data tiling copies both factors into tiles
in memory first, which pays for large factors on both sides. Here a workgroup copies a strip of the right factor, 16
columns of as many rows as half of the nearest cache holds, and multiplies all of its rows of the left factor with it::

    for strip in columns, 16 at a time:
      for depth in K, as many as the cache holds:
        packed = rhs[depth, strip]                           # one read of each element
        for rows in M, 6 at a time:
          result[rows, strip] += lhs[rows, depth] @ packed   # 6 x 16 sums in registers

A right factor whose columns lie in a row each (``x @ w.T``) needs no copy, and stays IREE's.
Source: Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import in_context, ir, stablehlo
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.optimize import scalar_code as code
from hloforge.pipelines.optimize.below import create, empty, full_vector, index, read_vector, write_vector, zero
from hloforge.pipelines.passes import Pass, register
from hloforge.pipelines.patterns import replace

# Bytes of a row of the strip: two vectors of AVX2, one of AVX-512. With 6 rows that are 12 sums in 16 registers.
_STRIP_BYTES = 64
_ROWS = 6
# Bytes of a strip, which leave room for the left factor in a nearest cache of 32 KiB, and fit IREE's limit of a stack.
_PACKED_BYTES = 1 << 14
# From how many bytes of the right factor IREE's own product is slower, and rows that are worth a copy of it.
_LARGE_BYTES, _LEAST_ROWS = 1 << 19, 16
# Rows and columns of a workgroup, at most: enough of them for the threads, few enough copies.
_GROUP_ROWS, _GROUP_COLUMNS = 512, 64
_LEAST_DEPTH = 32


@register
@dataclass(frozen=True)
class DispatchProducts(Pass):
    """Make dispatches of large matrix products; they are in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "dispatch-products"

    def run(self, module: Any) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.dot_general"}):
                if _is_outside_of_dispatches(op) and (tiles := _tiles_of(op)) is not None:
                    with ir.InsertionPoint(op), op.location:
                        replace(op, [_dispatched(op, tiles)])


def _is_outside_of_dispatches(op: Any) -> bool:
    parent = op.parent
    while parent is not None:
        if parent.operation.name.startswith("flow."):
            return False
        parent = parent.operation.parent
    return True


@dataclass(frozen=True)
class _Tiles:
    """How a product ``[b, m, k] x [b, k, n]`` is shared out.

    Attributes:
        batch, rows, depth, columns: b, m, k and n.
        group_rows, group_columns: of a workgroup; they divide the rows and the columns.
        strip: columns of the strip; divides ``group_columns``.
        packed: rows of the strip; divides the depth.
    """

    batch: int
    rows: int
    depth: int
    columns: int
    group_rows: int
    group_columns: int
    strip: int
    packed: int

    @property
    def work(self) -> int:
        """Multiplications."""
        return self.batch * self.rows * self.depth * self.columns


def _tiles_of(op: Any) -> _Tiles | None:
    """The tiles of a product that gains by them; None for others."""
    lhs, rhs, result = (Value(value) for value in (*op.operands, op.results[0]))
    if not all(value.shape.is_static for value in (lhs, rhs)) or not _can_multiply(lhs, rhs, result):
        return None
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch = prod(lhs.dims[d] for d in numbers.lhs_batching_dimensions)
    depth = prod(lhs.dims[d] for d in numbers.lhs_contracting_dimensions)
    rows, columns = (value.shape.element_count // max(1, batch * depth) for value in (lhs, rhs))
    bytes_ = result.element_type.bits // 8
    strip = _STRIP_BYTES // bytes_
    if rhs.rank - 1 in numbers.rhs_contracting_dimensions:
        return None
    if rows < _LEAST_ROWS or columns % strip or depth * columns * bytes_ < _LARGE_BYTES:
        return None
    packed = _divisor(depth, _PACKED_BYTES // _STRIP_BYTES)
    if packed < _LEAST_DEPTH:
        return None
    group_columns = strip * _divisor(columns // strip, _GROUP_COLUMNS // strip)
    group_rows = _divisor(rows, _GROUP_ROWS)
    if group_rows * 4 < min(rows, _GROUP_ROWS):
        group_rows = rows
    return _Tiles(batch, rows, depth, columns, group_rows, group_columns, strip, packed)


def _can_multiply(lhs: Value, rhs: Value, result: Value) -> bool:
    names = {value.element_type.name for value in (lhs, rhs)}
    return result.element_type.name in ("f32", "f64") and names <= {"bf16", "f16", result.element_type.name}


def _divisor(number: int, most: int) -> int:
    """The largest divisor up to a limit."""
    return max(divisor for divisor in range(1, min(number, most) + 1) if number % divisor == 0)


def _dispatched(op: Any, tiles: _Tiles) -> Value:
    lhs, rhs, result = (Value(value) for value in (*op.operands, op.results[0]))
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    left = _arranged(lhs, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions, depth_last=True)
    right = _arranged(rhs, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions, depth_last=False)
    left = ops.convert_element_type(left, result.element_type)
    left = ops.reshape(left, [tiles.batch, tiles.rows, tiles.depth])
    right = ops.reshape(right, [tiles.batch, tiles.depth, tiles.columns])
    return ops.reshape(Value(_product(left.ir, right.ir, result.element_type.mlir, tiles)), result.dims)


def _arranged(factor: Value, batch: Sequence[int], summed: Sequence[int], *, depth_last: bool) -> Value:
    """The dimensions in the order batch, free, summed, or batch, summed, free."""
    free = _free(factor, batch, summed)
    inner = [*free, *summed] if depth_last else [*summed, *free]
    return ops.transpose(factor, [*batch, *inner])


def _free(factor: Value, batch: Sequence[int], summed: Sequence[int]) -> list[int]:
    return [d for d in range(factor.rank) if d not in (*batch, *summed)]


def _product(lhs: Any, rhs: Any, element: str, tiles: _Tiles) -> Any:
    type_ = ir.Type.parse(element)
    whole = ir.RankedTensorType.get([tiles.batch, tiles.rows, tiles.columns], type_)
    counts = [tiles.columns // tiles.group_columns, tiles.rows // tiles.group_rows, tiles.batch]

    def run(places: Sequence[Any], sources: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
        column, row = (
            code.combine("muli", places[0], tiles.group_columns),
            code.combine("muli", places[1], tiles.group_rows),
        )
        left = code.load(sources[0], _of([1, tiles.group_rows, tiles.depth], lhs), [places[2], row, 0])
        right = code.load(sources[1], _of([1, tiles.depth, tiles.group_columns], rhs), [places[2], 0, column])
        group = ir.RankedTensorType.get([1, tiles.group_rows, tiles.group_columns], type_)
        code.store(_Kernel(left, right, group, tiles).result(), targets[0], [places[2], row, column])

    return code.workgroups(counts, [lhs, rhs], (), [whole], run, work=tiles.work)[0]


def _of(dims: Sequence[int], array: Any) -> Any:
    return ir.RankedTensorType.get(dims, array.type.element_type)


@dataclass(frozen=True)
class _Kernel:
    """The work of one workgroup: ``left`` ``[1, m, k]`` times ``right`` ``[1, k, n]``."""

    left: Any
    right: Any
    type: Any
    tiles: _Tiles

    def result(self) -> Any:
        tiles = self.tiles
        packed = empty(ir.RankedTensorType.get([tiles.packed, tiles.strip], self.type.element_type))

        def strip(column: Any, total: Any, packed: Any) -> list[Any]:
            cleared = self._cleared(total, column)
            return code.for_each(
                tiles.depth,
                [cleared, packed],
                lambda depth, total, packed: self._part(depth, column, total, packed),
                step=tiles.packed,
            )

        return code.for_each(tiles.group_columns, [empty(self.type), packed], strip, step=tiles.strip)[0]

    def _cleared(self, total: Any, column: Any) -> Any:
        nothing = full_vector(zero(self.type.element_type), self.tiles.strip)
        position = index(0)
        return code.for_each(
            self.tiles.group_rows, [total], lambda row, total: [write_vector(nothing, total, [position, row, column])]
        )[0]

    def _part(self, depth: Any, column: Any, total: Any, packed: Any) -> list[Any]:
        """Add what some rows of the right factor contribute to a strip of the result."""
        tiles = self.tiles
        packed = code.for_each(tiles.packed, [packed], lambda k, into: [self._copied(depth, k, column, into)])[0]
        rest = tiles.group_rows % _ROWS
        full = tiles.group_rows - rest
        if full:
            total = code.for_each(
                full, [total], lambda row, total: [self._rows(row, _ROWS, depth, column, total, packed)], step=_ROWS
            )[0]
        if rest:
            total = self._rows(index(full), rest, depth, column, total, packed)
        return [total, packed]

    def _copied(self, depth: Any, k: Any, column: Any, into: Any) -> Any:
        row = read_vector(self.right, [index(0), code.combine("addi", depth, k), column], self.tiles.strip)
        wide = ir.VectorType.get([self.tiles.strip], self.type.element_type)
        return write_vector(code.cast("extf", row, wide), into, [k, index(0)])

    def _rows(self, row: Any, count: int, depth: Any, column: Any, total: Any, packed: Any) -> Any:
        """Add the products of some rows of the left factor with the packed strip."""
        origin = index(0)
        rows = [code.combine("addi", row, number) for number in range(count)]
        sums = [read_vector(total, [origin, at, column], self.tiles.strip) for at in rows]

        def turn(k: Any, *sums: Any) -> list[Any]:
            line = read_vector(packed, [k, origin], self.tiles.strip)
            at = code.combine("addi", depth, k)
            factors = [code.read(self.left, origin, row, at) for row in rows]
            return [
                create("vector.fma", [full_vector(factor, self.tiles.strip), line, sum_], [sum_.type]).results[0]
                for factor, sum_ in zip(factors, sums, strict=True)
            ]

        for at, sum_ in zip(rows, code.for_each(self.tiles.packed, sums, turn), strict=True):
            total = write_vector(sum_, total, [origin, at, column])
        return total
