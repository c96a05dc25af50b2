"""Schur forms of Hessenberg matrices by shifted QR: a bulge of three rows chased down, for real and complex numbers.

A real matrix keeps blocks of two rows for pairs of complex eigenvalues, with equal diagonals as LAPACK's have them.
Source: Golub & Van Loan 7.5; LAPACK "lahqr", "lanv2".
"""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.reflectors import NEGLIGIBLE, TINY
from hloforge.pipelines.library_calls.rows import Number, Rows, count_up, each_matrix, loop, side_by_side
from hloforge.pipelines.library_calls.tridiagonal_ql import SWEEPS, epsilon_of

# In the row below H, a row of zeros and Q^T: after the reflector's vector, its factor and the number of rows left.
_TAU, _LEFT = 3, 4


def schur_of_hessenberg(h: Number, q: Number | None) -> tuple[Number, Number | None, Value]:
    """T and Q Z of the Schur form h = Z T Z^H, and how many rows did not converge.

    Args:
        h: ``[batch, n, n]`` with n >= 2, magnitudes of about 1 at most, zero below the diagonal next to the main one.
        q: the transpose of Q, ``[batch, n, n]``; None for T alone.

    Returns:
        T, the transpose of Q Z, and s32 ``[batch]``.
    """
    n = h.re.dims[1]

    def padded(part: Value) -> Value:
        # A bulge at the end reaches one row and column beyond the matrix.
        return ops.pad(part, 0.0, [(0, 0, 0), (0, 1, 0), (0, 1, 0)])

    parts = [padded(part) for part in h.parts]
    if q is not None:
        below = [ops.pad(part, 0.0, [(0, 0, 0), (0, 0, 0), (0, 1, 0)]) for part in q.parts]
        parts = [ops.concat_in_dim(pair, 1) for pair in zip(parts, below, strict=True)]
    chase = _Chase(n, parts[0].dims[1], q is not None)
    state = each_matrix(Rows.of(Number(*parts), 1), chase.iterated)
    left = state.buffer[:, chase.scratch : chase.scratch + 1, _LEFT : _LEFT + 1]
    left = ops.reshape(ops.convert_element_type(left, "s32"), [left.dims[0]])
    return state.block((0, n), n), None if q is None else state.block((n + 1, 2 * n + 1), n), left


