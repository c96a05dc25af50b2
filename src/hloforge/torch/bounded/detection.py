"""torchvision's operators of detection: suppression of boxes, and regions whose number depends on elements."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hloforge.dialect.errors import UnsupportedError
from hloforge.torch.bounded.compaction import compacted
from hloforge.torch.bounded.registry import OpenCall, bounded, made
from hloforge.torch.bounded.sizes import fit
from hloforge.torch.operators.regions import averages


@bounded("torchvision.nms")
def nms(call: OpenCall, boxes: Any, scores: Any, limit: Any) -> Any:
    """The boxes that overlap none of a higher score, in the order of scores; boxes: [n, 4], scores: [n]."""
    extent = boxes.shape[0]
    boxes = boxes.astype(np.float32) if boxes.dtype.itemsize < 4 else boxes
    real: Any = call.sizes.real(call.said[0].shape[0])
    numbers = jnp.arange(extent)
    scores = jnp.where(numbers < real, fit(scores, [extent]), -np.inf)
    order = jnp.argsort(scores, stable=True, descending=True)
    left, top, right, bottom = jnp.moveaxis(jnp.take(boxes, order, 0), 1, 0)
    areas = (right - left) * (bottom - top)

    def step(state: Any) -> Any:
        at, alive = state
        width = jnp.minimum(right, right[at]) - jnp.maximum(left, left[at])
        height = jnp.minimum(bottom, bottom[at]) - jnp.maximum(top, top[at])
        common = jnp.maximum(width, 0) * jnp.maximum(height, 0)
        overlaps = common / (areas + areas[at] - common) > limit
        return at + 1, alive & ~(overlaps & alive[at] & (numbers > at))

    if extent:
        start = (jnp.zeros((), np.int64), numbers < real)
        _, alive = jax.lax.while_loop(lambda state: state[0] < real, step, start)
    else:
        alive = numbers < 0
    kept, count = compacted(alive)
    found = jnp.take(order, kept, mode="clip") if extent else order
    return made(call, found.astype(np.int64), extent, count)


@bounded("torchvision.roi_align")
def open_roi_align(call: OpenCall, x: Any, regions: Any, *arguments: Any, **named: Any) -> Any:
    """Regions that are padding must not decide how many samples are taken."""
    if call.open(0) or call.open(1) != [0]:
        raise UnsupportedError("the sizes of the images depend on elements, or those of a box do")
    return averages(x, regions, *arguments, **named, inside=jnp.arange(regions.shape[0]) < call.count(1, 0))
