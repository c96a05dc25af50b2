"""Products with a small matrix, or of few terms, as sums of elementwise products: colours, points, outer products.

Before::

    %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<90000x3xf32>, tensor<3x3xf32>) -> tensor<90000x3xf32>

After, once for each of the three terms, which are added up::

    %s = stablehlo.slice %x [0:90000, 0:1]
    %a = stablehlo.broadcast_in_dim %s …, dims = [0] : (tensor<90000xf32>) -> tensor<90000x3xf32>
    %b = stablehlo.broadcast_in_dim (slice %w [0:1, 0:3]), dims = [1] : (tensor<3xf32>) -> tensor<90000x3xf32>
    %t = stablehlo.multiply %a, %b

Such sums are loops over vectors of rows, of which what is before and behind the product is a part. A product's kernel
has strips of columns, most of which would be empty. Of the time of the product, 20,011 rows, shortest times on a busy
machine: 3x3 of i32 0.3, f32 0.33, f64 0.38, bytes 0.16; 6x6 of f32 0.4, of i32 0.33. Rows by up to 8 columns have up to
16 terms, and many vectors by a matrix each as many as no vector of the processor holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static, multiplies_nothing
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern

# Terms of a sum, and columns of the small matrix. More have loops of their own, or too much code.
_MOST_TERMS = _MOST_COLUMNS = 6
# Rows, or matrices, from which on it pays.
_LEAST = 64
# The same of rows by a small matrix, whose columns would fill a part of vectors only. Of the kernel's time, 20,011
# rows (a Zen 5): 8x5 of f32 0.36, f64 0.4, i64 0.39, 16x4 0.6, 0.73 and 0.63, 16x8 0.59 and 0.76; 24x2 2.7 to 3.
_MOST_TERMS_OF_ROWS, _MOST_COLUMNS_OF_ROWS = 16, 8
# Products of numbers in each of many products: of two matrices, and of a matrix and a vector.
_MOST_OF_MATRICES, _MOST_OF_VECTOR = 8, 12
# Terms of a matrix and a vector, which kernels sum along vectors of so many bytes: 3,355 of 6x6 f64 take 0.73 of the
# kernel's time, 3,000 of 3x7 0.5, 2,000 of 8x8 f32 0.64; of f64, whose terms fill a vector, 1.16.
_MOST_TERMS_OF_VECTOR, _VECTOR_BYTES = 8, 64
# Products of numbers in all, and terms, of what is too small for a kernel: its operands would be copied, and others
# could not be computed together with it. In chains, of the kernel's time: 7 terms of one sum 0.75, 4x4 by 4 0.78, 3x3
# by 3x3 0.35; 6x6 by 6 1.45.
_MOST_OF_TINY, _MOST_TERMS_OF_TINY = 27, 8
# Terms of sums for any rows and columns, which take less than what it takes to store them: outer products, distances
# of points, gradients of weights by few rows. What reads the product need not wait for it in memory. Of the kernel's
# time (a Xeon): 1152x384 of 1 to 3 terms 0.4, 456x2559 0.35 to 0.6, 20,011x24 0.45, sums over 800x800 0.2 to 0.6; of 6
# terms 0.7 to 1.2. Rows of some vectors always pay, shorter ones from so many results on (40x20 takes 1.2 to 2.3), of
# many products if they fill a vector (3,000 of 4x4 by 2 terms take 2.1).
_MOST_OF_OUTER, _LEAST_COLUMNS, _LEAST_RESULTS, _LEAST_OF_MANY = 4, 40, 4096, 12
# Types of sums that round once for each term, or never.
_TYPES = frozenset({"f32", "f64", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"})


@dataclass(frozen=True)
class _Factor:
    value: Value
    batch: Sequence[int]
    depth: Sequence[int]

    @property
    def free(self) -> list[int]:
        return [d for d in range(self.value.rank) if d not in (*self.batch, *self.depth)]

    @property
    def count(self) -> int:
        """Rows of the left one, columns of the right one."""
        return prod(self.value.dims[d] for d in self.free)

    def term(self, place: Sequence[int], result: Value, first: int) -> Value:
        """What a term of each sum has of it, repeated for the result, whose dimensions from ``first`` on are its."""
        starts, limits = [0] * self.value.rank, list(self.value.dims)
        for d, number in zip(self.depth, place, strict=True):
            starts[d], limits[d] = number, number + 1
        kept = [d for d in range(self.value.rank) if d not in self.depth]
        part = ops.reshape(ops.slice(self.value, starts, limits), [self.value.dims[d] for d in kept])
        to = {d: number for number, d in enumerate(self.batch)}
        to |= {d: first + number for number, d in enumerate(self.free)}
        part = ops.convert_element_type(part, result.element_type.name)
        # A factor may have its batch after its rows, or between them.
        order = sorted(range(len(kept)), key=lambda number: to[kept[number]])
        return ops.broadcast_in_dim(ops.transpose(part, order), result.dims, sorted(to[d] for d in kept))


def has_few_terms(op: ir.Operation) -> bool:
    """Whether a product of static arrays has few terms, many rows by a small matrix, or many pairs of small ones."""
    left, right = _factors(op)
    terms, (fewer, more) = prod(left.value.dims[d] for d in left.depth), sorted((left.count, right.count))
    batch = prod(left.value.dims[d] for d in left.batch)
    if batch * fewer * more * terms <= _MOST_OF_TINY and terms <= _MOST_TERMS_OF_TINY:
        return True
    types = {Value(value).element_type for value in (*op.operands, *op.results)}
    (own, *others) = types
    if terms <= _MOST_OF_OUTER and not own.is_complex and _has_long_rows(batch, left.count, right.count):
        return True
    if not others and not own.is_complex and batch * more >= _LEAST:
        if batch == 1 and 1 < right.count <= min(_MOST_COLUMNS_OF_ROWS, left.count) and terms <= _MOST_TERMS_OF_ROWS:
            return True
        is_short = terms <= _MOST_TERMS_OF_VECTOR and terms * own.bits < 8 * _VECTOR_BYTES
        if batch > 1 and fewer == 1 and is_short:
            return True
    if terms > _MOST_TERMS or fewer > _MOST_COLUMNS:
        return False
    is_small = fewer * more * terms <= (_MOST_OF_VECTOR if fewer == 1 else _MOST_OF_MATRICES)
    return batch * more >= _LEAST and (batch == 1 or is_small)


def _has_long_rows(batch: int, rows: int, columns: int) -> bool:
    """Whether loops over the results of sums of few terms have whole vectors, or are long."""
    is_long = batch * rows * columns >= _LEAST_RESULTS
    return columns >= _LEAST_COLUMNS or (is_long and (batch == 1 or columns >= _LEAST_OF_MANY))


def _factors(op: ir.Operation) -> tuple[_Factor, _Factor]:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    return (
        _Factor(Value(op.operands[0]), numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        _Factor(Value(op.operands[1]), numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    )


@pattern("stablehlo.dot_general")
def of_few_terms(op: ir.Operation) -> Replacement:
    """Few terms, many rows by a small matrix, or many pairs of small ones."""
    result = Value(op.results[0])
    if not is_static(op) or multiplies_nothing(op) or "algorithm" in op.attributes:
        return NoMatch("of unknown or no size, or with types for its factors")
    if result.element_type.name not in _TYPES:
        return NoMatch("rounded once for all terms, or no numbers")
    if not has_few_terms(op):
        return NoMatch("many terms and no small matrix, or several rows in each of many products")
    left, right = _factors(op)
    sizes, rows = [left.value.dims[d] for d in left.depth], len(left.batch)
    total = full(result, 0)
    for place in product(*map(range, sizes)):
        total = total + left.term(place, result, rows) * right.term(place, result, rows + len(left.free))
    return total
