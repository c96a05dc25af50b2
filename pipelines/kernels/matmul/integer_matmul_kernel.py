"""The micro-kernel of ``dispatch-integer-matmuls``: some rows times a strip of columns, in pairs of 16 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hloforge.dialect.mlir import arith, ir, vector_dialect
from hloforge.pipelines.framework.builders import empty, full_vector, index, read_vector, write_vector, zero
from hloforge.pipelines.kernels.lang import loops as code


@dataclass(frozen=True)
class IntegerKernel:
    """The work of one workgroup: ``left`` times ``right``.

    Attributes:
        left: ``[1, m, k]``, of 16 bits; the last element of an odd depth is followed by zero.
        right: ``[1, k, n]``, of 8 bits; at least a strip of columns.
        type: of the result, ``[1, m, n]``, of 32 bits.
        strip: columns that are packed at once.
        rows: that they are multiplied with at once.
        packed: bytes of a strip that is packed.
    """

    left: Any
    right: Any
    type: Any
    strip: int
    rows: int
    packed: int

    @property
    def pairs(self) -> int:
        """Pairs of lines of a strip."""
        return self.packed // (2 * 2 * self.strip)

    def result(self) -> Any:
        total = empty(self.type)
        packed = empty(ir.RankedTensorType.get([self.pairs, 2 * self.strip], _short()))
        last = int(self.type.shape[2]) - self.strip

        # What is left of the columns is a whole strip with some of the strip before.
        def of_columns(column: Any, total: Any, packed: Any) -> list[Any]:
            return self._strip(code.combine(arith.minui, column, last), total, packed)

        return code.for_each(last + self.strip, [total, packed], of_columns, step=self.strip)[0]

    def _strip(self, column: Any, total: Any, packed: Any) -> list[Any]:
        def clear(row: Any, total: Any) -> list[Any]:
            nothing = full_vector(zero(self.type.element_type), self.strip)
            return [write_vector(nothing, total, [index(0), row, column])]

        def part(pair: Any, count: int, total: Any, packed: Any) -> list[Any]:
            return self._part(pair, count, column, total, packed)

        cleared = code.for_each(int(self.type.shape[1]), [total], clear)
        return code.in_steps(int(self.left.type.shape[2]) // 2, self.pairs, [*cleared, packed], part)

    def _part(self, first: Any, count: int, column: Any, total: Any, packed: Any) -> list[Any]:
        """Add what some pairs of lines of the right factor contribute to a strip of the result."""

        def some(row: Any, rows: int, total: Any) -> list[Any]:
            return [self._rows(row, rows, first, count, column, total, packed)]

        packed = code.for_each(count, [packed], lambda pair, into: [self._copied(first, pair, column, into)])[0]
        return [*code.in_steps(int(self.type.shape[1]), self.rows, [total], some), packed]

    def _copied(self, first: Any, pair: Any, column: Any, into: Any) -> Any:
        """Two lines of the strip, an element of one beside that of the other."""
        line = code.combine(arith.muli, code.combine(arith.addi, first, pair), 2)
        next_ = code.combine(arith.addi, line, 1)
        if (depth := int(self.right.type.shape[1])) % 2:
            # Any line will do beside the last one: the left factor has zero there.
            next_ = code.combine(arith.minui, next_, depth - 1)
        short = ir.VectorType.get([self.strip], _short())
        lines = [read_vector(self.right, [index(0), at, column], self.strip) for at in (line, next_)]
        wide = [code.cast(arith.extsi, line, short) for line in lines]
        both = vector_dialect.interleave(*wide)
        return write_vector(both, into, [pair, index(0)])

    def _rows(self, row: Any, count: int, first: Any, pairs: int, column: Any, total: Any, packed: Any) -> Any:
        """Add the products of some rows of the left factor with the packed strip."""
        rows = [code.combine(arith.addi, row, number) for number in range(count)]
        sums = [read_vector(total, [index(0), at, column], self.strip) for at in rows]

        def turn(pair: Any, *sums: Any) -> list[Any]:
            lines = read_vector(packed, [pair, index(0)], 2 * self.strip)
            at = code.combine(arith.muli, code.combine(arith.addi, first, pair), 2)
            factors = [read_vector(self.left, [index(0), row, at], 2) for row in rows]
            return [_multiply_add(factor, lines, sum_) for factor, sum_ in zip(factors, sums, strict=True)]

        for at, sum_ in zip(rows, code.for_each(pairs, sums, turn), strict=True):
            total = write_vector(sum_, total, [index(0), at, column])
        return total


def _multiply_add(pair: Any, lines: Any, total: Any) -> Any:
    """``total[n] + pair[0] * lines[2 * n] + pair[1] * lines[2 * n + 1]``: one instruction of x86, and an addition."""
    width = int(total.type.shape[0])
    wide = ir.VectorType.get([2 * width], total.type.element_type)
    # IREE makes wrong shifts of an extended bitcast.
    pairs = vector_dialect.shuffle(pair, pair, [0, 1] * width)
    products = code.combine(arith.muli, code.cast(arith.extsi, pairs, wide), code.cast(arith.extsi, lines, wide))
    even, odd = vector_dialect.deinterleave(products)
    return code.combine(arith.addi, total, code.combine(arith.addi, even, odd))


def _short() -> Any:
    return ir.IntegerType.get_signless(16)
