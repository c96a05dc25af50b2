"""Square matrices with rows and columns of equal size, similar to given ones. Source: LAPACK "gebal"; Osborne 1960.

QR iterations leave errors of eps times the norm. Where rows and columns are of very different sizes, that is more than
eps times what the eigenvalues depend on, unless the matrix is scaled; and eigenvalues that stand on the diagonal of a
triangle, in some order of rows and columns, are exact.
"""

from __future__ import annotations

from math import log

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.idioms import matrix_transpose, zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.matrices import ascending, from_parts, kept, parts_of, permuted
from hloforge.pipelines.library_calls.rows import Number

# Exponents of scales lie within; the bits of an element below its exponent, and the exponent of 1.
_RANGE = {"f32": (40, 23, 127), "f64": (300, 52, 1023)}
# Turns, at most; exponents that would change by less than this are good enough.
_TURNS, _ENOUGH = 100, 0.25


class Balanced:
    """B = D^-1 P^T A P D of matrices ``[b, n, n]`` A with magnitudes of about 1 at most: P permutes, D scales by powers
    of two, so that B has the elements of A exactly.

    Attributes:
        matrix: B, in which eigenvalues that other rows do not influence stand in a triangle.
    """

    def __init__(self, a: Value) -> None:
        size = ops.abs(parts_of(a).re)
        if (imaginary := parts_of(a).im) is not None:
            size = size + ops.abs(imaginary)
        size = ops.optimization_barrier(size)
        keys = _isolated(ops.ne(size, 0.0))
        self._order = ops.optimization_barrier(ascending(keys))
        self._places = ops.optimization_barrier(ascending(self._order))
        inner = _both(ops.eq(keys, 0))
        self._scales = ops.optimization_barrier(_powers(ops.select(inner, size, full(size, 0))))
        across, down = (ops.broadcast_in_dim(self._scales, a.dims, [0, axis]) for axis in (2, 1))
        scaled = kept(Number(*(part * across / down for part in parts_of(a).parts)))
        self.matrix = from_parts([self._permuted(part) for part in scaled.parts])

    def _permuted(self, part: Value) -> Value:
        """Rows and columns in the new order."""
        turned = ops.optimization_barrier(matrix_transpose(permuted(part, self._order)))
        return ops.optimization_barrier(matrix_transpose(permuted(turned, self._order)))

    def vectors(self, found: Number, *, left: bool) -> Number:
        """Eigenvectors of A, as columns, from those of B; of other norms."""
        down = ops.broadcast_in_dim(self._scales, found.re.dims, [0, 1])
        back = (permuted(part, self._places) for part in found.parts)
        return kept(Number(*(part / down if left else part * down for part in back)))


def _both(mask: Value) -> Value:
    """``[b, n]`` to ``[b, n, n]``: whether it holds of a place's row and of its column."""
    dims = [*mask.dims, mask.dims[-1]]
    return ops.broadcast_in_dim(mask, dims, [0, 1]) & ops.broadcast_in_dim(mask, dims, [0, 2])


def _isolated(connected: Value) -> Value:
    """Keys ``[b, n]`` by which rows and columns are put in order: rows that are zero beside the diagonal go to the end,
    such columns to the beginning, and so on with what is left, which has the key 0."""
    batch, n, _ = connected.dims
    beside = connected & ops.ne(ops.iota("s32", connected.dims, 1), ops.iota("s32", connected.dims, 2))

    def free(keys: Value, axis: int) -> Value:
        is_left = ops.eq(keys, 0)
        return is_left & ops.not_(ops.reduce(beside & _both(is_left), False, ops.or_, [axis]))

    def turn(number: Value, keys: Value, _: Value) -> list[Value]:
        spread = ops.broadcast_in_dim(number, keys.dims, [])
        rows = ops.optimization_barrier(free(keys, 2))
        keys = ops.optimization_barrier(ops.select(rows, 2 * n - spread, keys))
        columns = ops.optimization_barrier(free(keys, 1))
        keys = ops.select(columns, spread - 2 * n, keys)
        return [number + 1, keys, ops.reduce(rows | columns, False, ops.or_, [0, 1])]

    start = [constant(0, "s32"), zeros("s32", [batch, n]), constant(True, "pred")]
    return ops.while_(lambda number, keys, goes_on: goes_on, turn, start)[1]


def _powers(size: Value) -> Value:
    """Powers of two ``[b, n]`` that make rows and columns of matrices of magnitudes about equally large."""
    batch, n, _ = size.dims
    most, bits, one = _RANGE[size.element_type.name]
    real = size.element_type

    def turn(number: Value, exponents: Value, _: Value) -> list[Value]:
        across, down = (ops.broadcast_in_dim(exponents, size.dims, [0, axis]) for axis in (2, 1))
        scaled = ops.optimization_barrier(size * ops.exp((across - down) * log(2)))
        rows, columns = (ops.reduce(scaled, 0, ops.add, [axis]) for axis in (2, 1))
        # A fourth of the quotient's logarithm: all rows change at once, so that each goes half of its way.
        step = (ops.log(rows) - ops.log(columns)) * (0.25 / log(2))
        step = ops.select((rows > 0.0) & (columns > 0.0), step, full(step, 0))
        after = ops.optimization_barrier(ops.clamp(full(step, -most), exponents + step, full(step, most)))
        change = ops.reduce(ops.abs(after - exponents), 0, ops.max, [0, 1])
        return [number + 1, after, change]

    start = [constant(0, "s32"), zeros(real, [batch, n]), constant(1, real)]
    found = ops.while_(lambda number, _, change: (number < _TURNS) & (change > _ENOUGH), turn, start)[1]
    integer = f"s{real.bits}"
    exponent = ops.convert_element_type(ops.round_nearest_even(found), integer) + one
    return ops.bitcast_convert_type(ops.shift_left(exponent, full(exponent, bits)), real)
