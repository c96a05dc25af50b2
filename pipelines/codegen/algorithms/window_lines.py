"""Reductions of small windows: each is read for its result, a line of results along the last dimension at a time.

Where all windows of a line are in the array, the loop over the line is straight code, which LLVM makes vectors of.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product

from hloforge.pipelines.codegen.algorithms.arrays import Combine, Element, Elements, Source
from hloforge.pipelines.codegen.algorithms.places import each, flat, fold, plus, strides_of, times
from hloforge.pipelines.codegen.algorithms.vectors import flattened, like
from hloforge.pipelines.codegen.algorithms.windows import Window, volume
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Number, Value

# Elements of a window whose loads stand one after the other in the code.
UNROLLED = 16


@dataclass(frozen=True)
class WindowLines:
    """Windows that are read whole, as straight code where all of one is in the array.

    Attributes:
        dims: the windows along each dimension, merged.
        sources, start, targets, combine: as for ``ReduceWindow.write``.
        goes_on: whether the targets hold what other parts of the windows gave, in place of ``start``.
    """

    dims: Sequence[Window]
    sources: Sequence[Source]
    start: Sequence[Element]
    targets: Sequence[Elements]
    combine: Combine
    goes_on: bool = False

    def write(self, function: Function, rows: tuple[Number, Number] | None) -> None:
        """Write the loops; ``rows`` says which results along the first dimension are meant."""
        dims = self.dims or [Window(1)]
        *outer, last = dims
        first, end = rows or (0, dims[0].count)
        with ExitStack() as stack:
            index: list[Number] = []
            for place, dim in enumerate(outer):
                if place == 0:
                    index.append(stack.enter_context(each(function, first, end)))
                else:
                    index.append(0 if dim.count == 1 else stack.enter_context(each(function, 0, dim.count)))
            lines = (first, end) if not outer else (0, last.count)
            _Line(self, function, index, dims, lines).write()


@dataclass(frozen=True)
class _Line:
    """The results along the last dimension at an index of the others.

    Attributes:
        limits: the first of them and the one after the last.
    """

    direct: WindowLines
    function: Function
    index: Sequence[Number]
    dims: Sequence[Window]
    limits: tuple[Number, Number]

    @property
    def _outer(self) -> Sequence[Window]:
        return self.dims[:-1]

    @property
    def _is_unrolled(self) -> bool:
        return volume(self.dims) <= UNROLLED

    def write(self) -> None:
        last, function = self.dims[-1], self.function
        if last.base == 1 and last.size > UNROLLED:
            self._swept(last)
            return
        middle, edges = self._segments()
        inside = self._inside()
        if middle is not None:
            if not self._is_unrolled or inside is False:
                self._added(middle, last)
            elif inside is True:
                self._straight(middle)
            else:
                assert isinstance(inside, Value)

                def yes() -> list[Value]:
                    self._straight(middle)
                    return []

                def no() -> list[Value]:
                    self._added(middle, last)
                    return []

                function.branch(inside, yes, no)
        for edge in edges:
            self._edge(edge)

    def _segments(self) -> tuple[tuple[Number, Number] | None, list[tuple[Number, Number]]]:
        """The results whose windows are inside along the last dimension, and the others."""
        last, (first, end) = self.dims[-1], self.limits
        inner = last.inner()
        if last.size > UNROLLED or inner == (0, 0):
            return None, [(first, end)]
        if inner == (0, last.count):
            return (first, end), []
        if isinstance(first, Value) or isinstance(end, Value):
            clamped = [self.function.index(limit) for limit in (first, end)]
            low, high = (clamped[0].maximum(inner[0]).minimum(end), clamped[1].minimum(inner[1]))
            return (low, high), [(first, low), (high.maximum(low), end)]
        middle = max(first, inner[0]), min(end, inner[1])
        edges: list[tuple[Number, Number]] = [(first, min(end, inner[0])), (max(first, inner[1]), end)]
        return (middle if middle[0] < middle[1] else None), [edge for edge in edges if edge[0] < edge[1]]

    def _inside(self) -> Value | bool:
        """Whether the windows are inside along the other dimensions."""
        flag: Value | bool = True
        for dim, number in zip(self._outer, self.index, strict=True):
            first, end = dim.inner()
            if (first, end) == (0, dim.count):
                continue
            if first == end:
                return False
            if not isinstance(number, Value):
                if not first <= number < end:
                    return False
                continue
            within = (number - first).compare("ult", end - first)
            flag = flag & within if isinstance(flag, Value) else within
        return flag

    @property
    def _into(self) -> Number:
        *strides, _ = strides_of([dim.count for dim in self.dims])
        return flat(self.index, strides)

    def _straight(self, limits: tuple[Number, Number]) -> None:
        """Each result by one piece of code, whole windows inside of the array."""
        strides, into = strides_of([dim.n for dim in self.dims]), self._into
        starts = [dim.start(number) for dim, number in zip(self._outer, self.index, strict=True)]
        base = flat(starts, strides[:-1])
        with each(self.function, *limits) as number:
            first = plus(base, self.dims[-1].start(number))
            found = list(self.direct.start)
            if self.direct.goes_on:
                found = [target.at(plus(into, number)) for target in self.direct.targets]
            for place in product(*(range(dim.size) for dim in self.dims)):
                step = flat([at * dim.dilation for at, dim in zip(place, self.dims, strict=True)], strides)
                found = list(self.direct.combine(found, [source.at(plus(first, step)) for source in self.sources]))
            self._put(plus(into, number), found)

    @property
    def sources(self) -> Sequence[Source]:
        return self.direct.sources

    def _added(self, limits: tuple[Number, Number], last: Window) -> None:
        """The results of a line at once: row after row of the windows is added to them."""
        into = self._into
        self._clear(limits)
        with ExitStack() as stack:
            base = self._rows(stack)
            with each(self.function, *limits) as number:
                place = plus(into, number)
                found = [target.at(place) for target in self.direct.targets]
                for element in range(last.size):
                    at = plus(base, last.place(number, element))
                    found = list(self.direct.combine(found, [source.at(at) for source in self.sources]))
                self._put(place, found)

    def _swept(self, last: Window) -> None:
        """The results of a line at once, of long windows: one element of each row after the other is added to them."""
        into, function, step = self._into, self.function, last.stride
        self._clear(self.limits)
        with ExitStack() as stack:
            base = self._rows(stack)
            element = stack.enter_context(each(function, 0, last.size))
            # The first result whose element is in the array, and the one after the last.
            before = function.index(last.low) - element * last.dilation
            first, end = ((at.maximum(0) + (step - 1)).udiv(step) for at in (before, before + last.n))
            with each(function, first.maximum(self.limits[0]), end.minimum(self.limits[1])) as number:
                place = plus(into, number)
                at = plus(base, number * step - before)
                found = [target.at(place) for target in self.direct.targets]
                self._put(place, self.direct.combine(found, [source.at(at) for source in self.sources]))

    def _edge(self, limits: tuple[Number, Number]) -> None:
        """Results whose windows may lie beside the array along the last dimension."""
        into = self._into
        self._clear(limits)
        with ExitStack() as stack:
            base = self._rows(stack)
            number = stack.enter_context(each(self.function, *limits))
            place, last = plus(into, number), self.dims[-1]
            if last.base == 1:
                self._put(place, self._along(base, number, [target.at(place) for target in self.direct.targets]))
                return
            at = plus(base, _present(self.function, stack, last, number))
            found = [target.at(place) for target in self.direct.targets]
            self._put(place, self.direct.combine(found, [source.at(at) for source in self.sources]))

    def _along(self, base: Number, number: Value, before: Sequence[Element]) -> list[Element]:
        """Elements joined with those of a row of a window."""
        last = self.dims[-1]
        start = self.function.index(last.start(number))
        first, end = (0, last.size) if last.is_inside else last.present(start)

        def join(element: Value, values: list[Value]) -> list[Value]:
            at = plus(base, start, times(element, last.dilation))
            elements = [source.at(at) for source in self.sources]
            return flattened(self.direct.combine(like(values, before), elements))

        return like(fold(self.function, first, end, flattened(before), join), before)

    def _clear(self, limits: tuple[Number, Number]) -> None:
        if self.direct.goes_on:
            return
        into = self._into
        with each(self.function, *limits) as number:
            self._put(plus(into, number), self.direct.start)

    def _rows(self, stack: ExitStack) -> Number:
        """Loops over the rows of the windows that are in the array; where they begin."""
        strides = strides_of([dim.n for dim in self.dims])
        places = [
            _present(self.function, stack, dim, number) for dim, number in zip(self._outer, self.index, strict=True)
        ]
        return flat(places, strides[:-1])

    def _put(self, place: Number, elements: Sequence[Element]) -> None:
        for target, element in zip(self.direct.targets, elements, strict=True):
            target.put(element, place)


def _present(function: Function, stack: ExitStack, dim: Window, number: Number) -> Number:
    """Loop over a window's elements that are in the array; where each is."""
    if dim.is_plain:
        return number
    start = function.index(dim.start(number))
    if dim.base == 1:
        first, end = (0, dim.size) if dim.is_inside else dim.present(start)
        return plus(start, times(stack.enter_context(each(function, first, end)), dim.dilation))
    place = start + stack.enter_context(each(function, 0, dim.size)) * dim.dilation
    flag = place.compare("ult", (dim.n - 1) * dim.base + 1)
    at = place.udiv(dim.base)
    stack.enter_context(function.if_(flag & (at * dim.base).equals(place)))
    return at
