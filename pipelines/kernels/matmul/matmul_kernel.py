"""The micro-kernel of ``dispatch-matmuls``: some rows times a strip of columns, in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hloforge.dialect.mlir import arith, ir, vector_dialect
from hloforge.pipelines.framework.builders import constant, empty, full_vector, index, read_vector, write_vector, zero
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.lang.transposed_vectors import transposed
from hloforge.pipelines.kernels.matmul.im2col import Windows


@dataclass(frozen=True)
class Tiles:
    """How a product ``[b, m, k] x [b, k, n]`` is shared out.

    Attributes:
        batch, rows, depth, columns: b, m, k and n.
        group_rows, group_columns: of a workgroup; they divide the rows and the columns.
        strip: columns of the strip, at most those of a workgroup.
        height: rows that a strip is multiplied with at once: with the strip's vectors they are sums in registers.
        packed: rows of the strip; the last one may have fewer.
        in_strips: whether the right factor lies in strips, ``[b, n / strip, k, strip]``, so that none is copied; the
            strip divides the columns of a workgroup then.
        panel: strips that are copied side by side; a stack holds one, but not several.
        lanes: of a vector; they divide the strip.
    """

    batch: int
    rows: int
    depth: int
    columns: int
    group_rows: int
    group_columns: int
    strip: int
    height: int
    packed: int
    in_strips: bool
    panel: int = 1
    lanes: int = 8

    @property
    def copied(self) -> list[int]:
        """The sizes of what a workgroup copies at once."""
        return [self.panel, self.packed, self.strip]

    @property
    def work(self) -> int:
        """Multiplications."""
        return self.batch * self.rows * self.depth * self.columns


class Rows(Protocol):
    """The rows of the left factor that a workgroup multiplies.

    Attributes:
        array: where their elements are.
    """

    @property
    def array(self) -> Any: ...

    def start(self, row: Any, depth: Any) -> list[Any]:
        """Where the elements of a row are from this depth on, up to the next strip: the last index counts on."""
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
        row = code.combine(arith.addi, self.first, row)
        position = [channel]
        axes = zip(windows.spaces, windows.strides, windows.window, windows.dilations, windows.first, strict=True)
        for space, stride, size, dilation, first in reversed(list(axes)):
            row, at = _divided(row, space)
            place, inside = _divided(place, size)
            at, inside = code.combine(arith.muli, at, stride), code.combine(arith.muli, inside, dilation)
            position.insert(0, code.combine(arith.addi, code.combine(arith.addi, at, inside), first))
        return [row, *position]


def _divided(value: Any, by: int) -> tuple[Any, Any]:
    """Quotient and remainder of an ``index``."""
    return code.combine(arith.divui, value, by), code.combine(arith.remui, value, by)


@dataclass(frozen=True)
class Block:
    """Some lines of a strip of the right factor.

    Attributes:
        depth, column: where they begin.
        lines: how many they are.
        done: columns of the strip that are part of the strip before, because each is read whole.
    """

    depth: Any
    lines: int
    column: Any
    done: int


@dataclass(frozen=True)
class Lines:
    """Lines of a strip that lie one after the other: where the first one begins."""

    array: Any
    outer: Sequence[Any]
    first: Any

    def read(self, line: Any, length: int) -> Any:
        return read_vector(self.array, [*self.outer, code.combine(arith.addi, self.first, line), index(0)], length)


@dataclass(frozen=True)
class Kernel:
    """The work of one workgroup: rows times ``right``, ``[1, k, n]``, ``by_columns`` ``[1, n, k]``, or in strips.

    Attributes:
        type: of the result, ``[1, m, n]``.
        finish: from a vector of finished sums, and where it begins in the result, to what is stored instead.
    """

    left: Rows
    right: Any
    by_columns: bool
    type: Any
    tiles: Tiles
    finish: Callable[[Any, Sequence[Any]], Any] | None = None

    def result(self, packed: Any) -> list[Any]:
        """The product, and the memory of strips that was written meanwhile.

        Args:
            packed: of the sizes ``Tiles.copied``; strips that are read where they lie need none of it.
        """
        tiles = self.tiles

        def block(depth: Any, lines: int, total: Any, packed: Any) -> list[Any]:
            if tiles.in_strips:
                return [self._of_strips(depth, lines, total), packed]
            return self._of_columns(depth, lines, total, packed)

        return code.in_steps(tiles.depth, tiles.packed, [self._cleared(), packed], block)

    def _of_strips(self, depth: Any, lines: int, total: Any) -> Any:
        """The product with strips that lie as they are read."""

        def strip(column: Any, total: Any) -> list[Any]:
            source = Lines(self.right, [index(0), code.combine(arith.divui, column, self.tiles.strip)], depth)
            return [self._multiplied(Block(depth, lines, column, 0), source, total)]

        return code.for_each(self.tiles.group_columns, [total], strip, step=self.tiles.strip)[0]

    def _of_columns(self, depth: Any, lines: int, total: Any, packed: Any) -> list[Any]:
        """The product with strips that are copied out of the right factor, and the memory of these."""
        tiles = self.tiles
        rest = tiles.group_columns % tiles.strip
        full, width = tiles.group_columns - rest, tiles.panel * tiles.strip

        def panel(first: Any, total: Any, packed: Any) -> list[Any]:
            stop = code.combine(arith.minui, code.combine(arith.addi, first, width), full)
            packed = self._copied(depth, lines, first, stop, packed)

            def strip(column: Any, total: Any) -> list[Any]:
                number = code.combine(arith.divui, code.combine(arith.subi, column, first), tiles.strip)
                source = Lines(packed, [number], index(0))
                return [self._multiplied(Block(depth, lines, column, 0), source, total)]

            return [*code.for_each(stop, [total], strip, start=first, step=tiles.strip), packed]

        total, packed = code.for_each(full, [total, packed], panel, step=width)
        if not rest:
            return [total, packed]
        last = index(tiles.group_columns - tiles.strip)
        packed = self._copied(depth, lines, last, index(tiles.group_columns), packed)
        block = Block(depth, lines, last, tiles.strip - rest)
        return [self._multiplied(block, Lines(packed, [index(0)], index(0)), total), packed]

    def _cleared(self) -> Any:
        tiles, origin = self.tiles, index(0)
        nothing = full_vector(zero(self.type.element_type), tiles.strip)

        def strip(row: Any, column: Any, total: Any) -> list[Any]:
            start = code.combine(arith.minui, column, tiles.group_columns - tiles.strip)
            return [write_vector(nothing, total, [origin, row, start])]

        def line(row: Any, total: Any) -> list[Any]:
            return code.for_each(
                tiles.group_columns, [total], lambda column, total: strip(row, column, total), step=tiles.strip
            )

        return code.for_each(tiles.group_rows, [empty(self.type)], line)[0]

    def _multiplied(self, block: Block, lines: Lines, total: Any) -> Any:
        """Add the products of all rows with a strip's lines."""

        def rows(row: Any, count: int, total: Any) -> list[Any]:
            return [self._rows(row, count, block, total, lines)]

        total = code.in_steps(self.tiles.group_rows, self.tiles.height, [total], rows)[0]
        is_last = block.lines == self.tiles.depth % self.tiles.packed or self.tiles.depth % self.tiles.packed == 0
        return self._finished(block, total) if self.finish is not None and is_last else total

    def _finished(self, block: Block, total: Any) -> Any:
        """The result with a strip's sums finished, if the block is the last one."""
        tiles, width, finish = self.tiles, self.tiles.strip, self.finish
        end = code.combine(arith.addi, block.depth, block.lines)
        rows = code.choose(code.compare("eq", end, tiles.depth), index(tiles.group_rows), index(0))

        def line(row: Any, total: Any) -> list[Any]:
            position = [index(0), row, block.column]
            sums = read_vector(total, position, width)
            made = sums if finish is None else finish(sums, position)
            if block.done:
                made = code.choose(_from(block.done, width), made, sums)
            return [write_vector(made, total, position)]

        return code.for_each(rows, [total], line)[0]

    def _copied(self, depth: Any, lines: int, first: Any, stop: Any, into: Any) -> Any:
        """Copy some strips of the right factor, line by line, as it lies in memory."""
        tiles, lanes = self.tiles, self.tiles.lanes
        full = lines // lanes * lanes

        def place(column: Any) -> Any:
            return code.combine(arith.divui, code.combine(arith.subi, column, first), tiles.strip)

        def across(k: Any, into: Any) -> list[Any]:
            at = code.combine(arith.addi, depth, k)
            return code.for_each(
                stop, [into], lambda c, into: [self._line(k, at, c, place(c), into)], start=first, step=tiles.strip
            )

        def line(k: Any, column: Any, into: Any) -> list[Any]:
            return [self._line(k, code.combine(arith.addi, depth, k), column, place(column), into)]

        def squares(first: Any, column: Any, into: Any) -> list[Any]:
            return code.for_each(
                full, [into], lambda k, into: [self._square(depth, k, column, first, place(column), into)], step=lanes
            )

        def down(column: Any, into: Any) -> list[Any]:
            if full:
                into = code.for_each(tiles.strip, [into], lambda first, into: squares(first, column, into), step=lanes)[
                    0
                ]
            return code.for_each(lines, [into], lambda k, into: line(k, column, into), start=full)

        if self.by_columns:
            return code.for_each(stop, [into], down, start=first, step=tiles.strip)[0]
        return code.for_each(lines, [into], across)[0]

    def _square(self, depth: Any, k: Any, column: Any, first: Any, strip: Any, into: Any) -> Any:
        """Copy as many lines of a strip as of its columns, from the ``first`` one of these on, which lie in rows."""
        lanes, at = self.tiles.lanes, code.combine(arith.addi, depth, k)
        wide = ir.VectorType.get([lanes], self.type.element_type)
        start = code.combine(arith.addi, column, first)
        rows = [
            read_vector(self.right, [index(0), code.combine(arith.addi, start, number), at], lanes)
            for number in range(lanes)
        ]
        for number, line in enumerate(transposed([code.cast(arith.extf, row, wide) for row in rows])):
            into = write_vector(line, into, [strip, code.combine(arith.addi, k, number), first])
        return into

    def _line(self, k: Any, at: Any, column: Any, strip: Any, into: Any) -> Any:
        """Copy a line of a strip."""
        element = self.type.element_type
        if not self.by_columns:
            row = read_vector(self.right, [index(0), at, column], self.tiles.strip)
            wide = ir.VectorType.get([self.tiles.strip], element)
            return write_vector(code.cast(arith.extf, row, wide), into, [strip, k, index(0)])
        for number in range(self.tiles.strip):
            factor = code.read(self.right, index(0), code.combine(arith.addi, column, number), at)
            into = code.write(code.cast(arith.extf, factor, element), into, strip, k, index(number))
        return into

    def _rows(self, row: Any, count: int, block: Block, total: Any, lines: Lines) -> Any:
        """Add the products of some rows of the left factor with the strip's lines."""
        origin, width = index(0), self.tiles.strip
        rows = [code.combine(arith.addi, row, number) for number in range(count)]
        starts = [self.left.start(at, block.depth) for at in rows]
        sums = [read_vector(total, [origin, at, block.column], width) for at in rows]

        def turn(k: Any, *sums: Any) -> list[Any]:
            line = lines.read(k, width)
            factors = [code.read(self.left.array, *start, code.combine(arith.addi, at, k)) for *start, at in starts]
            return [
                vector_dialect.fma(full_vector(factor, width), line, sum_)
                for factor, sum_ in zip(factors, sums, strict=True)
            ]

        added = code.for_each(block.lines, sums, turn)
        if block.done:
            added = [code.choose(_from(block.done, width), new, old) for new, old in zip(added, sums, strict=True)]
        for at, sum_ in zip(rows, added, strict=True):
            total = write_vector(sum_, total, [origin, at, block.column])
        return total


def _from(first: int, length: int) -> Any:
    """A vector of flags that are set from the first one on."""
    type_ = ir.VectorType.get([length], ir.IntegerType.get_signless(1))
    flags = ", ".join(str(number >= first).lower() for number in range(length))
    return constant(ir.Attribute.parse(f"dense<[{flags}]> : {type_}"))
