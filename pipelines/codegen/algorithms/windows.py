"""Windows that move along the dimensions of an array, as reduce_window and select_and_scatter have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from hloforge.pipelines.codegen.algorithms.places import plus, times
from hloforge.pipelines.codegen.lang.values import Number, Value


@dataclass(frozen=True)
class Window:
    """A window along one dimension.

    Attributes:
        n: elements of the array.
        size: elements of the window.
        stride: from one window to the next.
        low, high: elements beside the array, fewer than none where some of it are left out.
        base: distance of the array's elements, between which others are missing.
        dilation: distance of the window's elements.
    """

    n: int
    size: int = 1
    stride: int = 1
    low: int = 0
    high: int = 0
    base: int = 1
    dilation: int = 1

    @property
    def padded(self) -> int:
        """Elements with those missing and those beside the array."""
        return self.low + (max(0, (self.n - 1) * self.base + 1) if self.n else 0) + self.high

    @property
    def extent(self) -> int:
        """From the first to the last element of a window."""
        return (self.size - 1) * self.dilation + 1

    @property
    def count(self) -> int:
        """How many windows there are."""
        return 0 if self.padded < self.extent else (self.padded - self.extent) // self.stride + 1

    @property
    def is_plain(self) -> bool:
        """Whether each window is an element."""
        return self == Window(self.n)

    @property
    def is_inside(self) -> bool:
        """Whether all elements of all windows are in the array."""
        return self.inner() == (0, self.count)

    @property
    def is_cumulative(self) -> bool:
        """Whether each window holds the elements up to one, or from one on; the first ones may hold none."""
        if self.size != self.n or (self.stride, self.base, self.dilation) != (1, 1, 1):
            return False
        first, last = sorted((self.low, self.high))
        return -self.n <= first <= 0 and last >= self.n - 1

    @property
    def is_backward(self) -> bool:
        """Whether cumulative windows hold the elements from one on."""
        return self.high > 0 >= self.low

    def inner(self) -> tuple[int, int]:
        """The first window of which all elements are in the array, and the one after the last of those."""
        if self.base != 1:
            return 0, 0
        first = max(0, -(-self.low // self.stride))
        last = min(self.count, (self.n - self.extent + self.low) // self.stride + 1)
        return (first, last) if first < last else (0, 0)

    def part(self, first: int, size: int) -> Window:
        """The same windows, of which only some elements are read."""
        low = self.low - first * self.dilation
        # As many windows as before.
        end = (self.count - 1) * self.stride + (size - 1) * self.dilation + 1
        return replace(self, size=size, low=low, high=end - low - (self.padded - self.low - self.high))

    def place(self, number: Number, element: Number) -> Number:
        """Where in the array an element of a window is, if the array has no missing elements."""
        return plus(times(number, self.stride), times(element, self.dilation), -self.low)

    def start(self, number: Number) -> Number:
        """Where the first element of a window is."""
        return plus(times(number, self.stride), -self.low)

    def present(self, start: Value) -> tuple[Value, Value]:
        """The first element of a window that is in an array without missing elements, and the one after the last.

        Args:
            start: where the first element of the window is.
        """
        step, function = self.dilation, start.function
        first = (-start + (step - 1)).maximum(0)
        last = (function.index(self.n + step - 1) - start).maximum(0)
        if step > 1:
            first, last = first.udiv(step), last.udiv(step)
        return first.minimum(self.size), last.minimum(self.size)


def merged(windows: Sequence[Window]) -> list[Window]:
    """The same windows with fewer dimensions: neighbours along which a window is an element are one."""
    found: list[Window] = []
    for window in windows:
        if window.n == 1 and window.is_plain:
            continue
        if found and found[-1].is_plain and window.is_plain:
            found[-1] = replace(found[-1], n=found[-1].n * window.n)
            continue
        found.append(window)
    return found


def in_order(windows: Sequence[Window]) -> list[list[Window]]:
    """The parts of windows that XLA's CPU client reads after each other, each from its first to its last element.

    It peels a window's last element along a dimension where no other one is ever outside of the array, so that it reads
    the rest along all dimensions before. Source: XLA "PeelLoops".
    """
    found, rest = [], list(windows)
    for place in reversed(range(len(rest))):
        window = rest[place]
        if _is_peeled(window):
            last = [*rest]
            last[place] = window.part(window.size - 1, 1)
            found.append(last)
            rest[place] = window.part(0, window.size - 1)
    return [rest, *reversed(found)]


def _is_peeled(window: Window) -> bool:
    if window.size < 2 or window.count < 2 or window.is_inside:
        return False
    return window.size == 2 or window.part(0, window.size - 1).is_inside


def volume(windows: Sequence[Window]) -> int:
    """Elements of a window."""
    return prod(window.size for window in windows)
