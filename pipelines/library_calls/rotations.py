"""Plane rotations of several sweeps applied to rows at once, in a wavefront.

A sweep rotates each pair of neighbouring rows once, and the rows have to be read and written for that. The sweeps of a
shifted QR or QL iteration do not look at the rows, so that some are found first. Sweep j then follows sweep 0 at a
distance of j rows: a row is read once, rotated by all of them in registers, and written once. Outside of its block a
sweep's rotations are the identity, which changes no bit of a finite row.

Source: Van Zee, van de Geijn, Quintana-Orti, "Restructuring the Tridiagonal and Bidiagonal QR Algorithms for
Performance", ACM TOMS 40 (2014).
"""

from __future__ import annotations

from hloforge.dialect.constants import full
from hloforge.dialect.idioms import zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.rows import (
    Number,
    Position,
    Rows,
    count_down,
    count_up,
    side_by_side,
)

# Sweeps whose rows fit into registers together: of two pieces side by side eight of AVX-512, all sixteen of AVX2.
AT_ONCE = 4
# Rows begin so far below the first one of the buffer, because sweeps that follow run over both ends of a block. In the
# rows of rotations, places are this much to the right.
MARGIN = AT_ONCE


def without_rotations(state: Rows, row: Position) -> Rows:
    """With the cosines in ``row`` and the sines in the next one of rotations that change nothing."""
    kind = state.buffer.element_type
    ones = full(zeros(kind, [state.width]), 1)
    return state.with_vector(row, Number(ones)).with_vector(row + 1, Number(zeros(kind, [state.width])))


def put_rotation(state: Rows, row: Position, at: Value, lag: Value, c: Value, s: Value) -> Rows:
    """With a sweep's rotation of rows ``at`` and ``at`` + 1; its cosines are in ``row``, its sines in the next one.

    Args:
        lag: of the sweep's number j, -j if it goes down and j if it goes up. What is read together is at one place.
    """
    at = at + lag + MARGIN
    return state.with_vector(row, Number(c), at).with_vector(row + 1, Number(s), at)


def rotated_down(state: Rows, start: Value, end: Value, first: int, columns: int, rotations: int, step: int) -> Rows:
    """Rows start ... end rotated from the last pair to the first.

    Args:
        start, end: the least start and the greatest end of the sweeps' blocks.
        first: the row of the buffer in which row 0 is.
        columns: how many are rotated.
        rotations: the row of sweep 0's cosines; those of the next one are ``step`` rows below.
    """

    def pieces(places: list[Value], state: Rows) -> list[Rows]:
        count = len(places)

        def body(i: Value, state: Rows, *carried: Number) -> list[Rows | Number]:
            xs, rows = [state.piece_of(i + first, at) for at in places], list(carried)
            for j, (c, s) in enumerate(_factors(state, rotations, step, i)):
                for number, x in enumerate(xs):
                    high = rows[j * count + number]
                    rows[j * count + number] = c * x - s * high
                    xs[number] = s * x + c * high
            return [state.with_pieces(i + (first + AT_ONCE), xs, places), *rows]

        last = start - (AT_ONCE - 1)
        begun = [state.piece_of(end + (first + j), at) for j in range(AT_ONCE) for at in places]
        state, *ended = count_down(end - 1, last, body, [state, *begun])
        for j in range(AT_ONCE):
            state = state.with_pieces(last + (first + j), ended[j * count : j * count + count], places)
        return [state]

    return side_by_side(state, pieces, [state], columns=columns)[0]  # type: ignore[no-any-return]


def rotated_up(state: Rows, start: Value, end: Value, first: int, columns: int, rotations: int, step: int) -> Rows:
    """Rows start ... end rotated from the first pair to the last; arguments as of ``rotated_down``."""

    def pieces(places: list[Value], state: Rows) -> list[Rows]:
        count = len(places)

        def body(i: Value, state: Rows, *carried: Number) -> list[Rows | Number]:
            xs, rows = [state.piece_of(i + (first + 1), at) for at in places], list(carried)
            for j, (c, s) in enumerate(_factors(state, rotations, step, i)):
                for number, x in enumerate(xs):
                    low = rows[j * count + number]
                    rows[j * count + number] = c * x - s * low
                    xs[number] = c * low + s * x
            return [state.with_pieces(i + (first + 1 - AT_ONCE), xs, places), *rows]

        last = end + (AT_ONCE - 1)
        begun = [state.piece_of(start + (first - j), at) for j in range(AT_ONCE) for at in places]
        state, *ended = count_up(start, last, body, [state, *begun])
        for j in range(AT_ONCE):
            state = state.with_pieces(last + (first - j), ended[j * count : j * count + count], places)
        return [state]

    return side_by_side(state, pieces, [state], columns=columns)[0]  # type: ignore[no-any-return]


def _factors(state: Rows, rotations: int, step: int, at: Value) -> list[tuple[Number, Number]]:
    """The cosines and sines of all sweeps at a place, each as a vector."""
    rows = range(rotations, rotations + AT_ONCE * step, step)
    c, s = ([Number(state.real(row + of, at + MARGIN)).spread(state.piece) for row in rows] for of in (0, 1))
    return list(zip(c, s, strict=True))
