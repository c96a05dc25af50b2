"""What blocked algorithms of linear algebra share: how they cut matrices into rows, and what they subtract.

All of them find a block of rows per iteration: products of matrices subtract what the rows found before contribute
(wide dispatches, most of the arithmetic), and a loop of its own finds the block's rows one by one. That loop is small
and its rows are short. Matrices are ``[b, n, m]``, b of them.

Source: Golub & Van Loan, 4.2.9 and 3.1.8; LAPACK Working Note 20.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.idioms import batch_matmul
from hloforge.dialect.values import Value, leaves
from hloforge.pipelines.framework.machine import AVX2

# Rows of a block, and the size up to which a matrix is one block: the algorithm's on any target, which was measured for
# n = 64, 256 and 512 on the CPU.
ROWS = 64
# Bytes of a row of a matrix, and of all in a batch, that a loop over rows keeps at hand.
_ROW_BYTES = 8192
# The same for batches whose blocks, of more elements of f32 than half of the L2 cache holds, are read from memory every
# iteration.
_ROWS_OF_BATCHES = 16
_CACHED = AVX2.l2_bytes // 2 // 4
# Rows that one product subtracts: the algorithm's as well.
_DEPTH = 128


@dataclass(frozen=True)
class Block:
    """A block of rows.

    Attributes:
        start: the first row, s32. A last block that would reach over the edge starts earlier: all have one size.
        rows: how many.
        found: how many of them the blocks before have found already.
        down: whether blocks and their rows are found from the top to the bottom.
    """

    start: Value
    rows: int
    found: Value
    down: bool = True

    def of(self, operand: Value) -> Value:
        """The block's rows of ``[b, n, m]``."""
        return rows_at(operand, self.start, self.rows)

    def row(self, number: Value) -> Value:
        """The position in the block of the row that is found as number ``number``."""
        return number if self.down else self.rows - 1 - number

    def by_rows(self, init: Sequence[Value], body: Callable[..., Sequence[Value]]) -> list[Value]:
        """``body(row, *values)`` for each row to find, in order; ``row`` is its position in the block."""
        # IREE would let the loop write into the array that the block's rows are a slice of.
        own = [ops.optimization_barrier(value) for value in init]
        return count(self.found, self.rows, 1, own, lambda number, *values: body(self.row(number), *values))


def by_blocks(
    batch: int, n: int, width: int, init: Sequence[Value], body: Callable[..., Sequence[Value]], *, down: bool = True
) -> list[Value]:
    """``body(block, *values)`` for blocks that cover n rows of ``width`` elements, one after the other."""
    rows = min(n, ROWS if batch == 1 or batch * ROWS * width <= _CACHED else _ROWS_OF_BATCHES)
    zero = constant(0, "s32")
    if rows == n:
        return list(body(Block(zero, rows, zero, down), *init))

    def turn(done: Value, *values: Value) -> list[Value]:
        start = ops.min(done, n - rows)
        block = Block(start if down else n - rows - start, rows, done - start, down)
        return list(body(block, *values))

    return count(zero, n, rows, init, turn)


def minus_found(rows: Value, coefficients: Value, found: Value, block: Block) -> Value:
    """``rows - coefficients @ found``, summed over the rows that the blocks before this one have found.

    Args:
        rows: ``[b, r, m]``, those of the block.
        coefficients: ``[b, r, n]``; others than those of found rows are not read.
        found: ``[b, n, m]``, zeros where nothing is found.
    """
    n = coefficients.dims[-1]
    if block.rows == n:
        return rows
    depth = min(n, _DEPTH)
    before = block.start if block.down else n - block.rows - block.start

    def turn(done: Value, rest: Value) -> list[Value]:
        first = ops.min(done, n - depth)
        place = first if block.down else n - depth - first
        part = columns_at(coefficients, place, depth)
        # In the order in which rows are found.
        number = ops.iota("s32", part.dims, 2) if block.down else depth - 1 - ops.iota("s32", part.dims, 2)
        number = number + spread(first, part.dims)
        is_next = (number >= spread(done, part.dims)) & (number < spread(before, part.dims))
        return [rest - batch_matmul(zero_unless(is_next, part), rows_at(found, place, depth))]

    return count(constant(0, "s32"), before, depth, [rows], turn)[0]


def count(
    start: Value, stop: Value | int, step: int, init: Sequence[Value], body: Callable[..., Sequence[Value]]
) -> list[Value]:
    """The values after ``for number in range(start, stop, step): values = body(number, *values)``."""

    def turn(number: Value, *values: Value) -> list[Value]:
        return [number + step, *body(number, *values)]

    _, *results = leaves(ops.while_(lambda number, *_: number < stop, turn, [start, *init]))
    return results


def has_short_rows(operand: Value) -> bool:
    """Whether a loop that changes ``[b, n, m]`` row by row keeps these at hand."""
    batch, _, width = operand.dims
    row = operand.element_type
    return not row.is_complex and batch * width * row.bits // 8 <= _ROW_BYTES


def rows_at(operand: Value, start: Value, count: int) -> Value:
    """``operand[:, start : start + count, :]``."""
    batch, _, width = operand.dims
    return ops.dynamic_slice(operand, [constant(0, "s32"), start, constant(0, "s32")], [batch, count, width])


def columns_at(operand: Value, start: Value, count: int) -> Value:
    """``operand[:, :, start : start + count]``."""
    batch, height, _ = operand.dims
    return ops.dynamic_slice(operand, [constant(0, "s32"), constant(0, "s32"), start], [batch, height, count])


def with_rows(operand: Value, rows: Value, start: Value) -> Value:
    """The array with ``rows`` written from row ``start`` on."""
    return ops.dynamic_update_slice(operand, rows, [constant(0, "s32"), start, constant(0, "s32")])


def with_columns(operand: Value, columns: Value, start: Value) -> Value:
    """The array with ``columns`` written from column ``start`` on."""
    return ops.dynamic_update_slice(operand, columns, [constant(0, "s32"), constant(0, "s32"), start])


def element_at(operand: Value, row: Value, column: Value) -> Value:
    """``operand[:, row, column]``: ``[b]``."""
    batch = operand.dims[0]
    return ops.reshape(ops.dynamic_slice(operand, [constant(0, "s32"), row, column], [batch, 1, 1]), [batch])


def zero_unless(condition: Value, operand: Value) -> Value:
    """Zeros where the condition does not hold, whatever is there."""
    return ops.select(condition, operand, full(operand, 0))


def spread(operand: Value, dims: Sequence[int]) -> Value:
    """``[b]``, or a scalar, along all other dimensions."""
    return ops.broadcast_in_dim(operand, dims, range(operand.rank))


def real_part(operand: Value) -> Value:
    """The real parts; real arrays are returned as they are."""
    return ops.real(operand) if operand.element_type.is_complex else operand


def typed_as(real: Value, like: Value) -> Value:
    """Real numbers in the element type of ``like``."""
    return ops.complex(real, full(real, 0)) if like.element_type.is_complex else real


def magnitude(operand: Value) -> Value:
    """The sizes by which BLAS compares numbers: of complex ones the sum of both parts' absolute values."""
    if not operand.element_type.is_complex:
        return ops.abs(operand)
    return ops.abs(ops.real(operand)) + ops.abs(ops.imag(operand))


def squares(operand: Value) -> Value:
    """The squares of the absolute values."""
    if not operand.element_type.is_complex:
        return operand * operand
    real, imaginary = ops.real(operand), ops.imag(operand)
    return real * real + imaginary * imaginary
