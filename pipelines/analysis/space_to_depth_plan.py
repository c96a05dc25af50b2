"""Long windows of one feature whose places along a dimension are taken as features, in rows of some places.

A window of ``rows * places`` places along a dimension, ``stride`` apart, reads the same elements as one of ``rows``
places of an array that has ``places`` neighbours side by side at every ``stride``-th element::

    laid_out[q, j] = image[q * stride + j]                  // j < places
    window[o, r * places + j] = laid_out[o + r * places / stride, j]
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from hloforge.dialect.mlir import AnyOp, ir, stablehlo
from hloforge.dialect.operations import integer, integers
from hloforge.pipelines.framework.machine import AVX2

# Places of a row, which its sums read in vectors. The array of rows is as many times the image as a row has strides.
_LEAST, _MOST, _MOST_STRIDES = 8, 32, 8
# Multiplications that are worth the array of rows.
_WORTH = AVX2.dispatch_work // 4
# Places of a window that are laid out one by one.
_FEW_PLACES = 64
# Elements of the array of rows at most: 128 MiB of f32.
_MOST_LAID_OUT = 1 << 25


@dataclass(frozen=True)
class WindowRows:
    """How a convolution of few features lays out its windows in part.

    Attributes:
        axis: the dimension of the space.
        rows, places: of the window along it; their product is its size.
        stride: of the windows along it; a divisor of ``places`` unless there is one row.
        windows: how many there are along it.
    """

    axis: int
    rows: int
    places: int
    stride: int
    windows: int

    @property
    def dilation(self) -> int:
        """From one row of a window to the next in the array of rows."""
        return self.places // self.stride if self.rows > 1 else 1

    @property
    def length(self) -> int:
        """Rows that are laid out."""
        return self.windows + (self.rows - 1) * self.dilation

    @classmethod
    def of(cls, op: Any) -> WindowRows | None:
        """For a convolution of static sizes; None where it is not worth it, or the window does not divide so."""
        if not _is_eligible(op):
            return None
        numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
        image, kernel, result = (value.type.shape for value in (*op.operands, *op.results))
        window = [kernel[d] for d in numbers.kernel_spatial_dimensions]
        if image[numbers.input_feature_dimension] != 1 or prod(window) <= _FEW_PLACES:
            return None
        if prod(result) * prod(window) < _WORTH:
            return None
        strides, near, apart = (
            integers(op, name) or [1] * len(window) for name in ("window_strides", "lhs_dilation", "rhs_dilation")
        )
        found = []
        for axis, size in enumerate(window):
            places = _places(size, strides[axis]) if near[axis] == apart[axis] == 1 else 0
            if places:
                windows = result[numbers.output_spatial_dimensions[axis]]
                found.append(cls(axis, size // places, places, strides[axis], windows))
        best = max(found, key=lambda rows: (rows.places, rows.axis), default=None)
        if best is None:
            return None
        along = image[numbers.input_spatial_dimensions[best.axis]]
        return best if prod(image) // along * best.length * best.places <= _MOST_LAID_OUT else None


def _is_eligible(op: AnyOp) -> bool:
    operands = [value.type for value in (*op.operands, *op.results)]
    if not all(type_.has_static_shape and prod(type_.shape) for type_ in operands):
        return False
    is_float = isinstance(operands[-1].element_type, ir.F32Type | ir.BF16Type | ir.F16Type)
    groups = [integer(op, f"{kind}_group_count") for kind in ("feature", "batch")]
    return is_float and groups == [1, 1]


def _places(window: int, stride: int) -> int:
    """The places of a row; 0 if the window does not divide into rows."""
    most = max(_MOST, _MOST_STRIDES * stride)
    # Places beyond the window would multiply zeros with elements that may be infinite.
    sizes = [window, *range(stride, most + 1, stride)]
    return max((n for n in sizes if window % n == 0 and _LEAST <= n <= most), default=0)
