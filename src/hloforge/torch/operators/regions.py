"""torchvision's roi_align: parts of images in a fixed number of cells."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.torch.registry import Call, lowers


@lowers("torchvision.roi_align")
def roi_align(call: Call, x: Any, regions: Any, *arguments: Any, **named: Any) -> Any:
    return averages(x, regions, *arguments, **named)


def averages(
    x: Any, regions: Any, scale: float, rows: int, columns: int, ratio: int, aligned: bool, *, inside: Any = None
) -> Any:
    """Averages of bilinear samples in each cell of each region.

    x: [batch, channels, height, width]; regions: [n, 5], an image's number and a box; result: [n, channels, rows,
    columns]. With ``ratio`` 0 a region has as many samples in a cell as it has pixels, which elements decide: the loops
    run as far as the largest region needs; only those that are ``inside`` count.
    """
    dtype = np.dtype(np.float32) if x.dtype.itemsize < 4 else x.dtype
    regions = regions.astype(dtype)
    offset = 0.5 if aligned else 0.0
    image = regions[:, 0].astype(np.int64)
    left, top, right, bottom = (regions[:, n] * scale - offset for n in range(1, 5))
    width, height = right - left, bottom - top
    if not aligned:
        width, height = jnp.maximum(width, 1), jnp.maximum(height, 1)
    cells = (height / rows, width / columns)
    if ratio > 0:
        counts = [jnp.full(image.shape, ratio, np.int32)] * 2
    else:
        counts = [jnp.ceil(cell).astype(np.int32) for cell in cells]
    if inside is not None:
        counts = [jnp.where(inside, count, 0) for count in counts]
        image = jnp.where(inside, image, 0)
    pixels = jnp.transpose(x, (0, 2, 3, 1)).astype(dtype)

    def places(start: Any, cell: Any, count: Any, cells: int, step: Any) -> Any:
        at = (step + dtype.type(0.5)) / jnp.maximum(count, 1).astype(dtype)
        return start[:, None] + cell[:, None] * (jnp.arange(cells, dtype=dtype) + at[:, None])

    def row(step: Any, total: Any) -> Any:
        y = places(top, cells[0], counts[0], rows, step.astype(dtype))
        low_y, high_y, part_y, ok_y = _between(y, x.shape[2])
        ok_y &= (step < counts[0])[:, None]

        def column(inner: Any, total: Any) -> Any:
            at = places(left, cells[1], counts[1], columns, inner.astype(dtype))
            low, high, part, ok = _between(at, x.shape[3])
            ok &= (inner < counts[1])[:, None]
            found = jnp.zeros((), dtype)
            for line, weight_y in ((low_y, 1 - part_y), (high_y, part_y)):
                for place, weight in ((low, 1 - part), (high, part)):
                    taken = pixels[image[:, None, None], line[:, :, None], place[:, None, :]]
                    found = found + taken * (weight_y[:, :, None] * weight[:, None, :])[..., None]
            return total + jnp.where((ok_y[:, :, None] & ok[:, None, :])[..., None], found, 0)

        return jax.lax.fori_loop(0, jnp.max(counts[1], initial=0), column, total)

    start = jnp.zeros((regions.shape[0], rows, columns, x.shape[1]), dtype)
    total = jax.lax.fori_loop(0, jnp.max(counts[0], initial=0), row, start)
    number = jnp.maximum(counts[0] * counts[1], 1).astype(dtype)
    return jnp.transpose(total / number[:, None, None, None], (0, 3, 1, 2)).astype(x.dtype)


def _between(at: Any, size: int) -> tuple[Any, Any, Any, Any]:
    """Pixels before and after a place, the part of the second, and whether the place is in the image."""
    inside = (at >= -1) & (at <= size)
    at = jnp.maximum(at, 0)
    low = jnp.floor(at).astype(np.int64)
    is_last = low >= size - 1
    low = jnp.where(is_last, size - 1, low)
    part = jnp.where(is_last, 0, at - low.astype(at.dtype))
    return low, jnp.minimum(low + 1, size - 1), part, inside