class _Chase:
    """The iteration on one matrix.

    Attributes:
        n: its size.
        scratch: the row of a sweep's own.
        has_vectors: whether Q^T is below it.
    """

    def __init__(self, n: int, scratch: int, has_vectors: bool) -> None:
        self.n, self.scratch, self.has_vectors = n, scratch, has_vectors

    def iterated(self, state: Rows) -> Rows:
        """Sweeps of the active block that ends at ``end``, until none is left."""
        zero = constant(0, "s32")

        def more(end: Value, turn: Value, age: Value, _: Rows) -> Value:
            return ops.and_(end > 0, turn < SWEEPS * max(10, self.n))

        def sweep(end: Value, turn: Value, age: Value, state: Rows) -> list[Value | Rows]:
            state, start = self._start_of_block(state, end)
            size = end - start + 1
            state, is_pair = self._split(state, start, size)
            state = self._swept(state, start, end, size, age)
            found = ops.select(ops.eq(size, 1), full(size, 1), ops.select(is_pair, full(size, 2), full(size, 0)))
            return [end - found, turn + 1, ops.select(found > 0, zero, age + 1), state]

        end, _, _, state = loop(more, sweep, [constant(self.n - 1, "s32"), zero, zero, state])
        left = ops.convert_element_type(ops.max(end, 0), state.buffer.element_type)
        return state.with_vector(self.scratch, Number(left), _LEFT)

    def _start_of_block(self, state: Rows, end: Value) -> tuple[Rows, Value]:
        """The last row with a negligible element before its diagonal, which becomes zero; else 0."""
        epsilon = epsilon_of(state.buffer)

        def is_open(k: Value, _: Value) -> Value:
            return k < 0

        def turn(k: Value, row: Value) -> list[Value]:
            beside = _size(state.scalar(row, ops.max(row - 1, 0)))
            around = _size(state.scalar(row, row)) + _size(state.scalar(ops.max(row - 1, 0), ops.max(row - 1, 0)))
            is_small = ops.or_(beside <= around * epsilon + epsilon * epsilon, row <= 0)
            return [ops.select(is_small, row, k), row - 1]

        start = loop(is_open, turn, [constant(-1, "s32"), end])[0]
        # At the first row this is its diagonal, which stays.
        beside = ops.max(start - 1, 0)
        old = state.scalar(start, beside)
        return state.with_vector(start, old.constant(0).where(start > 0, old), beside), start

    def _split(self, state: Rows, start: Value, size: Value) -> tuple[Rows, Value]:
        """Reflect or rotate a block of two rows; whether that leaves a pair of complex eigenvalues of real rows."""
        is_two = ops.eq(size, 2)
        a, b, c, d = (state.scalar(start + i, start + j) for i in (0, 1) for j in (0, 1))
        half = (a - d).times(constant(0.5, a.re.element_type))
        square = half * half + b * c
        if a.im is None:
            is_pair = ops.and_(is_two, square.re < 0.0)
            root = Number(ops.sqrt(ops.max(square.re, 0.0)))
            # Rotating by the angle with tan(2 x) = (d - a) / (b + c) makes the diagonals equal; if both are zero they
            # are.
            total, difference = b.re + c.re, (a.re - d.re)
            larger = ops.max(ops.abs(total), ops.abs(difference))
            are_equal = larger <= TINY[a.re.element_type.name]
            total, difference = (x / ops.select(are_equal, full(x, 1), larger) for x in (total, difference))
            norm = ops.select(are_equal, full(total, 1), ops.sqrt(total * total + difference * difference))
            cosine = ops.sqrt(0.5 * (1.0 + ops.abs(total) / norm))
            sine = -(0.5 * difference) / (norm * cosine) * _sign(total)
            equal = (Number(cosine), Number(ops.select(are_equal, full(sine, 0), sine)))
        else:
            is_pair = ops.and_(is_two, size < 0)
            root = square_root(square)
            equal = (half, half)
        # An eigenvalue minus d, the nearer one to it: (eigenvalue - d, c) is its vector.
        product = half.re * root.re
        if half.im is not None and root.im is not None:
            product = product + half.im * root.im
        root = (-root).where(product < 0.0, root)
        vector = (half + root, c)
        first, second = (one.where(is_pair, other) for one, other in zip(equal, vector, strict=True))
        return self._two(state, start, is_two, is_pair, first, second), is_pair

    def _two(self, state: Rows, k: Value, is_two: Value, is_pair: Value, first: Number, second: Number) -> Rows:
        """Map (first, second) to a multiple of e_0 by a reflector, and apply it to the rows and columns k, k + 1."""
        v1, _, tau = _reflector(first, second, second.constant(0))
        state = self._stored(state, v1, v1.constant(0), tau)
        end = ops.select(is_two, k + 1, k)
        (state,) = count_up(k, end, lambda k, state: [self._reflected(state, k, k + 1)], [state])
        # Half of the sum of the diagonals is exact to rounding, each of them less so.
        a, d = state.scalar(k, k), state.scalar(k + 1, k + 1)
        mean = (a + d).times(constant(0.5, a.re.element_type))
        state = state.with_vector(k, mean.where(is_pair, a), k)
        return state.with_vector(k + 1, mean.where(is_pair, d), k + 1)

    def _swept(self, state: Rows, start: Value, end: Value, size: Value, age: Value) -> Rows:
        """A double step of a block of three rows or more."""
        stop = ops.select(size >= 3, end, start)
        x, y, z = self._first_column(state, start, end, age)

        def turn(k: Value, state: Rows, x: Number, y: Number, z: Number) -> list[Rows | Number]:
            v1, v2, tau = _reflector(x, y, z)
            state = self._stored(state, v1, v2, tau)
            state = self._reflected(state, k, end)
            # Exact zeros where the bulge was; the first column of a block has none.
            before = ops.max(k - 1, 0)
            for row, keep in ((k + 1, 0), (k + 2, 0)):
                old = state.scalar(row, before)
                is_bulge = ops.and_(k > start, row <= end)
                state = state.with_vector(row, old.constant(keep).where(is_bulge, old), before)
            x, y, z = (state.scalar(k + i, k) for i in (1, 2, 3))
            inside = k + 3 <= end
            return [state, x, y, z.where(inside, z.constant(0))]

        return count_up(start, stop, turn, [state, x, y, z])[0]  # type: ignore[no-any-return]

    def _first_column(self, state: Rows, start: Value, end: Value, age: Value) -> tuple[Number, Number, Number]:
        """The first column of (H - s) (H - t) for the eigenvalues s and t of the last two rows, up to a factor."""
        before = ops.max(end - 1, 0)
        a, b, c, d = (state.scalar(i, j) for i in (before, end) for j in (before, end))
        # Every tenth double step takes other shifts, as the usual ones may go in circles.
        is_stuck = ops.eq(ops.rem(age, 10), 9)
        size = _size(c) + _size(state.scalar(before, ops.max(before - 1, 0)))
        step = Number(size, d.constant(0).im)
        other = d + step.times(constant(0.75, d.re.element_type))
        top, right, below, corner = (state.scalar(start + i, start + j) for i in (0, 1) for j in (0, 1))
        # Beside the first diagonal element, because eigenvalues may be close to each other and far from zero.
        first, second = (other.where(is_stuck, x) - top for x in (a, d))
        beside = (-(step * step).times(constant(0.4375, d.re.element_type))).where(is_stuck, b * c)
        last = state.scalar(start + 2, start + 1)
        x = first * second - beside + right * below
        y = below * (corner - top - first - second)
        return x, y, below * last

    def _stored(self, state: Rows, v1: Number, v2: Number, tau: Number) -> Rows:
        """The reflector of a step where its loops read it: what they write must not change it."""
        for place, value in enumerate((v1.constant(1), v1, v2, tau)):
            state = state.with_vector(self.scratch, value, constant(place, "s32"))
        return state

    def _reflected(self, state: Rows, k: Value, end: Value) -> Rows:
        """H^H a H with the stored reflector of the rows k, k + 1 and k + 2; Q^T likewise."""
        state = self._rows_reflected(state, k, adjoint=True)
        last = ops.min(k + 3, end)

        def column(row: Value, state: Rows) -> list[Rows]:
            v = state.vector(self.scratch, 0, 3)
            old = state.vector(row, k, 3)
            product = (old * v).sum() * state.scalar(self.scratch, _TAU)
            return [state.with_vector(row, old - product.spread(3) * v.conjugate(), k)]

        (state,) = count_up(0, last + 1, column, [state])
        return self._rows_reflected(state, self.n + 1 + k, adjoint=False) if self.has_vectors else state

    def _rows_reflected(self, state: Rows, first: Value, *, adjoint: bool) -> Rows:
        """Apply H^H, or H transposed, to three rows."""

        def pieces(places: list[Value], state: Rows) -> list[Rows]:
            def stored(place: int) -> Number:
                value = state.scalar(self.scratch, place)
                return (value.conjugate() if adjoint else value).spread(state.piece)

            v1, v2, tau = stored(1), stored(2), stored(_TAU)
            found = []
            for at in places:
                old = [state.piece_of(first + i, at) for i in range(3)]
                product = tau * (old[0] + v1 * old[1] + v2 * old[2])
                found.append([old[0] - product, old[1] - v1.conjugate() * product, old[2] - v2.conjugate() * product])
            for at, new in zip(places, found, strict=True):
                state = _stacked(state, first, new, at)
            return [state]

        return side_by_side(state, pieces, [state])[0]  # type: ignore[no-any-return]


