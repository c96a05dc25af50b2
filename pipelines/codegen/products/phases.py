"""Convolutions of images with zeros between their pixels, without the zeros.

Of an image whose pixels lie ``base`` apart, a window of the result sees every ``base``-th weight alone, and which ones
depends on the phase of its position. Each phase is a convolution of the image itself with these weights, whose results
lie ``base`` apart. They have one text, in which weights, their number and the first pixel are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.lang.values import I8, Value
from hloforge.pipelines.codegen.products.images import Axis
from hloforge.pipelines.codegen.products.tiled import TiledProduct
from hloforge.pipelines.codegen.products.windows import Windows

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.products.convolution import Convolution


@dataclass(frozen=True)
class Phase:
    """The phases of one spatial dimension, of which each has as many results.

    Attributes:
        axis: the dimension with its zeros.
    """

    axis: Axis

    @property
    def count(self) -> int:
        return self.axis.base

    @property
    def weights(self) -> int:
        """Of a window at most."""
        return -(-self.axis.window // self.count)

    @property
    def _first_pixel(self) -> int:
        """Of the first phase's first window."""
        return -(self.axis.low // self.count)

    @property
    def dense(self) -> Axis:
        """The dimension without zeros, for all phases: windows are as wide as those of all of them together."""
        last = -((self.axis.low - self.count + 1) // self.count)
        return Axis(
            self.axis.size,
            self.axis.out // self.count,
            self.weights + last - self._first_pixel,
            low=-self._first_pixel,
        )

    def pixel(self, phase: Value) -> Value:
        """The first pixel of a phase's first window, counted from that of the first phase."""
        shift = self.count * max(0, -(-self.axis.low // self.count))
        reached = (phase + (self.count - 1 - self.axis.low + shift)).udiv(self.count)
        return reached - (shift // self.count + self._first_pixel)

    def weight(self, phase: Value) -> Value:
        """The first weight that a phase sees."""
        shift = self.count * max(0, -(-(self.count - 1 - self.axis.low) // self.count))
        return (phase.like(self.axis.low + shift) - phase).urem(self.count)

    def weights_from(self, first: Value) -> Value:
        """How many a phase sees whose first one this is."""
        return (first.like(self.axis.window + self.count - 1) - first).udiv(self.count)


@dataclass(frozen=True)
class Part:
    """The results of one phase along a dimension, as those of a dimension without zeros.

    Attributes:
        axis: the dimension that they are of, whose windows are the weights that they see.
        weight: the first of these.
        first: the first result.
    """

    axis: Axis
    weight: int
    first: int


def parts_of(axis: Axis) -> tuple[Part, ...]:
    """The phases along a dimension whose windows are as wide as pixels lie apart at least, one after the other."""
    count, parts = axis.base, []
    if count == 1:
        return (Part(axis, 0, 0),)
    for first in range(min(count, axis.out)):
        weight = (axis.low - first) % count
        own = Axis(
            axis.size, -(-(axis.out - first) // count), -(-(axis.window - weight) // count),
            low=(axis.low - weight - first) // count,
        )  # fmt: skip
        parts.append(Part(own, weight, first))
    return tuple(parts)


def joined(parts: Sequence[Part]) -> Axis:
    """The dimension of the largest phase, with windows as wide as those of all together."""
    out = max(part.axis.out for part in parts)
    if len(parts) == 1:
        return parts[0].axis
    low = max(part.axis.low for part in parts)
    return Axis(parts[0].axis.size, out, max(part.axis.window + low - part.axis.low for part in parts), low=low)


def phases_of(one: Convolution) -> tuple[Phase, ...]:
    """The phases of each dimension; empty where there are no zeros, or where phases have unequal numbers of results."""
    dilated = [axis for axis in one.axes if axis.base > 1]
    if not all(axis.stride == 1 and axis.dilation == 1 and axis.out % axis.base == 0 for axis in dilated):
        return ()
    return tuple(map(Phase, one.axes)) if dilated else ()


def without_zeros(one: Convolution, phases: Sequence[Phase]) -> Convolution:
    """The convolution of all phases."""
    counts = [phase.count for phase in phases]
    return replace(
        one,
        axes=tuple(phase.dense if phase.count > 1 else phase.axis for phase in phases),
        kernel=replace(one.kernel, spatial=_times(one.kernel.spatial, counts)),
        out=replace(one.out, spatial=_times(one.out.spatial, counts)),
    )


def _times(strides: Sequence[int], counts: Sequence[int]) -> tuple[int, ...]:
    return tuple(stride * count for stride, count in zip(strides, counts, strict=True))


class PhasedProduct(TiledProduct):
    """Writes the loops of a product whose batch ends with the phases of each spatial dimension.

    Attributes:
        phases: of each dimension.
    """

    phases: Sequence[Phase] = ()

    def factors_at(self, places: Sequence[Value]) -> tuple[Value, Value]:
        lhs, rhs = super().factors_at(places)
        function, left = self.function, self.plan.left
        assert isinstance(left, Windows)
        turns, shift = [], function.index(0)
        chosen = places[len(places) - len(self.phases) :]
        for phase, place, turn, stride in zip(self.phases, chosen, left.turns, left.strides, strict=True):
            if phase.count == 1:
                turns.append(turn)
                continue
            weight = phase.weight(place)
            # The turn takes every ``count``-th weight.
            assert isinstance(turn.right, int)
            rhs = function.offset(rhs, I8, weight * (turn.right // phase.count))
            turns.append(replace(turn, count=phase.weights_from(weight)))
            shift = shift + phase.pixel(place) * stride
        self.turns, self.shift = tuple(turns), shift
        return lhs, rhs
