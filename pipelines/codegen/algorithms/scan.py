"""Cumulative computations along one dimension: each result is what its predecessor and one more element give.

Source: StableHLO spec "reduce_window" (a window of the whole dimension, padded on one side). Along the last dimension
the lanes of a vector are combined in log2(lanes) steps, which needs a computation that is associative, as the
specification demands. Source: G. Blelloch, "Prefix sums and their applications" (1990).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hloforge.pipelines.codegen.algorithms.arrays import Combine, Element, Elements, put_record, record
from hloforge.pipelines.codegen.algorithms.places import each, flat, fold, minus, plus
from hloforge.pipelines.codegen.algorithms.vectors import chosen, flattened, lane, like, mapped, shuffled, spread
from hloforge.pipelines.codegen.elements import memory
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Number, Value

# Elements, or vectors, that an accumulator adds: fewer than of a sum (``chains.py``), because the error of a running
# sum is that of all sums in it, of which those of numbers of both signs are nearer to 0 than their terms.
_LONGEST = 32
# Columns of which sums are kept at once.
_COLUMNS = 512


@dataclass(frozen=True)
class Scan:
    """A cumulative computation of arrays ``[outer, n, inner]`` along n.

    Attributes:
        reverse: whether the last element is the first one of the computation.
        lanes: of vectors that the computation takes as well; 0 if it takes single elements only.
        adds: whether it adds floats, in chains of limited length: each part of the dimension has sums of its own, to
            which what was before the part is added once (``chains.py``).
        skipped: elements after these n, in the order of the computation, that no result holds.
        leading: results before the first element's, which are what is before it.
    """

    outer: int
    n: int
    inner: int
    reverse: bool = False
    lanes: int = 0
    adds: bool = False
    skipped: int = 0
    leading: int = 0

    def _parts(self, weight: int) -> list[int]:
        """Elements of the parts of each level, the shortest first, where so many are one addition."""
        found: list[int] = []
        part = _LONGEST * weight
        while self.adds and part < self.n:
            found.append(part)
            part *= _LONGEST
        return found

    def write(
        self,
        function: Function,
        sources: Sequence[Elements],
        start: Sequence[Element],
        targets: Sequence[Elements],
        combine: Combine,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops.

        Args:
            sources: the operands.
            start: the elements before the first.
            targets: the results, in other memory.
            combine: of the elements so far and those that follow them in memory, or of those that follow and those so
                far if ``reverse``, so that their order is that of memory.
            rows: the first of the ``outer`` parts and the one after the last; None for all.
        """
        if not self.outer * (self.leading + self.n) * self.inner:
            return
        first, last = rows or (0, self.outer)
        with each(function, first, last) as row:
            if self.leading:
                with each(function, 0, self.leading * self.inner) as place:
                    begin = self._result(row, -1 if self.reverse else -self.leading, 0)
                    put_record(targets, plus(begin, place), start)
            if not self.n:
                pass
            elif self.inner > 1 and self._parts(1):
                self._columns_in_parts(function, sources, start, targets, combine, row)
            elif self.inner > 1:
                self._columns(function, sources, start, targets, combine, row)
            else:
                self._row(function, sources, start, targets, combine, row)

    def _joined(self, combine: Combine, so_far: Sequence[Element], element: Sequence[Element]) -> list[Element]:
        return list(combine(list(element), list(so_far)) if self.reverse else combine(list(so_far), list(element)))

    def _place(self, row: Number, number: Number, column: Number) -> Number:
        """Where the element is that is number ``number`` of the computation."""
        size = self.n + self.skipped
        at = minus(size - 1, number) if self.reverse else number
        return flat([row, at, column], [size * self.inner, self.inner, 1])

    def _result(self, row: Number, number: Number, column: Number) -> Number:
        """Where the result is that ends with this element."""
        at = minus(self.n - 1, number) if self.reverse else plus(number, self.leading)
        return flat([row, at, column], [(self.n + self.leading) * self.inner, self.inner, 1])

    def _columns(
        self,
        function: Function,
        sources: Sequence[Elements],
        start: Sequence[Element],
        targets: Sequence[Elements],
        combine: Combine,
        row: Value,
    ) -> None:
        """Row by row of the inner dimension, which LLVM makes vectors of."""
        with each(function, 0, self.inner) as column:
            first = record(sources, self._place(row, 0, column))
            put_record(targets, self._result(row, 0, column), self._joined(combine, start, first))
        with each(function, 1, self.n) as number, each(function, 0, self.inner) as column:
            place, element = self._result(row, number, column), record(sources, self._place(row, number, column))
            before = plus(place, self.inner if self.reverse else -self.inner)
            put_record(targets, place, self._joined(combine, record(targets, before), element))

    def _columns_in_parts(
        self,
        function: Function,
        sources: Sequence[Elements],
        start: Sequence[Element],
        targets: Sequence[Elements],
        combine: Combine,
        row: Value,
    ) -> None:
        """Some columns at a time, with a line of sums for each level of parts, and one of all that is before a part."""
        parts = self._parts(1)
        width = min(self.inner, _COLUMNS)
        types = [target.element for target in targets]
        sums, before = [_line(function, types, width) for _ in range(len(parts) + 1)], _line(function, types, width)
        zeros = [_neutral(element) for element in start]
        with each(function, 0, self.inner, width) as first:
            count: Number = width if self.inner % width == 0 else (function.index(self.inner) - first).minimum(width)

            def part(level: int, begin: Number, end: Number) -> None:
                with each(function, 0, count) as column:
                    put_record(sums[level], column, zeros)
                if level > 0:
                    step = parts[level - 1]
                    with each(function, begin, end, step) as number:
                        part(level - 1, number, (number + step).minimum(end))
                        with each(function, 0, count) as column:
                            total = self._joined(combine, record(sums[level], column), record(sums[level - 1], column))
                            put_record(sums[level], column, total)
                    return
                with each(function, 0, count) as column:
                    reached = list(start)
                    for line in reversed(sums[1:]):
                        reached = self._joined(combine, reached, record(line, column))
                    put_record(before, column, reached)
                with each(function, begin, end) as number, each(function, 0, count) as column:
                    place = self._place(row, number, first + column)
                    own = self._joined(combine, record(sums[0], column), record(sources, place))
                    put_record(sums[0], column, own)
                    place = self._result(row, number, first + column)
                    put_record(targets, place, self._joined(combine, record(before, column), own))

            part(len(parts), 0, self.n)

    def _row(
        self,
        function: Function,
        sources: Sequence[Elements],
        start: Sequence[Element],
        targets: Sequence[Elements],
        combine: Combine,
        row: Value,
    ) -> None:
        """Whole vectors as long as there are, then single elements."""
        lanes = self.lanes
        whole = self.n // lanes * lanes if lanes else 0

        def block(number: Value, values: list[Value], before: Sequence[Element]) -> list[Value]:
            so_far = like(values, start)
            # The least place of the block: its last element comes first if the order is reversed.
            number = number + (lanes - 1) if self.reverse else number
            place = self._place(row, number, 0)
            found = self._within(function, [source.at(place, lanes) for source in sources], combine)
            found = self._joined(combine, [spread(element, lanes) for element in so_far], found)
            put(self._result(row, number, 0), [spread(element, lanes) for element in before], found)
            return flattened([lane(element, 0 if self.reverse else lanes - 1) for element in found])

        def single(number: Value, values: list[Value], before: Sequence[Element]) -> list[Value]:
            place = self._place(row, number, 0)
            found = self._joined(combine, like(values, start), record(sources, place))
            put(self._result(row, number, 0), before, found)
            return flattened(found)

        def put(place: Number, before: Sequence[Element], found: list[Element]) -> None:
            put_record(targets, place, self._joined(combine, before, found) if before else found)

        def part(level: int, begin: Number, end: Number, before: Sequence[Element], vectors: bool) -> list[Element]:
            """What the elements of a part give, of which results are with what was before it."""
            neutral = flattened([_neutral(element) for element in start])
            if level == 0:
                values = neutral if before else flattened(start)
                body = partial(block if vectors else single, before=before)
                return like(fold(function, begin, end, values, body, lanes if vectors else 1), start)
            step = parts[level - 1]

            def inner(number: Value, values: list[Value]) -> list[Value]:
                own = like(values, start)
                reached = self._joined(combine, before or start, own)
                made = part(level - 1, number, (number + step).minimum(end), reached, vectors)
                return flattened(self._joined(combine, own, made))

            return like(fold(function, begin, end, neutral, inner, step), start)

        parts = self._parts(lanes if whole else 1)
        reached = list(start)
        if whole:
            made = part(len(parts), 0, whole, [], True)
            reached = self._joined(combine, start, made) if parts else made
        if whole < self.n:
            start = reached
            rest = self._parts(1) if not whole else []
            part(len(rest), whole, self.n, [], False)

    def _within(self, function: Function, elements: Sequence[Element], combine: Combine) -> list[Element]:
        """The computation of each lane's element and those before it in the vector."""
        found, step = list(elements), 1
        while step < self.lanes:
            moved = [place + step if self.reverse else place - step for place in range(self.lanes)]
            has_before = [0 <= place < self.lanes for place in moved]
            before = [shuffled(element, [max(0, min(place, self.lanes - 1)) for place in moved]) for element in found]
            joined = self._joined(combine, before, found)
            found = [chosen(function, has_before, yes, no) for yes, no in zip(joined, found, strict=True)]
            step *= 2
        return found


def _neutral(element: Element) -> Element:
    """What changes no number that it is added to."""
    return mapped(element, lambda value: value.function.constant(-0.0, value.kind))


def _line(function: Function, types: Sequence[str], length: int) -> list[Elements]:
    return [Elements(function.stack(f"[{memory.size(one)} x i8]", length), one) for one in types]
