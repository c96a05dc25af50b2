"""The micro-kernel of ``dispatch-gemv``: a few rows times a part of a large factor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.mlir import arith, ir, vector_dialect
from hloforge.pipelines.framework.builders import empty, full_vector, index, read_vector, write_vector, zero
from hloforge.pipelines.kernels.lang import loops as code

# Lines of the large factor that are read side by side: streams that the processor's prefetchers follow.
_LINES = 4
# Rows whose factors with these lines stay in registers, or near them.
_ROWS = 4
# By whether numbers are integers before and after.
_WIDENING = {(True, True): arith.extsi, (True, False): arith.sitofp, (False, False): arith.extf}


@dataclass(frozen=True)
class Kernel:
    """The work of one workgroup: ``left`` ``[1, m, k]`` times a part of the large factor.

    Attributes:
        right: the part, with one position in the batch.
        place: from indices into the depth and the columns to an element of ``right``.
        type: of the result, ``[1, m, n]``.
        depth: k.
        depth_last: whether the depth is the last dimension of ``right``, or the columns are.
        line_bytes: of a vector of sums.
    """

    left: Any
    right: Any
    place: Callable[[Any, Any], list[Any]]
    type: Any
    depth: int
    depth_last: bool
    line_bytes: int

    @property
    def element(self) -> Any:
        return self.type.element_type

    @property
    def rows(self) -> int:
        return int(self.type.shape[1])

    @property
    def columns(self) -> int:
        return int(self.type.shape[2])

    @property
    def length(self) -> int:
        """Elements of a vector of sums."""
        return int(self.line_bytes * 8 // self.element.width)

    def result(self) -> Any:
        return self._by_columns() if self.depth_last else self._by_depth()

    def _by_depth(self) -> Any:
        """Add some lines of the large factor after another, each of all columns, to sums in the nearest cache."""

        def clear(row: Any, total: Any) -> list[Any]:
            return self._along(
                self.columns,
                [total],
                lambda at, length, total: [write_vector(self._nothing(length), total, [index(0), row, at])],
            )

        total = code.for_each(self.rows, [empty(self.type)], clear)
        return code.in_steps(self.depth, _LINES, total, self._add_lines)[0]

    def _add_lines(self, depth: Any, count: int, total: Any) -> list[Any]:
        lines = [code.combine(arith.addi, depth, number) for number in range(count)]
        for first in range(0, self.rows, _ROWS):
            total = self._add_products(range(first, min(self.rows, first + _ROWS)), lines, total)
        return [total]

    def _add_products(self, rows: Sequence[int], lines: Sequence[Any], total: Any) -> Any:
        origin = index(0)
        factors = [[code.read(self.left, origin, index(row), line) for line in lines] for row in rows]

        def add(column: Any, length: int, total: Any) -> list[Any]:
            read = [self._read(line, column, length) for line in lines]
            for row, of_row in zip(rows, factors, strict=True):
                position = [origin, index(row), column]
                sums = read_vector(total, position, length)
                for factor, line in zip(of_row, read, strict=True):
                    sums = _multiply_add(full_vector(factor, length), line, sums)
                total = write_vector(sums, total, position)
            return [total]

        return self._along(self.columns, [total], add)[0]

    def _by_columns(self) -> Any:
        """Sum some columns at once, each a line of the large factor, in registers."""
        return code.in_steps(self.columns, _LINES, [empty(self.type)], self._columns)[0]

    def _columns(self, column: Any, count: int, total: Any) -> list[Any]:
        at = [code.combine(arith.addi, column, number) for number in range(count)]
        rows = [index(row) for row in range(self.rows)]
        for row, sums in zip(rows, self._sums(rows, at), strict=True):
            vector = vector_dialect.from_elements(ir.VectorType.get([count], self.element), sums)
            total = write_vector(vector, total, [index(0), row, column])
        return [total]

    def _sums(self, rows: Sequence[Any], columns: Sequence[Any]) -> list[list[Any]]:
        """The products of the rows with some columns."""
        length = min(self.length // (1 if len(rows) == 1 else 2), self.depth)
        full = self.depth // length * length

        def turn(depth: Any, length: int, sums: Sequence[Any]) -> list[Any]:
            lines = [self._read(depth, column, length) for column in columns]
            factors = [read_vector(self.left, [index(0), row, depth], length) for row in rows]
            pairs = [(factor, line) for factor in factors for line in lines]
            return [_multiply_add(*pair, sum_) for pair, sum_ in zip(pairs, sums, strict=True)]

        nothing = [self._nothing(length)] * (len(rows) * len(columns))
        vectors = code.for_each(full, nothing, lambda depth, *sums: turn(depth, length, sums), step=length)
        totals = [_sum(vector) for vector in vectors]
        if rest := self.depth - full:
            vectors = turn(index(full), rest, [self._nothing(rest)] * len(totals))
            totals = [_add(total, _sum(vector)) for total, vector in zip(totals, vectors, strict=True)]
        return [totals[row * len(columns) : (row + 1) * len(columns)] for row in range(len(rows))]

    def _read(self, depth: Any, column: Any, length: int) -> Any:
        line = read_vector(self.right, self.place(depth, column), length)
        wide = ir.VectorType.get([length], self.element)
        return code.cast(_WIDENING[_is_integer(line.type), _is_integer(wide)], line, wide)

    def _nothing(self, length: int) -> Any:
        return full_vector(zero(self.element), length)

    def _along(self, stop: int, carried: Sequence[Any], body: Callable[..., Sequence[Any]]) -> list[Any]:
        return code.in_steps(stop, self.length, carried, body)


def _multiply_add(one: Any, other: Any, total: Any) -> Any:
    if _is_integer(total.type):
        return code.combine(arith.addi, code.combine(arith.muli, one, other), total)
    return vector_dialect.fma(one, other, total)


def _add(one: Any, other: Any) -> Any:
    return code.combine(arith.addi if isinstance(one.type, ir.IntegerType) else arith.addf, one, other)


def _sum(vector: Any) -> Any:
    """The sum of a vector, in the order that is fastest."""
    return code.reduced("ADD", vector, fastmath=None if _is_integer(vector.type) else arith.FastMathFlags.reassoc)


def _is_integer(vector: Any) -> bool:
    return isinstance(vector.element_type, ir.IntegerType)
