"""Stable sorts of records by any comparator: insertion into short runs, which are merged in pairs.

Whatever the comparator says, each record is in the result once. Source: D. E. Knuth, "The Art of Computer
Programming", volume 3, 5.2.1 and 5.2.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.algorithms.arrays import Element, Elements, put_record, record
from hloforge.pipelines.codegen.algorithms.places import both, each, fold, while_
from hloforge.pipelines.codegen.algorithms.scratch import InParts
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I64, Value

# Whether a record is before another one.
Less = Callable[[list[Element], list[Element]], Value]
# Records of a run that is sorted by insertion.
_RUN = 16


@dataclass(frozen=True)
class MergeSort(InParts):
    """A sort of one row of ``n`` records, each an element of several arrays."""

    n: int
    elements: tuple[str, ...]

    @property
    def _parts(self) -> list[int]:
        """Each array twice."""
        return [element_memory.size(element) * self.n for element in self.elements] * 2

    def write(
        self, function: Function, memory: Value, read: Callable[[Value], list[Element]], less: Less
    ) -> list[Elements]:
        """Write the sort.

        Args:
            memory: ``scratch`` bytes.
            read: the record at a place before the sort.

        Returns:
            the sorted arrays.
        """
        pointers = self._pointers(memory)
        self._insert(function, self._arrays(pointers), read, less)
        if self.n <= _RUN:
            return self._arrays(pointers)
        levels = (-(-self.n // _RUN) - 1).bit_length()

        def merge_level(_: Value, state: list[Value]) -> list[Value]:
            *current, width = state
            half = len(self.elements)
            sources, targets = self._arrays(current), self._arrays(current[half:])
            with each(function, 0, function.index(self.n - 1).udiv(width << 1) + 1) as number:
                start = number * (width << 1)
                middle = (start + width).minimum(self.n)
                end = (middle + width).minimum(self.n)
                self._merge(function, sources, targets, (start, middle, end), less)
            return [*current[half:], *current[:half], width << 1]

        return self._arrays(fold(function, 0, levels, [*pointers, function.index(_RUN)], merge_level))

    def _arrays(self, pointers: Sequence[Value]) -> list[Elements]:
        return [Elements(pointer, element) for pointer, element in zip(pointers, self.elements, strict=False)]

    def _insert(
        self,
        function: Function,
        arrays: Sequence[Elements],
        read: Callable[[Value], list[Element]],
        less: Less,
    ) -> None:
        """Copy the records into sorted runs."""
        with each(function, 0, self.n) as place:
            own, start = read(place), place & -_RUN

            def goes_before(state: list[Value]) -> Value:
                (gap,) = state
                return both(function, gap > start, lambda: less(own, record(arrays, gap - 1)))

            def move_up(state: list[Value]) -> list[Value]:
                (gap,) = state
                put_record(arrays, gap, record(arrays, gap - 1))
                return [gap - 1]

            (gap,) = while_(function, [place], goes_before, move_up)
            put_record(arrays, gap, own)

    def _merge(
        self,
        function: Function,
        sources: Sequence[Elements],
        targets: Sequence[Elements],
        borders: tuple[Value, Value, Value],
        less: Less,
    ) -> None:
        """Merge two runs that follow each other."""
        start, middle, end = borders

        def both_left(state: list[Value]) -> Value:
            left, right, _ = state
            return (left < middle) & (right < end)

        def take(state: list[Value]) -> list[Value]:
            # Without branches, which would be guessed wrong half of the time.
            left, right, into = state
            is_right = less(record(sources, right), record(sources, left))
            put_record(targets, into, record(sources, is_right.where(right, left)))
            step = is_right.as_(I64, signed=False)
            return [left + 1 - step, right + step, into + 1]

        left, right, into = while_(function, [start, middle, start], both_left, take)
        for first, last in ((left, middle), (right, end)):

            def copy(place: Value, target: list[Value]) -> list[Value]:
                put_record(targets, target[0], record(sources, place))
                return [target[0] + 1]

            (into,) = fold(function, first, last, [into], copy)
