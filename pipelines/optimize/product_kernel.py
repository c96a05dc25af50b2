"""The innermost loops of ``dispatch-products``: some rows times a strip of columns, in registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from hloforge.dialect.mlir import ir
from hloforge.pipelines.optimize import scalar_code as code
from hloforge.pipelines.optimize.below import create, empty, full_vector, index, read_vector, write_vector, zero
from hloforge.pipelines.optimize.windows import Windows

# With 64 bytes of columns, 12 sums in 16 registers of AVX2.
ROWS = 6


@dataclass(frozen=True)
class Tiles:
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


class Rows(Protocol):
    """The rows of the left factor that a workgroup multiplies.

    Attributes:
        array: where their elements stand.
    """

    @property
    def array(self) -> Any: ...

    def start(self, row: Any, depth: Any) -> list[Any]:
        """Where the elements of a row stand from this depth on, up to the next strip: the last index counts on."""
        ...


@dataclass(frozen=True)
class MatrixRows:
    """Rows of a matrix ``[1, m, k]``."""

    array: Any

    def start(self, row: Any, depth: Any) -> list[Any]:
        return [index(0), row, depth]


@dataclass(frozen=True)
class WindowRows:
    """Windows of an image, from the ``first`` one on."""

    array: Any
    windows: Windows
    first: Any

    def start(self, row: Any, depth: Any) -> list[Any]:
        windows = self.windows
        place, channel = _divided(depth, windows.features)
        row = code.combine("addi", self.first, row)
        position = [channel]
        axes = zip(windows.spaces, windows.strides, windows.window, windows.dilations, windows.first, strict=True)
        for space, stride, size, dilation, first in reversed(list(axes)):
            row, at = _divided(row, space)
            place, inside = _divided(place, size)
            at, inside = code.combine("muli", at, stride), code.combine("muli", inside, dilation)
            position.insert(0, code.combine("addi", code.combine("addi", at, inside), first))
        return [row, *position]


def _divided(value: Any, by: int) -> tuple[Any, Any]:
    """Quotient and remainder of an ``index``."""
    return code.combine("divui", value, by), code.combine("remui", value, by)


@dataclass(frozen=True)
class Kernel:
    """The work of one workgroup: rows times ``right``, ``[1, k, n]`` or ``by_columns`` ``[1, n, k]``.

    Attributes:
        type: of the result, ``[1, m, n]``.
    """

    left: Rows
    right: Any
    by_columns: bool
    type: Any
    tiles: Tiles

    def result(self) -> Any:
        tiles = self.tiles
        packed = empty(ir.RankedTensorType.get([tiles.packed, tiles.strip], self.type.element_type))

        def block(depth: Any, total: Any, packed: Any) -> list[Any]:
            return code.for_each(
                tiles.group_columns,
                [total, packed],
                lambda column, total, packed: self._part(depth, column, total, packed),
                step=tiles.strip,
            )

        return code.for_each(tiles.depth, [self._cleared(), packed], block, step=tiles.packed)[0]

    def _cleared(self) -> Any:
        nothing, origin = full_vector(zero(self.type.element_type), self.tiles.strip), index(0)

        def row(at: Any, total: Any) -> list[Any]:
            return code.for_each(
                self.tiles.group_columns,
                [total],
                lambda column, total: [write_vector(nothing, total, [origin, at, column])],
                step=self.tiles.strip,
            )

        return code.for_each(self.tiles.group_rows, [empty(self.type)], row)[0]

    def _part(self, depth: Any, column: Any, total: Any, packed: Any) -> list[Any]:
        """Add what some rows of the right factor contribute to a strip of the result."""
        tiles = self.tiles
        packed = code.for_each(tiles.packed, [packed], lambda k, into: [self._copied(depth, k, column, into)])[0]
        rest = tiles.group_rows % ROWS
        full = tiles.group_rows - rest
        if full:
            total = code.for_each(
                full, [total], lambda row, total: [self._rows(row, ROWS, depth, column, total, packed)], step=ROWS
            )[0]
        if rest:
            total = self._rows(index(full), rest, depth, column, total, packed)
        return [total, packed]

    def _copied(self, depth: Any, k: Any, column: Any, into: Any) -> Any:
        element, at = self.type.element_type, code.combine("addi", depth, k)
        if not self.by_columns:
            row = read_vector(self.right, [index(0), at, column], self.tiles.strip)
            wide = ir.VectorType.get([self.tiles.strip], element)
            return write_vector(code.cast("extf", row, wide), into, [k, index(0)])
        for number in range(self.tiles.strip):
            factor = code.read(self.right, index(0), code.combine("addi", column, number), at)
            into = code.write(code.cast("extf", factor, element), into, k, index(number))
        return into

    def _rows(self, row: Any, count: int, depth: Any, column: Any, total: Any, packed: Any) -> Any:
        """Add the products of some rows of the left factor with the packed strip."""
        origin = index(0)
        rows = [code.combine("addi", row, number) for number in range(count)]
        starts = [self.left.start(at, depth) for at in rows]
        sums = [read_vector(total, [origin, at, column], self.tiles.strip) for at in rows]

        def turn(k: Any, *sums: Any) -> list[Any]:
            line = read_vector(packed, [k, origin], self.tiles.strip)
            factors = [code.read(self.left.array, *start, code.combine("addi", at, k)) for *start, at in starts]
            return [
                create("vector.fma", [full_vector(factor, self.tiles.strip), line, sum_], [sum_.type]).results[0]
                for factor, sum_ in zip(factors, sums, strict=True)
            ]

        for at, sum_ in zip(rows, code.for_each(self.tiles.packed, sums, turn), strict=True):
            total = write_vector(sum_, total, [origin, at, column])
        return total
