"""Matrices in strips of columns, for dispatches that factor and solve: what their innermost loops share.

A strip is 64 bytes wide, and its rows lie one after the other, so that a column of vectors is read in order and from
few lines of the cache. An algorithm finds one strip after the other, four rows per iteration: their sums stay in
registers while the rows found before are subtracted, a vector of the strip times a number for each of the four. That is
where the time goes, at the speed of a matrix product. Sizes are multiples of a strip's width: callers pad.

Source: Golub & Van Loan, 3.2.11 (gaxpy forms); Goto and van de Geijn, Anatomy of High-Performance Matrix
Multiplication, 2008, for the arrangement in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from hloforge.dialect.mlir import AnyOp, arith, ir, vector_dialect
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import full_vector, index, read_vector, write_vector
from hloforge.pipelines.framework.machine import AVX2
from hloforge.pipelines.kernels.lang import loops as code

# A line with every model. It is no option of a pass, because ``keep-factorizations``, ``dispatch-factorizations`` and
# the tables of what a target computes have to agree. Wider strips for AVX-512 were not tried.
_STRIP_BYTES = AVX2.line_bytes
# The size of the smallest matrix that is worth a dispatch of its own: it fills a strip of f32.
LEAST = _STRIP_BYTES // 4
# Represents a position that an operand gives.
_DYNAMIC = -(2**63)
# Rows of an iteration: eight sums, as many as hide an addition's latency, in the vectors of AVX2 that a strip has.
ROWS = 8 * AVX2.vector_bytes // _STRIP_BYTES

Number = Any
Vector = Any


def lanes(element: Any) -> int:
    """Elements of a strip's row."""
    return _STRIP_BYTES * 8 // int(element.width)


def padded_size(array: Value, size: int) -> int:
    """A size as a multiple of a strip's width."""
    width = _STRIP_BYTES * 8 // array.element_type.bits
    return -(-size // width) * width


def suits_strips(op: AnyOp) -> bool:
    """Whether all floats of an operation are f32 or f64, its sizes are known, and its matrices are not small."""
    values = [Value(value) for value in (*op.operands, *op.results)]
    names = {value.element_type.name for value in values if not value.element_type.is_integer}
    matrices = [value for value in map(Value, op.operands) if value.rank >= 2]
    return (
        names in ({"f32"}, {"f64"})
        and all(value.shape.is_static for value in values)
        and all(prod(value.dims) for value in matrices)
        and min(matrices[0].dims[-2:]) >= LEAST
    )


def plus(one: Any, other: Any) -> Any:
    """The sum of two of type ``index``; ``other`` may be an int."""
    return one if isinstance(other, int) and other == 0 else code.combine(arith.addi, one, other)


def times(one: Any, other: Any) -> Any:
    """The product of two of type ``index``; ``other`` may be an int."""
    return code.combine(arith.muli, one, other)


def split(at: Any, width: int) -> tuple[Any, Any]:
    """The strip in which a column lies, and its position there."""
    return code.combine(arith.divui, at, width), code.combine(arith.remui, at, width)


@dataclass(frozen=True)
class Strips:
    """A matrix by strips, in memory.

    Attributes:
        array: ``[1, strips, rows, lanes]``.
    """

    array: Any

    @staticmethod
    def type_of(batch: int, rows: int, columns: int, element: Any) -> Any:
        """The type of a batch of them."""
        width = lanes(element)
        return ir.RankedTensorType.get([batch, columns // width, rows, width], element)

    @property
    def width(self) -> int:
        return int(self.array.type.shape[3])

    @property
    def rows(self) -> int:
        return int(self.array.type.shape[2])

    @property
    def count(self) -> int:
        return int(self.array.type.shape[1])

    def vector(self, strip: Any, row: Any) -> Vector:
        return read_vector(self.array, [index(0), strip, row, index(0)], self.width)

    def with_vector(self, vector: Vector, strip: Any, row: Any) -> Strips:
        return Strips(write_vector(vector, self.array, [index(0), strip, row, index(0)]))

    def number(self, row: Any, column: Any) -> Number:
        """The element in a row and a column of the matrix."""
        return code.read(self.array, index(0), *self.place(row, column))

    def place(self, row: Any, column: Any) -> list[Any]:
        strip, lane = split(column, self.width)
        return [strip, row, lane]


def minus_products(
    sums: Sequence[Vector],
    stop: Any,
    factors: Callable[[Any], Sequence[Number]],
    line: Callable[[Any], Vector],
    *,
    start: Any = 0,
) -> list[Vector]:
    """``sums[r] - factors(k)[r] * line(k)``, summed over start <= k < stop."""

    def turn(k: Any, *sums: Vector) -> list[Vector]:
        vector = line(k)
        return [minus_product(sum_, factor, vector) for sum_, factor in zip(sums, factors(k), strict=True)]

    return code.for_each(stop, sums, turn, start=start)


def minus_product(sum_: Vector, factor: Number, vector: Vector) -> Vector:
    """``sum - factor * vector``, rounded once."""
    return vector_dialect.fma(full_vector(arith.negf(factor), int(vector.type.shape[0])), vector, sum_)


def element(vector: Vector, at: Any) -> Number:
    """The element at an ``index``."""
    return vector_dialect.extract(vector, [at], [_DYNAMIC])


def counted(width: int) -> Vector:
    """0, 1, ... as s32."""
    return code.counted(width, ir.IntegerType.get_signless(32))


def divided(vector: Vector, by: Number) -> Vector:
    return arith.divf(vector, full_vector(by, int(vector.type.shape[0])))


def transposed_block(source: Any, position: Sequence[Any], into: Any, target: Sequence[Any], size: int) -> Any:
    """Copy a square of the last two dimensions from one array to another, with rows for columns."""
    vector = ir.VectorType.get([size, size], source.type.element_type)
    padding = code.float_number(0.0, source.type.element_type)
    read, written = (ir.AffineMap.get_minor_identity(len(at), 2) for at in (position, target))
    block = vector_dialect.transfer_read(vector, source, position, read, padding, [True, True])
    block = vector_dialect.transpose(vector, block, [1, 0])
    return vector_dialect.transfer_write(into.type, block, into, target, written, [True, True])
