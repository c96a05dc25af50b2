"""Reductions of long windows along one dimension, three steps an element whatever their length.

A window lies in two blocks of its own length: it is the suffix of one and the prefix of the next. Sums so computed do
not cancel. Source: M. van Herk, "A fast algorithm for local minimum and maximum filters" (1992). A window with elements
d apart sees every d-th element: it moves over the rows of an array of d columns, which is the same memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from hloforge.pipelines.codegen.algorithms.arrays import Combine, Element, Elements, put_record, record
from hloforge.pipelines.codegen.algorithms.places import each, plus, times
from hloforge.pipelines.codegen.algorithms.scan import Scan
from hloforge.pipelines.codegen.algorithms.scratch import InParts
from hloforge.pipelines.codegen.algorithms.windows import Window
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.comparisons import select
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value


@dataclass(frozen=True)
class WindowBlocks(InParts):
    """Windows along the n of ``[outer, n, inner]``.

    Attributes:
        elements: the type of each operand's elements.
        lanes: of vectors that the computation takes as well; 0 if it takes single elements only.
        adds: whether the computation adds floats, as of ``Scan``.
    """

    outer: int
    window: Window
    inner: int
    elements: tuple[str, ...]
    lanes: int
    adds: bool = False

    @classmethod
    def of(cls, dims: Sequence[Window], elements: tuple[str, ...], lanes: int, adds: bool) -> WindowBlocks:
        """The windows of several dimensions, of which one is no single element."""
        (place,) = (place for place, dim in enumerate(dims) if not dim.is_plain)
        before, after = prod(dim.n for dim in dims[:place]), prod(dim.n for dim in dims[place + 1 :])
        return cls(before, dims[place], after, elements, lanes, adds)

    @property
    def _row(self) -> int:
        """Elements between two of a window."""
        return self.window.dilation * self.inner

    @property
    def _blocks(self) -> int:
        return -(-self.window.padded // (self.window.size * self.window.dilation))

    @property
    def _length(self) -> int:
        return self._blocks * self.window.size * self._row

    @property
    def _parts(self) -> list[int]:
        """The sizes of the padded arrays, of the prefixes and of the suffixes."""
        if self.window.is_cumulative:
            return []
        return [self._length * element_memory.size(element) for element in self.elements] * 3

    def write(
        self,
        function: Function,
        sources: Sequence[Elements],
        start: Sequence[Element],
        targets: Sequence[Elements],
        combine: Combine,
        memory: Value,
    ) -> None:
        """Write the loops; the arguments are those of ``ReduceWindow.write``."""
        window = self.window
        if window.is_cumulative:
            first, last = sorted((window.low, window.high))
            scan = Scan(
                self.outer, window.n + first, self.inner, window.is_backward, self.lanes, self.adds,
                skipped=-first, leading=last - (window.n - 1),
            )  # fmt: skip
            scan.write(function, sources, start, targets, combine)
            return
        pointers, count = self._pointers(memory), len(self.elements)
        arrays = [Elements(p, element) for p, element in zip(pointers, self.elements * 3, strict=True)]
        copies, prefixes, suffixes = arrays[:count], arrays[count : 2 * count], arrays[2 * count :]
        with each(function, 0, self.outer) as row:
            own = [array.moved(times(row, window.n * self.inner)) for array in sources]
            into = [array.moved(times(row, window.count * self.inner)) for array in targets]
            self._pad(function, own, start, copies)
            for reverse, found in ((False, prefixes), (True, suffixes)):
                scan = Scan(self._blocks, window.size, self._row, reverse, self.lanes, self.adds)
                scan.write(function, copies, start, found, combine)
            if window.stride == 1:
                self._join(function, prefixes, suffixes, into, combine)
            else:
                self._join_some(function, prefixes, suffixes, into, combine)

    def _pad(
        self, function: Function, sources: Sequence[Elements], start: Sequence[Element], copies: Sequence[Elements]
    ) -> None:
        window, inner, total = self.window, self.inner, self._length // self.inner
        first = max(0, -(window.low // window.base))
        last = max(first, min(window.n, -(-(total - window.low) // window.base)))
        begin, end = (window.low + number * window.base for number in (first, last))
        gaps = [(0, total)] if window.base > 1 else [(0, begin), (end, total)]
        for low, high in gaps:
            if low < high:
                with each(function, low * inner, high * inner) as place:
                    put_record(copies, place, start)
        if window.base == 1:
            with each(function, begin * inner, end * inner) as place:
                put_record(copies, place, record(sources, plus(place, -window.low * inner)))
            return
        with each(function, first, last) as number, each(function, 0, inner) as column:
            to = plus(times(plus(times(number, window.base), window.low), inner), column)
            put_record(copies, to, record(sources, plus(times(number, inner), column)))

    def _join(
        self,
        function: Function,
        prefixes: Sequence[Elements],
        suffixes: Sequence[Elements],
        targets: Sequence[Elements],
        combine: Combine,
    ) -> None:
        """Windows that begin at each element."""
        size, row, all_ = self.window.size, self._row, self.window.count * self.inner
        to_end = (size - 1) * row
        with each(function, 0, all_, size * row) as begin:
            middle, end = ((begin + length).minimum(all_) for length in (row, size * row))
            with each(function, begin, middle) as place:
                put_record(targets, place, record(prefixes, place + to_end))
            with each(function, middle, end) as place:
                put_record(targets, place, combine(record(suffixes, place), record(prefixes, place + to_end)))

    def _join_some(
        self,
        function: Function,
        prefixes: Sequence[Elements],
        suffixes: Sequence[Elements],
        targets: Sequence[Elements],
        combine: Combine,
    ) -> None:
        """Windows that begin at some elements."""
        size, inner = self.window.size, self.inner
        with each(function, 0, self.window.count) as number:
            first = number * self.window.stride
            is_block = first.udiv(self.window.dilation).urem(size).equals(0)
            with each(function, 0, inner) as column:
                place = first * inner + column
                ends = record(prefixes, place + (size - 1) * self._row)
                joined = combine(record(suffixes, place), ends)
                chosen = [select(is_block, end, both) for end, both in zip(ends, joined, strict=True)]
                put_record(targets, plus(number * inner, column), chosen)
