"""Eigenvalues and eigenvectors of real symmetric tridiagonal matrices by divide and conquer.

The matrix is torn into single numbers, and neighbours are merged, level by level: what tears them is a matrix of rank
1, so that the eigenvalues of a merged block are the roots of a secular equation (``secular.py``) and its eigenvectors
are a matrix product. Numbers that do not change (because they are coupled to nothing, or are as good as equal) are no
part of it. Vectors stay orthogonal, because they are those of the matrix that has the roots as they were rounded.

Sources: Cuppen, Numer. Math. 36 (1981); Gu and Eisenstat, SIAM J. Matrix Anal. Appl. 16 (1995); LAPACK "stedc",
"laed2", "laed3".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.matrices import folded, minus_products, steps
from hloforge.pipelines.codegen.algorithms.places import times, while_
from hloforge.pipelines.codegen.algorithms.secular import Secular
from hloforge.pipelines.codegen.algorithms.shared_out import Handed, SharedOut
from hloforge.pipelines.codegen.algorithms.vectors import total
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.kinds import single
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.values import I64, Number, Value, element_of
from hloforge.pipelines.codegen.nest_loops import Share

# Rows of a product that are computed together, and vectors of each.
_ROWS, _VECTORS = 4, 2
# Numbers that are kept of a merger: how many poles its equation has, how many are of the first block alone, and of the
# first one or both; how many numbers do not change; the pole that is looked at.
COUNT, FIRST, UPPER, KEPT, OPEN, FACTS = 0, 1, 2, 3, 4, 8
# Of the level that is at work: mergers, and which of two copies it reads.
_MERGERS, _PARITY, _STATE = 0, 1, 8
NONE = -1
# Arrays of numbers among the memory that is worked in.
_ARRAYS = 14


@dataclass(frozen=True)
class Memory:
    """The parts of the memory that it works in; indices are i64.

    Attributes:
        rows: eigenvectors, two copies.
        d: eigenvalues, two copies.
        e: what has torn the matrix.
        u: eigenvectors of the equations, one in a row.
        poles, weights, origins, offsets: of each equation and its roots.
        ordered_poles, ordered_weights, ordered_numbers, ordered_rows: the same by kinds of poles.
        z: the vector that couples two blocks.
        order: rows of a block by their eigenvalues.
        kinds: of rows: 1 or 3 for the block that they come from, 2 for both.
        taken, kept: rows that are poles, and others.
        targets, kept_targets: rows that they come to.
        facts, coupling: of each merger.
        state: of all.
        packed: rows of a product.
        lefts: vectors of the left side, two copies, and those of the equations, where there are two sides.
    """

    rows: Elements
    d: Elements
    e: Elements
    u: Elements
    poles: Elements
    weights: Elements
    origins: Elements
    offsets: Elements
    ordered_poles: Elements
    ordered_weights: Elements
    ordered_numbers: Elements
    coupling: Elements
    z: Elements
    packed: Elements
    ordered_rows: Array
    order: Array
    kinds: Array
    taken: Array
    kept: Array
    targets: Array
    kept_targets: Array
    facts: Array
    state: Array
    lefts: Sequence[Elements] = ()


@dataclass(frozen=True)
class Merger:
    """Two neighbouring blocks, ``low`` … ``middle`` … ``high``.

    Attributes:
        region: where its poles begin.
        facts: where its numbers begin.
        read, write: the rows' copies.
        sides: of each side the rows' copies and the equations' vectors.
        d, new_d: the eigenvalues' copies.
        begin, end: given a number of items, the first one of a share and the one after the last.
        is_first: whether the share has what is not cut into items.
    """

    number: Value
    low: Value
    middle: Value
    high: Value
    region: Value
    memory: Memory
    read: Elements
    write: Elements
    d: Elements
    new_d: Elements
    items: Callable[[Value], tuple[Number, Number]]
    is_first: Value
    sides: Sequence[tuple[Elements, Elements, Elements]]

    def fact(self, which: int) -> Value:
        return self.memory.facts.at(self.number * FACTS + which)

    def note(self, which: int, value: Value) -> None:
        self.memory.facts.put(value, self.number * FACTS + which)


@dataclass(frozen=True)
class TridiagonalEigenvectors(SharedOut):
    """Eigenvalues in ascending order and eigenvectors, one in a row, of ``batch`` matrices of n rows."""

    # Columns of a row behind the blocks' last one; and whether the poles are squares.
    _beyond: ClassVar[int] = 0
    _squared: ClassVar[bool] = False

    @property
    def _epsilon(self) -> float:
        return float(np.finfo("float32" if self.element == "f32" else "float64").eps)

    @property
    def _strip(self) -> int:
        return self.lanes * _VECTORS

    @property
    def _side(self) -> int:
        """Elements of a row: some lines of the cache, but no power of two of them."""
        padded = -(-self.n // self.lanes) * self.lanes + self._strip
        return padded if padded * self._size % 512 else padded + self.lanes

    @property
    def _levels(self) -> int:
        return (self.n - 1).bit_length()

    @property
    def _copy(self) -> int:
        """Elements of a copy of the rows; the row after the last is for what nobody reads."""
        return (self.n + 1) * self._side

    @property
    def _numbers(self) -> list[int]:
        regions = self.n + (self.n + 1) * 2 * self.lanes
        square = (self.n + _ROWS) * self._side
        return [
            *(2 * self._copy, 2 * self.n, self.n, square, *[regions] * 7),
            *(self.n, self.n + self.lanes, self.shares * self.n * self._strip),
        ]

    @property
    def _indices(self) -> list[int]:
        regions = self.n + (self.n + 1) * 2 * self.lanes
        return [regions, self.n, self.n, self.n, self.n, regions, self.n, self.n * FACTS, _STATE]

    @property
    def _parts(self) -> list[int]:
        return [*(count * self._size for count in self._numbers), *(count * 8 for count in self._indices)]

    def _memory(self, memory: Value) -> Memory:
        return self._of(self._pointers(memory))

    def _of(self, pointers: Sequence[Value]) -> Memory:
        numbers = [Elements(pointer, self.element) for pointer in pointers[:_ARRAYS]]
        return Memory(*numbers, *(Array(pointer, I64) for pointer in pointers[_ARRAYS:]))  # type: ignore[arg-type]

    def write(
        self,
        function: Function,
        d: Elements,
        e: Elements,
        values: Elements,
        vectors: Elements,
        memory: Value,
        hand: Handed,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops.

        Args:
            d, e: ``[b, n]``, the diagonals and those beside them.
            values, vectors: ``[b, n]``, ``[b, n, n]``.
            memory: ``scratch`` bytes.
            hand: shares parts of the work out.
            rows: the first of the matrices and the one after the last; None for all.
        """
        n = self.n
        first, last = rows or (0, self.batch)
        with steps(function, first, last) as number:
            self._tear(function, d.moved(times(number, n)), e.moved(times(number, n)), memory)
            self._merge(function, memory, hand)
            self._store(function, memory, values.moved(times(number, n)), vectors.moved(times(number, n * n)))

    def _merge(self, function: Function, memory: Value, hand: Handed) -> None:
        """All levels."""
        with steps(function, 0, self._levels) as level:
            room = self._memory(memory)
            shift = (level * -1) + (self._levels - 1)
            room.state.put(function.index(1) << shift, _MERGERS)
            room.state.put(level & 1, _PARITY)
            for phase in (self._deflate, self._solve, self._weigh, self._make, self._multiply, *self._more):
                hand(lambda share, phase=phase: self._each_merger(function, memory, share, phase))  # type: ignore[misc]

    @property
    def _more(self) -> Sequence[Callable[[Function, Merger], None]]:
        """Phases after the products."""
        return ()

    def _blocks(self, number: Value, mergers: Value) -> tuple[Value, Value, Value]:
        """Where the blocks of a merger begin, meet and end."""
        n = self.n
        middle = ((number * 2 + 1) * n).udiv(mergers * 2)
        return (number * n).udiv(mergers), middle, ((number + 1) * n).udiv(mergers)

    def _tear(self, function: Function, d: Elements, e: Elements, memory: Value) -> None:
        """Single numbers, each without what couples it to its neighbours."""
        room = self._memory(memory)
        with steps(function, 0, self.n) as place:
            room.d.put(d.at(place), place)
            room.e.put(e.at(place), place)
            room.rows.put(element_memory.constant(function, self.element, 1), place * (self._side + 1))
        with steps(function, 0, self.n - 1) as place:
            size = room.e.number(place).call("fabs")
            for at in (place, place + 1):
                room.d.put(room.d.number(at) - size, at)

    def _store(self, function: Function, memory: Value, values: Elements, vectors: Elements) -> None:
        room = self._memory(memory)
        rows = room.rows.moved(self._levels % 2 * self._copy)
        d = room.d.moved(self._levels % 2 * self.n)
        with steps(function, 0, self.n) as place:
            values.put(d.at(place), place)
            line, target = rows.moved(place * self._side), vectors.moved(place * self.n)
            function.copy(target.pointer, line.pointer, self.n * self._size)

    def _each_merger(
        self, function: Function, memory: Value, share: Share | None, phase: Callable[[Function, Merger], None]
    ) -> None:
        """A phase of a workgroup's mergers, or of its items of all of them where there are few."""
        room, n = self._memory(memory), self.n
        mergers, parity = room.state.at(_MERGERS), room.state.at(_PARITY)
        number, count = (share.number, share.count) if share is not None else (function.index(0), 1)
        are_whole = mergers.compare("sge", count)
        first = are_whole.where((number * mergers).udiv(count), 0)
        last = are_whole.where(((number + 1) * mergers).udiv(count), mergers)
        piece, pieces = are_whole.where(function.index(0), number), are_whole.where(function.index(1), count)

        def items(of: Value) -> tuple[Number, Number]:
            return (of * piece).udiv(pieces), (of * (piece + 1)).udiv(pieces)

        read, write = (room.rows.moved(which * self._copy) for which in (parity, parity ^ 1))
        d, new_d = (room.d.moved(which * n) for which in (parity, parity ^ 1))
        with steps(function, first, last) as own:
            low, middle, high = self._blocks(own, mergers)
            region = low + own * (2 * self.lanes)
            is_first = are_whole | number.compare("eq", own)
            sides = [(read, write, room.u)]
            if room.lefts:
                copies = [room.lefts[0].moved(which * self._copy) for which in (parity, parity ^ 1)]
                sides.append((copies[0], copies[1], room.lefts[1]))
            merger = Merger(own, low, middle, high, region, room, read, write, d, new_d, items, is_first, sides)
            phase(function, merger)

    # Which numbers change

    def _deflate(self, function: Function, own: Merger) -> None:
        """Find the numbers that do not change, and the poles of the equation."""
        with function.if_(own.is_first):
            self._clear(function, own)
            for which in (COUNT, FIRST, UPPER, KEPT):
                own.note(which, function.index(0))
            own.note(OPEN, function.index(NONE))
            is_pair = own.low.compare("slt", own.middle) & own.middle.compare("slt", own.high)
            self._sort(function, own, own.low, own.middle)
            with function.if_(is_pair):
                largest = self._couple(function, own)
                coupling = own.memory.coupling.number(own.number)
                limit = self._limit(own, [largest], [own.low, own.middle - 1, own.middle, own.high - 1])
                is_coupled = (coupling * largest) > limit
                with steps(function, own.low, own.high) as place:
                    row = own.memory.order.at(place)
                    small = (coupling * own.memory.z.number(row).call("fabs")) <= limit
                    self._choose(function, own, row, (is_coupled ^ 1) | small, limit)
                self._end(function, own)
            with function.if_(is_pair ^ 1), steps(function, own.low, own.high) as place:
                self._keep(function, own, own.memory.order.at(place))

    def _limit(self, own: Merger, numbers: Sequence[Value], places: Sequence[Value]) -> Value:
        """What is small beside numbers and eigenvalues."""
        sizes = [*numbers, *(own.d.number(place).call("fabs") for place in places)]
        largest = sizes[0]
        for size in sizes[1:]:
            largest = largest.call("maxnum", size)
        return largest * (8 * self._epsilon)

    def _choose(self, function: Function, own: Merger, row: Value, is_kept: Value, limit: Value) -> None:
        with function.if_(is_kept):
            self._keep(function, own, row)
        with function.if_(is_kept ^ 1):
            self._meet(function, own, row, limit)

    def _end(self, function: Function, own: Merger) -> None:
        """Take the last pole, and put all in order."""
        self._take_last(function, own)
        self._by_kinds(function, own)

    def _take_last(self, function: Function, own: Merger) -> None:
        last = own.fact(OPEN)
        with function.if_(last.compare("sge", 0)):
            self._take(own, last)

    def _number(self, function: Function, number: float) -> Value:
        return single(element_memory.constant(function, self.element, number))

    def _clear(self, function: Function, own: Merger) -> None:
        """Zeros beside the blocks, and kinds of rows."""
        self._clear_side(function, own.read, (own.low, own.middle), (own.middle, own.high))
        self._clear_side(function, own.read, (own.middle, own.high), (own.low, own.middle))
        self._note_kinds(function, own, own.middle)

    def _clear_side(
        self, function: Function, array: Elements, rows: tuple[Value, Value], columns: tuple[Value, Value]
    ) -> None:
        with steps(function, *rows) as row:
            line = array.moved(row * self._side + columns[0])
            function.clear(line.pointer, (columns[1] - columns[0]) * self._size)

    def _note_kinds(self, function: Function, own: Merger, second: Value) -> None:
        for kind, rows in ((1, (own.low, own.middle)), (3, (second, own.high))):
            with steps(function, *rows) as row:
                own.memory.kinds.put(function.index(kind), row)

    def _sort(self, function: Function, own: Merger, start: Value, second: Value) -> None:
        """The rows by their eigenvalues, of which both blocks' are in order.

        Args:
            start: where the first of them is to be noted.
            second: the first row of the second block.
        """

        def turn(place: Value, state: list[Value]) -> list[Value]:
            one, other = state
            is_left = other.compare("sge", own.high)
            both = (is_left ^ 1) & own.middle.compare("sgt", one)
            # Beyond the end of a block any number is read, and not used.
            at = [place_.minimum(self.n - 1) for place_ in (one, other)]
            is_less = own.d.number(at[0]) <= own.d.number(at[1])
            first = is_left | (both & is_less)
            own.memory.order.put(first.where(one, other), place)
            return [first.where(one + 1, one), first.where(other, other + 1)]

        folded(function, start, own.high, [own.low, second], turn)

    def _couple(self, function: Function, own: Merger) -> Value:
        """What couples the blocks, as a vector of size 1 and its weight; the largest of the vector's numbers."""
        e, side = own.memory.e.number(own.middle - 1), self._side
        half = float(np.sqrt(0.5))
        own.memory.coupling.put(e.call("fabs") * 2.0, own.number)
        sign = (e < 0.0).where(e.like(-half), half)
        found = self._number(function, 0)
        for rows, column, factor in (
            ((own.low, own.middle), own.middle - 1, e.like(half)),
            ((own.middle, own.high), own.middle, sign),
        ):

            def turn(row: Value, state: list[Value], column: Value = column, factor: Value = factor) -> list[Value]:
                z = own.read.number(row * side + column) * factor
                own.memory.z.put(z, row)
                return [state[0].call("maxnum", z.call("fabs"))]

            (found,) = folded(function, *rows, [found], turn)
        return found

    def _keep(self, function: Function, own: Merger, row: Value) -> None:
        """Put a row to those that do not change, which are in the order of their eigenvalues."""
        count, value = own.fact(KEPT), own.d.number(row)

        def is_larger(state: list[Value]) -> Value:
            before = own.memory.kept.at(own.low + state[0].maximum(1) - 1)
            return state[0].compare("sgt", 0) & (own.d.number(before.maximum(0).minimum(self.n - 1)) > value)

        def move(state: list[Value]) -> list[Value]:
            own.memory.kept.put(own.memory.kept.at(own.low + state[0] - 1), own.low + state[0])
            return [state[0] - 1]

        (place,) = while_(function, [count], is_larger, move)
        own.memory.kept.put(row, own.low + place)
        own.note(KEPT, count + 1)

    def _take(self, own: Merger, row: Value) -> None:
        """Let a row be a pole."""
        count, room = own.fact(COUNT), own.memory
        room.taken.put(row, own.low + count)
        room.poles.put(own.d.at(row), own.region + count)
        room.weights.put(room.z.at(row), own.region + count)
        own.note(COUNT, count + 1)

    def _meet(self, function: Function, own: Merger, row: Value, limit: Value) -> None:
        """Compare a row with the one before, and rotate both if one needs not change then."""
        before = own.fact(OPEN)
        with function.if_(before.compare("sge", 0)):
            z, d = own.memory.z, own.d
            one, other = z.number(before), z.number(row)
            size = (one * one + other * other).call("sqrt")
            c, s = other / size, -(one / size)
            values = d.number(before), d.number(row)
            is_close = self._is_close(values, c, s, limit)
            with function.if_(is_close):
                z.put(size, row)
                z.put(self._number(function, 0), before)
                kinds = own.memory.kinds
                is_same = kinds.at(before).compare("eq", kinds.at(row))
                kinds.put(is_same.where(kinds.at(row), 2), row)
                for side, _, _ in own.sides:
                    self._rotate(function, own, side, (before, row), (c, s))
                self._change(own, (before, row), values, (c, s))
                self._keep(function, own, before)
            with function.if_(is_close ^ 1):
                self._take(own, before)
        own.note(OPEN, row)

    def _is_close(self, values: tuple[Value, Value], c: Value, s: Value, limit: Value) -> Value:
        return ((values[1] - values[0]) * c * s).call("fabs") <= limit

    def _change(
        self, own: Merger, rows: tuple[Value, Value], values: tuple[Value, Value], turn: tuple[Value, Value]
    ) -> None:
        """Eigenvalues after a rotation."""
        c, s = turn
        own.d.put(values[0] * c * c + values[1] * s * s, rows[0])
        own.d.put(values[0] * s * s + values[1] * c * c, rows[1])

    def _rotate(
        self,
        function: Function,
        own: Merger,
        array: Elements,
        rows: tuple[Value, Value],
        turn: tuple[Value, Value],
    ) -> None:
        """Two rows of vectors rotated."""
        lanes = self.lanes
        c, s = (function.spread(value, lanes) for value in turn)
        with steps(function, own.low, own.high + self._beyond, lanes) as column:
            at = [row * self._side + column for row in rows]
            first, second = (single(array.at(place, lanes)) for place in at)
            array.put(c * first + s * second, at[0])
            array.put(c * second - s * first, at[1])

    def _by_kinds(self, function: Function, own: Merger) -> None:
        """The poles by kinds, and one more than there are."""
        room, count = own.memory, own.fact(COUNT)
        coupling = room.coupling.number(own.number)

        def turn(number: Value, state: list[Value]) -> list[Value]:
            kind = room.kinds.at(room.taken.at(own.low + number))
            weight = room.weights.number(own.region + number)
            ones = [kind.compare("eq", which).as_(I64, signed=False) for which in (1, 2)]
            return [state[0] + ones[0], state[1] + ones[1], state[2] + weight * weight]

        zero = function.index(0)
        first, both, size = folded(function, 0, count, [zero, zero, self._number(function, 0)], turn)
        own.note(FIRST, first)
        own.note(UPPER, first + both)

        def place(number: Value, state: list[Value]) -> list[Value]:
            row = room.taken.at(own.low + number)
            kind = room.kinds.at(row)
            flags = [kind.compare("eq", which) for which in (1, 2, 3)]
            at = flags[0].where(state[0], flags[1].where(state[1], state[2])) + own.region
            room.ordered_poles.put(room.poles.at(own.region + number), at)
            room.ordered_weights.put(room.weights.at(own.region + number), at)
            room.ordered_numbers.put(number.as_(element_of(size.kind)), at)
            room.ordered_rows.put(row, at)
            return [value + flag.as_(I64, signed=False) for value, flag in zip(state, flags, strict=True)]

        folded(function, 0, count, [zero, first, first + both], place)
        last = room.poles.number(own.region + (count - 1).maximum(0))
        # Weights that are small beside the last pole leave its root there, as far as its digits tell.
        least = last + last.call("fabs") * (4 * self._epsilon)
        after = self._after(last, coupling * size * 2.0).call("maxnum", least)
        with steps(function, count, count + self.lanes + 1) as at:
            for poles, weights in ((room.poles, room.weights), (room.ordered_poles, room.ordered_weights)):
                poles.put(after, own.region + at)
                weights.put(self._number(function, 0), own.region + at)
            room.ordered_numbers.put(self._number(function, -1), own.region + at)

    def _after(self, pole: Value, distance: Value) -> Value:
        """A pole behind the last one."""
        return pole + distance

    # The equation

    def _equation(self, function: Function, own: Merger) -> Secular:
        room, count = own.memory, own.fact(COUNT)
        poles, weights = room.poles.moved(own.region), room.weights.moved(own.region)
        return Secular(poles, weights, count, 1.0 / room.coupling.number(own.number), self.lanes, self._squared)

    def _root(self, origin: Value, offset: Value) -> Value:
        """An eigenvalue."""
        return origin + offset

    def _solve(self, function: Function, own: Merger) -> None:
        """The roots, and which row each is to be in."""
        room, count, lanes = own.memory, own.fact(COUNT), self.lanes
        equation = self._equation(function, own)
        with steps(function, *own.items((count + lanes - 1).udiv(lanes))) as group:
            origin, offset = equation.roots(group * lanes)
            for target, value in ((room.origins, origin), (room.offsets, offset)):
                target.put(value, own.region + group * lanes)

    def _weigh(self, function: Function, own: Merger) -> None:
        """Weights for which the roots as they are rounded are exact, and the rows of new vectors."""
        room, count, lanes = own.memory, own.fact(COUNT), self.lanes
        equation = self._equation(function, own)
        with function.if_(own.is_first):
            self._place(function, own)
        with steps(function, *own.items((count + lanes - 1).udiv(lanes))) as group:
            at = own.region + group * lanes
            pole, number, weight = (
                single(array.at(at, lanes))
                for array in (room.ordered_poles, room.ordered_numbers, room.ordered_weights)
            )

            def turn(place: Value, state: list[Value]) -> list[Value]:
                origin, offset, other = (
                    function.spread(array.number(own.region + place), lanes)
                    for array in (room.origins, room.offsets, room.poles)
                )
                is_own = number.equals(function.spread(place.as_(element_of(number.kind)), lanes))
                apart = is_own.where(number.like(1.0), equation.apart(pole, other))
                return [state[0] * ((equation.apart(pole, origin) - offset) / apart)]

            (product,) = folded(function, 0, count, [pole.like(1.0)], turn)
            found = product.call("fabs").call("sqrt").call("copysign", weight)
            room.ordered_weights.put(weight.equals(0.0).where(weight, found), at)

    def _place(self, function: Function, own: Merger) -> None:
        """Merge the roots, whose rounding may have put them out of order, and the numbers that do not change."""
        room, count, kept = own.memory, own.fact(COUNT), own.fact(KEPT)

        def turn(place: Value, state: list[Value]) -> list[Value]:
            root, other, before = state
            at = own.region + root
            row = room.kept.at(own.low + other.minimum((kept - 1).maximum(0))).maximum(0).minimum(self.n - 1)
            value = self._root(room.origins.number(at), room.offsets.number(at))
            still = own.d.number(row)
            has_root, has_other = root.compare("slt", count), other.compare("slt", kept)
            is_root = has_root & ((has_other ^ 1) | (value <= still))
            found = is_root.where(value, still).call("maxnum", before)
            own.new_d.put(found, place)
            with function.if_(is_root):
                room.targets.put(place, at)
            with function.if_(is_root ^ 1):
                room.kept_targets.put(place, own.low + other)
            return [is_root.where(root + 1, root), is_root.where(other, other + 1), found]

        least = self._number(function, -np.inf)
        folded(function, own.low, own.high, [function.index(0), function.index(0), least], turn)
        with steps(function, count, count + _ROWS) as place:
            room.targets.put(function.index(self.n), own.region + place)

    # Vectors

    def _make(self, function: Function, own: Merger) -> None:
        """The vectors of the equation, and the rows that do not change."""
        room, count, side = own.memory, own.fact(COUNT), self._side
        size = own.high - own.low
        with steps(function, *own.items(size)) as item:
            with function.if_(item.compare("slt", count)):
                self._vectors_at(function, own, item)
            with function.if_(item.compare("sge", count)):
                at = own.low + (item - count)
                for read, write, _ in own.sides:
                    source = read.moved(room.kept.at(at) * side + own.low)
                    target = write.moved(room.kept_targets.at(at) * side + own.low)
                    function.copy(target.pointer, source.pointer, (size + self._beyond) * self._size)

    def _vectors_at(self, function: Function, own: Merger, item: Value) -> None:
        """The vector of a root, of each side."""
        room, lanes = own.memory, self.lanes
        at = own.region + item
        origin, offset = (function.spread(array.number(at), lanes) for array in (room.origins, room.offsets))
        lines = [u.moved((own.low + item) * self._side + own.low) for _, _, u in own.sides]
        equation = self._equation(function, own)
        # Relative to the number of the nearest pole, whose distance may be too small for its inverse.
        near = offset.call("fabs")
        far = origin.equals(0.0).where(near.like(1.0), near / origin)

        def turn(place: Value, state: list[Value]) -> list[Value]:
            pole, weight, number = (
                single(array.at(own.region + place, lanes))
                for array in (room.ordered_poles, room.ordered_weights, room.ordered_numbers)
            )
            distance = equation.apart(pole, origin) - offset
            right = weight * (near / distance)
            left = number.equals(0.0).where(-far, pole * weight * (far / distance))
            found = [right, left][: len(lines)]
            for line, value in zip(lines, found, strict=True):
                line.put(value, place)
            return [before + value * value for before, value in zip(state, found, strict=True)]

        count = own.fact(COUNT)
        squares = folded(function, 0, count, [origin.like(0.0)] * len(lines), turn, lanes)
        for line, square in zip(lines, squares, strict=True):
            scale = function.spread(1.0 / total(square).call("sqrt"), lanes)
            with steps(function, 0, count, lanes) as place:
                line.put(single(line.at(place, lanes)) * scale, place)

    def _multiply(self, function: Function, own: Merger) -> None:
        """The new rows: the equation's vectors times the rows of the poles, without the zeros beside blocks."""
        self._products(function, own, own.sides[0], (own.low, own.middle), (own.middle, own.high))

    def _products(
        self,
        function: Function,
        own: Merger,
        side: tuple[Elements, Elements, Elements],
        left: tuple[Value, Value],
        right: tuple[Value, Value],
    ) -> None:
        """The new rows of a side.

        Args:
            left, right: the columns of both blocks.
        """
        count, strip = own.fact(COUNT), self._strip
        first, upper = own.fact(FIRST), own.fact(UPPER)
        lefts, rights = ((end - begin + (strip - 1)).udiv(strip) for begin, end in (left, right))
        begin, end = own.items(lefts + rights)
        packed = own.memory.packed.moved(self._pack(function, own))
        end = count.compare("sgt", 0).where(end, begin)
        with steps(function, begin, end) as item:
            is_left = item.compare("slt", lefts)
            # The last strip of the first block overlaps the one before, not the second block.
            last = (left[1] - strip).maximum(left[0])
            column = is_left.where((left[0] + item * strip).minimum(last), right[0] + (item - lefts) * strip)
            terms = is_left.where(function.index(0), first), is_left.where(upper, count)
            self._product(function, own, side, packed, column, terms)

    def _pack(self, function: Function, own: Merger) -> Number:
        """Where a workgroup's packed rows begin."""
        if self.shares == 1:
            return 0
        # Where mergers are whole, workgroups have no number of their own: blocks apart have rows apart.
        begin, _ = own.items(function.index(self.shares))
        mergers = own.memory.state.at(_MERGERS)
        is_whole = mergers.compare("sge", self.shares)
        return is_whole.where(own.low * self._strip, begin * (self.n * self._strip))

    def _product(
        self,
        function: Function,
        own: Merger,
        arrays: tuple[Elements, Elements, Elements],
        packed: Elements,
        column: Value,
        terms: tuple[Value, Value],
    ) -> None:
        room, lanes, side = own.memory, self.lanes, self._side
        read, write, u = arrays
        begin, end = terms
        with steps(function, begin, end) as term:
            source = room.ordered_rows.at(own.region + term) * side + column
            for place in range(0, self._strip, lanes):
                packed.put(read.at(source + place, lanes), (term - begin) * self._strip + place)
        zero = single(element_memory.constant(function, self.element, 0))
        with steps(function, 0, own.fact(COUNT), _ROWS) as row:
            lines = [u.moved((own.low + row + place) * side + own.low) for place in range(_ROWS)]
            found = minus_products(
                function,
                [[function.spread(zero, lanes)] * _VECTORS] * _ROWS,
                (begin, end),
                lambda place, number: lines[place].at(number),
                lambda number, place: packed.at((number - begin) * self._strip + place * lanes, lanes),
                most=self.n,
            )
            for place, line in enumerate(found):
                target = room.targets.at(own.region + row + place) * side + column
                for at, element in enumerate(line):
                    write.put(element, target + at * lanes)
