"""The phases of a convolution of a dilated image: which elements and window positions contribute to each result.

Along a dimension, an image whose elements are ``d`` apart has zeros between them. A result ``o`` multiplies the
positions ``k`` of the window where ``o * stride + k * dilation - low`` is a multiple of ``d``: every ``d``-th one or
none, the same ones for all results that leave one remainder. Those results are a phase, and a convolution without
zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod
from typing import Any

from hloforge.dialect.mlir import stablehlo
from hloforge.dialect.operations import integer, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.machine import AVX2

# Multiplications that have to be saved.
WORTH = AVX2.dispatch_work
# Of four multiplications, those that have to be saved at least.
_SAVED_OF_FOUR = 1
# Columns of a product that fill vectors: with fewer features, those of all phases are beside each other.
_FEW_FEATURES = 16
# Convolutions instead of one: each is a dispatch or two, and takes its time to compile.
_MOST_CONVOLUTIONS = 16


@dataclass(frozen=True)
class Phase:
    """The results of one remainder along a dimension.

    Attributes:
        place: the first position of the window that meets elements.
        places: how many do; none where all elements are zeros.
        first: the element that the first position meets at the first result; negative in the padding.
    """

    place: int
    places: int
    first: int


@dataclass(frozen=True)
class Axis:
    """The phases along one dimension, each a convolution with these strides and dilations.

    Attributes:
        phases: result ``o`` is result ``o // len(phases)`` of phase ``o % len(phases)``.
        step: from one position of the window that meets elements to the next.
        stride, dilation: of each phase's convolution.
        image, window, results: sizes along this dimension.
    """

    phases: tuple[Phase, ...]
    step: int
    stride: int
    dilation: int
    image: int
    window: int
    results: int

    @classmethod
    def of(cls, sizes: tuple[int, int, int], *, stride: int, low: int, apart: int, dilation: int) -> Axis:
        """Of the sizes of image, window and result, for elements that are so far ``apart``."""
        image, window, results = sizes
        step = apart // gcd(dilation, apart)
        phases = []
        for result in range(apart // gcd(stride, apart)):
            at = (
                place for place in range(min(step, window)) if (result * stride + place * dilation - low) % apart == 0
            )
            place = next(at, None) if result < results else None
            if place is None:
                phases.append(Phase(0, 0, 0))
            else:
                first = (result * stride + place * dilation - low) // apart
                phases.append(Phase(place, -(-(window - place) // step), first))
        steps = stride // gcd(stride, apart), dilation // gcd(dilation, apart)
        return cls(tuple(phases), step, *steps, image, window, results)

    @property
    def length(self) -> int:
        """Results of a phase; the last one may be none of the convolution's."""
        return -(-self.results // len(self.phases))

    @property
    def whole(self) -> Phase | None:
        """A window over the elements that any phase meets; None if their positions lie between each other's."""
        met = [phase for phase in self.phases if phase.places]
        if not met or len({phase.first % self.dilation for phase in met}) > 1:
            return None
        first = min(phase.first for phase in met)
        end = max(phase.first + (phase.places - 1) * self.dilation for phase in met)
        return Phase(0, (end - first) // self.dilation + 1, first)

    def padding(self, phase: Phase) -> list[int]:
        """Around the image of a phase."""
        last = phase.first + (self.length - 1) * self.stride + (phase.places - 1) * self.dilation
        return [-phase.first, last + 1 - self.image]


@dataclass(frozen=True)
class Phases:
    """How a convolution of a dilated image is computed without its zeros.

    Attributes:
        axes: of each dimension of its space.
        joined: whether one convolution has the phases as features beside each other; else each has one of its own.
    """

    axes: tuple[Axis, ...]
    joined: bool

    @classmethod
    def of(cls, op: Any, worth: int = WORTH) -> Phases | None:
        """The phases of a ``stablehlo.convolution``; None if little would be gained.

        Args:
            worth: multiplications that have to be saved.
        """
        values = [Value(value) for value in (*op.operands, op.results[0])]
        dilations = integers(op, "lhs_dilation")
        if max(dilations, default=1) == 1 or not all(
            value.shape.is_static and value.shape.element_count for value in values
        ):
            return None
        axes = axes_of(op)
        before = prod(axis.results * axis.window for axis in axes)
        apart = prod(axis.length * sum(phase.places for phase in axis.phases) for axis in axes)
        numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
        features = values[2].dims[numbers.output_feature_dimension]
        depth = values[1].dims[numbers.kernel_input_feature_dimension]
        others = values[2].dims[numbers.output_batch_dimension] * features * depth
        groups = integer(op, "feature_group_count") * integer(op, "batch_group_count")
        count = prod(sum(phase.places > 0 for phase in axis.phases) for axis in axes)
        # One convolution has zeros where the windows of phases differ.
        wholes = [axis.whole for axis in axes] if groups == 1 and count > 1 else [None]
        together = prod(
            axis.length * len(axis.phases) * whole.places for axis, whole in zip(axes, wholes, strict=False) if whole
        )
        is_better = features < _FEW_FEATURES or count > _MOST_CONVOLUTIONS
        joined = all(wholes) and (together <= apart or (is_better and _saves(before, together)))
        if not joined and count > _MOST_CONVOLUTIONS:
            return None
        left = together if joined else apart
        return cls(axes, joined) if _saves(before, left) and (before - left) * others >= worth else None


def _saves(before: int, left: int) -> bool:
    return 4 * (before - left) >= _SAVED_OF_FOUR * before


def axes_of(op: Any) -> tuple[Axis, ...]:
    """Of a ``stablehlo.convolution`` of known sizes."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image, kernel, result = (Value(value).dims for value in (*op.operands, op.results[0]))
    space = len(numbers.input_spatial_dimensions)
    lows = [int(low) for low in op.attributes["padding"]][::2] if "padding" in op.attributes else [0] * space
    strides, apart, dilations = (
        integers(op, name) or [1] * space for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    return tuple(
        Axis.of(
            (
                image[numbers.input_spatial_dimensions[d]],
                kernel[numbers.kernel_spatial_dimensions[d]],
                result[numbers.output_spatial_dimensions[d]],
            ),
            stride=strides[d],
            low=lows[d],
            apart=apart[d],
            dilation=dilations[d],
        )
        for d in range(space)
    )
