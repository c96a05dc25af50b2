"""Extremes of small windows, by lines: what is above each other first, into a line with its borders, then along it.

A window of 3 x 3 is four computations in place of eight, and one of 13 x 13 24 in place of 168. Lines are whole
vectors: the last one overlaps the one before, which changes no extreme. Borders hold the initial element. So no element
is computed by itself, as LLVM does with what is left of a vector, nor are windows at borders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from hloforge.pipelines.codegen.algorithms.arrays import Combine, Element, Elements
from hloforge.pipelines.codegen.algorithms.places import each, flat, plus, strides_of, times
from hloforge.pipelines.codegen.algorithms.vectors import spread
from hloforge.pipelines.codegen.algorithms.windows import Window
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Number, Value

# Elements of a window above each other, along the last dimension, and from one window to the next at most: their loads
# stand one after the other in the code.
_ROWS, _COLUMNS, _STRIDE = 16, 32, 4
# Results of a line from which on vectors are worth it.
_FEW = 4


@dataclass(frozen=True)
class PaddedLines:
    """Windows along the last dimension and others, whose computation may meet an element twice and in any order.

    Attributes:
        dims: the windows along each dimension, merged.
        element: the type of the elements.
        lanes: of vectors that the computation takes as well.
    """

    dims: Sequence[Window]
    element: str
    lanes: int

    @classmethod
    def of(cls, dims: Sequence[Window], elements: Sequence[str], lanes: int) -> PaddedLines | None:
        """None where another algorithm is as good, or windows are of another kind."""
        if len(elements) != 1 or not lanes or len(dims) < 2 or elements[0] == "i1":
            return None
        *outer, last = dims
        is_small = prod(dim.size for dim in outer) <= _ROWS and last.size <= _COLUMNS and last.stride <= _STRIDE
        if last.is_plain or not is_small or all(dim.is_plain for dim in outer) or last.count < _FEW:
            return None
        if any(dim.base != 1 for dim in dims) or not all(_has_elements(dim) for dim in outer) or not last.n:
            return None
        return cls(dims, elements[0], lanes)

    @property
    def reads(self) -> int:
        """Elements that are computed for each result."""
        return prod(dim.size for dim in self.dims[:-1]) * self.dims[-1].stride + self.dims[-1].size

    @cached_property
    def _length(self) -> int:
        """Elements of a line with what vectors read beyond its last window."""
        last = self.dims[-1]
        ends = (last.low + last.n, last.count * last.stride + (last.size - 1) * last.dilation)
        return max(ends) + self.lanes * last.stride

    @property
    def scratch(self) -> int:
        """Bytes that a call works in."""
        return self._length * element_memory.size(self.element)

    def write(
        self,
        function: Function,
        source: Elements,
        start: Element,
        target: Elements,
        combine: Combine,
        memory: Value,
        rows: tuple[Number, Number] | None,
    ) -> None:
        """Write the loops; the arguments are those of ``ReduceWindow.write``."""
        *outer, last = self.dims
        line = Elements(memory, self.element)
        with each(function, 0, self._length) as place:
            line.put(start, place)
        first, end = rows or (0, outer[0].count)
        into = strides_of([dim.count for dim in self.dims])[:-1]
        with ExitStack() as stack:
            index: list[Number] = [stack.enter_context(each(function, first, end))]
            index += [0 if dim.count == 1 else stack.enter_context(each(function, 0, dim.count)) for dim in outer[1:]]
            bases = self._bases(function, index)

            def above(column: Number, lanes: int) -> None:
                found = source.at(plus(bases[0], column), lanes)
                for base in bases[1:]:
                    (found,) = combine([found], [source.at(plus(base, column), lanes)])
                line.put(found, plus(column, last.low))

            left = max(0, -last.low)
            # Elements beyond the last window are not read.
            right = min(last.n, self._length - self.lanes * last.stride - last.low)
            self._by_vectors(function, left, right, above)
            result = target.moved(flat(index, into))

            def along(column: Number, lanes: int) -> None:
                found = spread(start, lanes)
                for element in range(last.size):
                    at = plus(times(column, last.stride), element * last.dilation)
                    (found,) = combine([found], [_each_so_many(function, line, at, lanes, last.stride)])
                result.put(found, column)

            self._by_vectors(function, 0, last.count, along)

    def _bases(self, function: Function, index: Sequence[Number]) -> list[Number]:
        """Where the rows of the windows at an index begin; those beside the array are others of the window."""
        strides = strides_of([dim.n for dim in self.dims])
        along: list[list[Number]] = []
        for dim, number, stride in zip(self.dims, index, strides, strict=False):
            start = dim.start(number)
            if dim.is_inside:
                along.append([times(plus(start, e * dim.dilation), stride) for e in range(dim.size)])
                continue
            first, end = dim.present(function.index(start))
            present = [function.index(element).maximum(first).minimum(end - 1) for element in range(dim.size)]
            along.append([times(plus(start, times(element, dim.dilation)), stride) for element in present])
        return [plus(*parts) for parts in product(*along)]

    def _by_vectors(self, function: Function, first: int, end: int, body: Callable[[Number, int], None]) -> None:
        """Do something for the elements of a line, of which the last vector overlaps the one before."""
        if first >= end:
            return
        lanes = min(self.lanes, 1 << ((end - first).bit_length() - 1))
        if end - first == lanes:
            body(first, lanes)
            return
        with each(function, first, end, lanes) as place:
            body(place if (end - first) % lanes == 0 else place.minimum(end - lanes), lanes)


def _has_elements(dim: Window) -> bool:
    """Whether each window has an element of the array."""
    starts = range(-dim.low, dim.count * dim.stride - dim.low, dim.stride)
    return all(any(0 <= start + e * dim.dilation < dim.n for e in range(dim.size)) for start in starts)


def _each_so_many(function: Function, line: Elements, place: Number, lanes: int, stride: int) -> Element:
    """Every ``stride``-th element from a place on."""
    found = line.at(place, lanes * stride)
    if stride == 1:
        return found
    assert isinstance(found, Value)
    return function.shuffle(found, None, range(0, lanes * stride, stride))
