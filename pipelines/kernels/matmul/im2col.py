"""Recognize im2col: a matrix product whose rows are the windows that ``unfold-convolutions`` laid out.

::

    %s = stablehlo.slice %image [...]                       // one a place of the window
    %u = stablehlo.concatenate (stablehlo.reshape %s, ...)  // [n, *space, places, c]
    %rows = stablehlo.reshape %u                            // [n * space, places * c]

A product that reads the image itself needs no memory for the windows, which are as many times as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from hloforge.dialect.operations import integers, is_made_by
from hloforge.dialect.values import Value


@dataclass(frozen=True)
class Windows:
    """Rows ``[n * prod(spaces), prod(window) * c]`` of an image ``[n, *size, c]``.

    Attributes:
        image: with its padding.
        first: the position of the first window's first place.
        window: places along each dimension; ``dilations`` apart.
        spaces: windows along each dimension; ``strides`` apart.
    """

    image: Value
    first: tuple[int, ...]
    window: tuple[int, ...]
    dilations: tuple[int, ...]
    spaces: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def features(self) -> int:
        """c."""
        return self.image.dims[-1]


def windows_of(rows: Value) -> Windows | None:
    """The windows that a matrix consists of; None if it is none of windows."""
    laid_out = _operand(rows, "stablehlo.reshape")
    if laid_out is None:
        return None
    # One place is not joined with others.
    parts = _operands(laid_out, "stablehlo.concatenate") or [laid_out]
    slices = [part for part in (_operand(part, "stablehlo.reshape") for part in parts) if part is not None]
    images = [_operand(part, "stablehlo.slice") for part in slices]
    image = images[0] if len(images) == len(parts) else None
    if image is None or any(other is None or other.ir != image.ir for other in images):
        return None
    batch, *spaces, features = slices[0].dims
    starts = [integers(part.ir.owner, "start_indices") for part in slices]
    strides = {tuple(integers(part.ir.owner, "strides")) for part in slices}
    is_whole = all(start[0] == start[-1] == 0 for start in starts) and image.dims[:: image.rank - 1] == (
        batch,
        features,
    )
    joined = batch, *spaces, len(slices), features
    shape = batch * prod(spaces), len(slices) * features
    if len(strides) != 1 or not is_whole or (laid_out.dims, rows.dims) != (joined, shape):
        return None
    grid = _grid([tuple(start[1:-1]) for start in starts])
    if grid is None:
        return None
    first, window, dilations = grid
    return Windows(image, first, window, dilations, tuple(spaces), strides.pop()[1:-1])


def _grid(points: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """First point, counts and distances of a rising grid in row-major order; None for other points."""
    axes = [sorted({point[axis] for point in points}) for axis in range(len(points[0]))]
    steps = [axis[1] - axis[0] if len(axis) > 1 else 1 for axis in axes]
    first, counts = tuple(axis[0] for axis in axes), tuple(map(len, axes))
    regular = [
        tuple(start + number * step for start, number, step in zip(first, place, steps, strict=True))
        for place in product(*map(range, counts))
    ]
    return (first, counts, tuple(steps)) if list(points) == regular else None


def _operands(value: Value | None, name: str) -> list[Value]:
    """The operands of a value's operation, if it is called so."""
    if value is None or not is_made_by(value.ir, name):
        return []
    return [Value(operand) for operand in value.ir.owner.operands]


def _operand(value: Value | None, name: str) -> Value | None:
    return next(iter(_operands(value, name)), None)
