"""Roots of secular equations ``1 / rho + sum_j z_j^2 / (d_j - x) = 0``, a vector of roots at a time.

Root i lies between the poles d_i and d_{i + 1}. It is found as a distance from the nearer of both, so that its
distances from all poles have small relative errors, by rational functions with the same two poles, within brackets.
Source: R.-C. Li, "Solving Secular Equations Stably and Efficiently" (1993), the middle way; LAPACK "laed4".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.matrices import folded
from hloforge.pipelines.codegen.algorithms.places import while_
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I64, Value, element_of, literal, vector_of

# Evaluations at most: brackets are halved where rational functions do not help, and have as many numbers as digits.
_MOST = 128


@dataclass(frozen=True)
class Secular:
    """An equation.

    Attributes:
        poles: in ascending order, with one more above the last root.
        weights: the z_j, and 0 for the pole after the last.
        count: of roots, i64.
        inverse: 1 / rho > 0.
        squared: whether the poles are the squares of the numbers ``poles``, and distances those of squares.
        lanes: roots that are found at a time.
    """

    poles: Elements
    weights: Elements
    count: Value
    inverse: Value
    lanes: int
    squared: bool = False

    @property
    def _function(self) -> Function:
        return self.poles.pointer.function

    def _vector(self, array: Elements, place: Value) -> Value:
        found = array.at(place, self.lanes)
        assert isinstance(found, Value)
        return found

    def apart(self, pole: Value, other: Value) -> Value:
        """How far a pole is from another one."""
        return (pole - other) * (pole + other) if self.squared else pole - other

    def roots(self, first: Value) -> tuple[Value, Value]:
        """The roots from ``first`` on: from which poles they are measured, and their distances from these.

        Lanes beyond the last root have any number.
        """
        function, lanes = self._function, self.lanes
        low, high = self._vector(self.poles, first), self._vector(self.poles, first + 1)
        own, other = (self._vector(self.weights, place) for place in (first, first + 1))
        own, other = own * own, other * other
        gap = self.apart(high, low)
        half = gap * 0.5
        inverse = function.spread(self.inverse, lanes)
        below, above, _, _ = self._sums(first, low, half)
        value = inverse + below + above
        is_left = value >= 0.0
        origin = is_left.where(low, high)
        bottom, top = is_left.where(half.like(0.0), -half), is_left.where(half, 0.0)
        # The other poles' share in the middle is taken for all of the interval.
        rest = value + own / half - other / half
        a = is_left.where(rest * gap, -(rest * gap)) + own + other
        b = is_left.where(own * gap, -(other * gap))
        root = ((a * a - rest * b * 4.0).call("fabs")).call("sqrt")
        signed = is_left.where(root, -root)
        is_near = is_left.where(a, -a) > 0.0
        start = is_near.where((b * 2.0) / (a + signed), (a - signed) / (rest * 2.0))
        inside = (start >= bottom) & (start <= top) & start.differs(0.0)
        start = inside.where(start, (bottom + top) * 0.5)
        return origin, self._refined(
            first, (self.apart(low, origin), self.apart(high, origin)), origin, start, bottom, top
        )

    def _refined(
        self, first: Value, ends: tuple[Value, Value], origin: Value, start: Value, bottom: Value, top: Value
    ) -> Value:
        function, lanes = self._function, self.lanes
        kind = element_of(start.kind)
        epsilon = float(np.finfo("float32" if kind == "float" else "float64").eps)
        places = function.spread((self.count - first).as_(kind), lanes)
        is_open = (lane_numbers(function, kind, lanes) < places).where(start.like(1.0), 0.0)
        inverse = function.spread(self.inverse, lanes)

        def goes_on(state: list[Value]) -> Value:
            turn, _, _, _, left = state
            any_left = left.equals(0.0).all() ^ 1
            return any_left & turn.compare("slt", _MOST)

        def step(state: list[Value]) -> Sequence[Value]:
            turn, at, least, most, left = state
            below, above, rise, fall = self._sums(first, origin, at)
            value, slope = inverse + below + above, rise + fall
            limit = ((above - below) * 8.0 + inverse * 2.0 + at.call("fabs") * slope) * epsilon
            is_up = value > 0.0
            most, least = is_up.where(at, most), is_up.where(least, at)
            far = value.call("fabs") > limit
            before, behind = ends[0] - at, ends[1] - at
            c = value - before * rise - behind * fall
            a = (before + behind) * value - before * behind * slope
            b = before * behind * value
            root = (a * a - b * c * 4.0).call("fabs").call("sqrt")
            change = (a <= 0.0).where((a - root) / (c * 2.0), (b * 2.0) / (a + root))
            change = (value * change >= 0.0).where(-(value / slope), change)
            new = at + change
            inside = (new >= least) & (new <= most) & new.differs(0.0)
            new = inside.where(new, (least + most) * 0.5)
            moves = far & new.differs(at) & left.differs(0.0)
            return [turn + 1, moves.where(new, at), least, most, moves.where(left, 0.0)]

        state = [Value(function, I64, "0"), start, bottom, top, is_open]
        return while_(function, state, goes_on, step)[1]

    def _sums(self, first: Value, origin: Value, at: Value) -> list[Value]:
        """The terms of the poles up to the root, those of the poles above it, and the same of the derivative."""
        function, lanes = self._function, self.lanes
        kind = element_of(at.kind)

        def term(place: Value) -> tuple[Value, Value]:
            pole, weight = (function.spread(array.number(place), lanes) for array in (self.poles, self.weights))
            share = weight / (self.apart(pole, origin) - at)
            return weight, share

        def one_side(sums: int) -> Callable[[Value, list[Value]], list[Value]]:
            def turn(place: Value, state: list[Value]) -> list[Value]:
                weight, share = term(place)
                found = list(state)
                found[sums] = found[sums] + weight * share
                found[sums + 2] = found[sums + 2] + share * share
                return found

            return turn

        def both(place: Value, state: list[Value]) -> list[Value]:
            weight, share = term(place)
            own = lane_numbers(function, kind, lanes) >= function.spread((place - first).as_(kind), lanes)
            parts = weight * share, share * share
            zero = share.like(0.0)
            return [
                state[0] + own.where(parts[0], zero),
                state[1] + own.where(zero, parts[0]),
                state[2] + own.where(parts[1], zero),
                state[3] + own.where(zero, parts[1]),
            ]

        zero = at.like(0.0)
        middle = (first + 1).minimum(self.count)
        last = (first + lanes).minimum(self.count)
        state = folded(function, 0, middle, [zero] * 4, one_side(0))
        state = folded(function, middle, last, state, both)
        return folded(function, last, self.count, state, one_side(1))


def lane_numbers(function: Function, kind: str, lanes: int) -> Value:
    """A vector of 0, 1, 2 …"""
    text = ", ".join(f"{kind} {literal(lane, kind)}" for lane in range(lanes))
    return Value(function, vector_of(kind, lanes), f"<{text}>")
