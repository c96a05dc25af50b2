"""Scatters to the element that is selected in each window, such as gradients of maximum pooling.

Source: StableHLO spec "select_and_scatter". A reduction of windows finds the place of each selected element, then the
sources are scattered one by one, in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod

from hloforge.pipelines.codegen.algorithms.arrays import Element, Elements
from hloforge.pipelines.codegen.algorithms.places import each, times
from hloforge.pipelines.codegen.algorithms.scratch import InParts
from hloforge.pipelines.codegen.algorithms.window_lines import WindowLines
from hloforge.pipelines.codegen.algorithms.windows import Window, merged
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.comparisons import select as chosen
from hloforge.pipelines.codegen.elements.kinds import single
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I64, Number, Value


@dataclass(frozen=True)
class SelectAndScatter(InParts):
    """The geometry of a ``stablehlo.select_and_scatter``.

    Attributes:
        windows: one for each dimension of the operand; neither elements nor windows are dilated.
        element: the type of the arrays' elements.
    """

    windows: tuple[Window, ...]
    element: str

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
        return self._dims[0].n if self._inner is not self._dims else 1

    @property
    def _place(self) -> str:
        return "i32" if prod(dim.n for dim in self._inner) < 1 << 31 else "i64"

    @property
    def _parts(self) -> list[int]:
        count = prod(dim.count for dim in self._inner)
        return [count * element_memory.size(element) for element in (self.element, self._place)]

    def write(
        self,
        function: Function,
        operand: Elements,
        source: Elements,
        start: Element,
        target: Elements,
        select: Callable[[Element, Element], Value],
        scatter: Callable[[Element, Element], Element],
        memory: Value,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops.

        Args:
            start: what the result's elements are before the first is scattered.
            target: the result, in other memory.
            select: whether the element that was selected so far stays so, given it and the next one.
            scatter: the new element from the old one and one of the source.
            memory: ``scratch`` bytes.
            rows: the first of ``rows`` and the one after the last; None for all.
        """
        size, count = prod(dim.n for dim in self._inner), prod(dim.count for dim in self._inner)
        first, last = rows or (0, self.rows)
        if not size * self.rows:
            return
        kept, places = map(Elements, self._pointers(memory), (self.element, self._place))

        def combine(so_far: list[Element], following: list[Element]) -> list[Element]:
            place = single(so_far[1])
            stays = (place >= 0) & select(so_far[0], following[0])
            return [chosen(stays, one, other) for one, other in zip(so_far, following, strict=True)]

        with each(function, first, last) as row:
            own, into = operand.moved(times(row, size)), target.moved(times(row, size))
            with each(function, 0, size) as place:
                into.put(start, place)
            if not count:
                return
            none = [element_memory.constant(function, self.element, 0), function.constant(-1, places.element)]
            lines = WindowLines(self._inner, [own, _Places(function, self._place)], none, [kept, places], combine)
            lines.write(function, None)
            given = source.moved(times(row, count))
            with each(function, 0, count) as number:
                found = places.number(number).as_(I64)
                # A window of which nothing is in the array selects nothing.
                with function.if_(found >= 0):
                    into.put(scatter(into.at(found), given.at(number)), found)


@dataclass(frozen=True)
class _Places:
    """An array whose elements are their own places."""

    function: Function
    element: str

    def at(self, place: Number, lanes: int = 0) -> Element:
        if lanes:
            raise ValueError("places are read one by one")
        return self.function.index(place).as_(self.element)
