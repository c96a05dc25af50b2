"""Reductions of windows: directly, dimension by dimension, or by prefixes and suffixes of blocks.

Source: StableHLO spec "reduce_window". A small window is read for each result (``window_lines.py``), of extremes by
columns first (``padded_lines.py``). A large one is
reduced along its last dimension first, then along the one before, which keeps the order of its elements; a long window
along one dimension is made of prefixes and suffixes (``window_blocks.py``), or is a cumulative one (``scan.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from hloforge.pipelines.codegen.algorithms.arrays import Combine, Element, Elements, put_record
from hloforge.pipelines.codegen.algorithms.padded_lines import PaddedLines
from hloforge.pipelines.codegen.algorithms.places import each, times
from hloforge.pipelines.codegen.algorithms.scratch import Scratch, part
from hloforge.pipelines.codegen.algorithms.window_blocks import WindowBlocks
from hloforge.pipelines.codegen.algorithms.window_lines import UNROLLED, WindowLines
from hloforge.pipelines.codegen.algorithms.windows import Window, in_order, merged, volume
from hloforge.pipelines.codegen.chains import LONGEST
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Number, Value

# Reading each window whole is worth it up to so many reads of each element, padding and missing ones included.
_READS = 4


@dataclass(frozen=True)
class ReduceWindow:
    """A ``stablehlo.reduce_window``.

    Attributes:
        windows: one for each dimension of the operands.
        elements: the type of each operand's elements.
        lanes: of vectors that the computation takes as well; 0 if it takes single elements only.
        ordered: whether each window is read whole and in its order, because each step is rounded.
        adds: whether the computation adds floats, in chains of limited length.
        repeats: whether it may meet an element twice, and elements in any order, as extremes may.
    """

    windows: tuple[Window, ...]
    elements: tuple[str, ...]
    lanes: int = 0
    ordered: bool = False
    adds: bool = False
    repeats: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the results."""
        return tuple(window.count for window in self.windows)

    @property
    def _is_of_nothing(self) -> bool:
        """Whether windows have padding alone. There is no element, not even to be read in vain."""
        return any(window.n == 0 for window in self.windows)

    @cached_property
    def _dims(self) -> list[Window]:
        return merged(self.windows)

    @cached_property
    def _inner(self) -> list[Window]:
        """The dimensions within one row."""
        return self._dims[1:] if len(self._dims) > 1 and self._dims[0].is_plain else self._dims

    @property
    def rows(self) -> int:
        """Parts that can be computed apart from each other."""
        if self._is_of_nothing:
            return 1
        if self._inner is not self._dims or (self._dims and self._steps.is_direct):
            return self._dims[0].count
        return 1

    @property
    def reads(self) -> int:
        """Elements that all passes read, those beside the array included."""
        if self._is_of_nothing:
            return 0
        if self._steps.lines:
            return prod(self.shape) * self._steps.lines.reads
        passes = ((dims, _is_direct(dims, self.ordered)) for dims in self._steps.steps)
        outer = prod(self.shape) // max(1, prod(dim.count for dim in self._inner))
        each = sum(prod(dim.count * (dim.size if is_direct else 1) for dim in dims) for dims, is_direct in passes)
        return outer * each

    @cached_property
    def scratch(self) -> int:
        """Bytes that a call works in."""
        if self._is_of_nothing:
            return 0
        return self._steps.scratch

    @cached_property
    def _steps(self) -> _Passes:
        lines = PaddedLines.of(self._inner, self.elements, self.lanes) if self.repeats else None
        return _Passes.of(self._inner, self.elements, self.lanes, self.ordered, self.adds, lines)

    def write(
        self,
        function: Function,
        sources: Sequence[Elements],
        start: Sequence[Element],
        targets: Sequence[Elements],
        combine: Combine,
        memory: Value,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops.

        Args:
            sources: the operands.
            start: the initial elements.
            targets: the results, in other memory.
            combine: of elements so far and those that follow.
            memory: ``scratch`` bytes.
            rows: the first of ``rows`` and the one after the last; None for all.
        """
        if not prod(self.shape):
            return
        if self._is_of_nothing:
            with each(function, 0, prod(self.shape)) as place:
                put_record(targets, place, start)
            return
        first, last = rows or (0, self.rows)
        if self._inner is self._dims:
            self._steps.write(function, sources, start, targets, combine, memory, (first, last))
            return
        with each(function, first, last) as row:
            own = [array.moved(times(row, prod(dim.n for dim in self._inner))) for array in sources]
            into = [array.moved(times(row, prod(dim.count for dim in self._inner))) for array in targets]
            self._steps.write(function, own, start, into, combine, memory, None)


def _is_direct(dims: Sequence[Window], ordered: bool) -> bool:
    """Whether each window is read whole."""
    moving = [dim for dim in dims if not dim.is_plain]
    if ordered:
        # Each result of a running sum goes on with the last one, in the order of its window.
        return not (len(moving) == 1 and moving[0].is_cumulative and not moving[0].is_backward)
    if any(dim.is_cumulative and dim.n > 2 for dim in moving):
        return False
    reads = volume(dims) * prod(dim.count for dim in dims)
    return volume(dims) <= UNROLLED or reads <= _READS * prod(max(dim.n, dim.padded) for dim in dims)


@dataclass(frozen=True)
class _Passes:
    """One pass for each of the dimensions along which windows move, the last one first; or one for all.

    Attributes:
        lines: one pass, by lines with their borders.
    """

    steps: list[list[Window]]
    elements: tuple[str, ...]
    lanes: int
    ordered: bool
    adds: bool
    lines: PaddedLines | None = None

    @classmethod
    def of(
        cls,
        dims: list[Window],
        elements: tuple[str, ...],
        lanes: int,
        ordered: bool,
        adds: bool,
        lines: PaddedLines | None,
    ) -> _Passes:
        if lines:
            return cls([dims], elements, lanes, ordered, adds, lines)
        moving = [place for place, dim in enumerate(dims) if not dim.is_plain]
        # Lanes are combined in another order.
        lanes = 0 if ordered else lanes
        # Of windows with many elements sums along each dimension are shorter than those of all.
        is_long = adds and volume(dims) > LONGEST
        if (_is_direct(dims, ordered) and not is_long) or len(moving) == 1:
            return cls([dims], elements, lanes, ordered, adds)
        steps, current = [], list(dims)
        for place in reversed(moving):
            plain = [Window(dim.n) for dim in current]
            steps.append(merged([*plain[:place], dims[place], *plain[place + 1 :]]))
            current[place] = Window(dims[place].count)
        return cls(steps, elements, lanes, ordered, adds)

    @property
    def is_direct(self) -> bool:
        """Whether one pass reads each window whole."""
        return bool(self.lines) or (len(self.steps) == 1 and _is_direct(self.steps[0], self.ordered))

    @property
    def _between(self) -> int:
        """Elements of the largest array between two passes."""
        return max((prod(dim.count for dim in dims) for dims in self.steps[:-1]), default=0)

    def _plan(self) -> tuple[Scratch, list[list[int]]]:
        plan = Scratch()
        kept = [[plan.take(self._between * element_memory.size(e)) for e in self.elements] for _ in range(2)]
        return plan, kept

    @property
    def scratch(self) -> int:
        """Bytes that a call works in."""
        if self.lines:
            return self.lines.scratch
        plan, _ = self._plan()
        blocks = [dims for dims in self.steps if not _is_direct(dims, self.ordered)]
        sizes = (WindowBlocks.of(dims, self.elements, self.lanes, self.adds).scratch for dims in blocks)
        return plan.size + max(sizes, default=0)

    def write(
        self,
        function: Function,
        sources: Sequence[Elements],
        start: Sequence[Element],
        targets: Sequence[Elements],
        combine: Combine,
        memory: Value,
        rows: tuple[Number, Number] | None,
    ) -> None:
        if self.lines:
            self.lines.write(function, sources[0], start[0], targets[0], combine, memory, rows)
            return
        plan, kept = self._plan()
        own, rest = sources, part(memory, plan.size)
        for number, dims in enumerate(self.steps):
            into: Sequence[Elements] = targets
            if number < len(self.steps) - 1:
                pointers = [part(memory, place) for place in kept[number % 2]]
                into = [Elements(pointer, e) for pointer, e in zip(pointers, self.elements, strict=True)]
            if _is_direct(dims, self.ordered):
                parts = in_order(dims) if self.ordered else [dims]
                for part_ in parts:
                    lines = WindowLines(part_, own, start, into, combine, goes_on=part_ is not parts[0])
                    lines.write(function, rows if len(self.steps) == 1 else None)
            else:
                WindowBlocks.of(dims, self.elements, self.lanes, self.adds).write(
                    function, own, start, into, combine, rest
                )
            own = into