def _stacked(state: Rows, first: Value, rows: list[Number], at: Value) -> Rows:
    """Three rows replaced by one store a plane, so that none is read after another was written."""
    return state.with_rows(
        first, Number(*(ops.concat_in_dim([_line(x) for x in part], 0) for part in _planes(rows))), at
    )


def _planes(rows: list[Number]) -> list[list[Value]]:
    return [list(part) for part in zip(*(row.parts for row in rows), strict=True)]


def _line(vector: Value) -> Value:
    return ops.reshape(vector, [1, vector.dims[0]])


def _reflector(x: Number, y: Number, z: Number) -> tuple[Number, Number, Number]:
    """v1, v2 and tau of the reflector that maps (x, y, z) to a multiple of e_0; v0 = 1."""
    scale = _size(x) + _size(y) + _size(z)
    is_zero = scale <= TINY[scale.element_type.name]
    inverse = 1.0 / ops.select(is_zero, full(scale, 1), scale)
    x, y, z = (value.times(inverse) for value in (x, y, z))
    rest = y.squared() + z.squared()
    if x.im is not None:
        rest = rest + x.im * x.im
    is_done = rest <= NEGLIGIBLE[scale.element_type.name]
    norm = ops.sqrt(rest + x.re * x.re)
    beta = ops.select(x.re < 0.0, norm, -norm)
    zero, one = x.constant(0), x.constant(1)
    difference = Number(x.re - beta, x.im)
    tau = zero.where(is_done, -difference.times(1.0 / ops.select(is_done, one.re, beta)))
    factor = zero.where(is_done, one.where(is_done, difference).inverse())
    return y * factor, z * factor, tau


def square_root(z: Number) -> Number:
    """The complex square root with a real part of at least 0."""
    assert z.im is not None
    size = ops.sqrt(z.squared())
    real = ops.sqrt(ops.max(0.5 * (size + ops.abs(z.re)), 0.0))
    other = ops.select(
        ops.eq(real, 0.0), real, ops.abs(z.im) / (2.0 * ops.select(ops.eq(real, 0.0), full(real, 1), real))
    )
    is_right = z.re >= 0.0
    imaginary = ops.select(is_right, other, real)
    return Number(ops.select(is_right, real, other), ops.select(z.im < 0.0, -imaginary, imaginary))


def _size(value: Number) -> Value:
    """|re| + |im|."""
    return ops.abs(value.re) if value.im is None else ops.abs(value.re) + ops.abs(value.im)


def _sign(value: Value) -> Value:
    return ops.select(value < 0.0, full(value, -1), full(value, 1))
