"""Sorts, and what people do by sorting."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import bits, integers, normal, ordered, skewed, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


def _rows(draw: Draw, high: float) -> tuple[int, int]:
    rows, columns = draw.shape(2, high)
    return rows, max(2, columns)


@kind("sorts")
def sorted_rows(draw: Draw) -> Drawn:
    rows, columns = _rows(draw, 3e5)
    axis, is_descending = draw.pick(0, 1, 1), draw.chance(0.3)
    dtype = draw.pick("float32", "float32", "float64", "int32", "bfloat16")
    argument = integers(rows, columns, high=1000) if dtype == "int32" else normal(rows, columns, dtype=dtype)
    return drawn(lambda x: jnp.sort(x, axis=axis, descending=is_descending), argument)


@kind("sorts")
def sorted_indices(draw: Draw) -> Drawn:
    rows, columns = _rows(draw, 3e5)
    return drawn(lambda x: jnp.argsort(x, axis=-1).astype(jnp.int32), normal(rows, columns))


@kind("sorts")
def greatest(draw: Draw) -> Drawn:
    rows, columns = _rows(draw, 1e6)
    count = draw.size(1, min(columns, 100))
    return drawn(lambda x: jax.lax.top_k(x, count), normal(rows, columns))


@kind("sorts")
def medians(draw: Draw) -> Drawn:
    rows, columns = _rows(draw, 3e5)
    axis = draw.pick(0, 1)
    return drawn(lambda x: jnp.median(x, axis=axis), normal(rows, columns))


@kind("sorts")
def sort_by_keys(draw: Draw) -> Drawn:
    size = draw.elements(1.5e5)
    keys = draw.pick(1, 2)
    return drawn(
        lambda a, b, c: jax.lax.sort((a, b, c), num_keys=keys), skewed(size, high=1000), normal(size),
        integers(size, high=1 << 30),
    )  # fmt: skip


@kind("sorts")
def search(draw: Draw) -> Drawn:
    size, count, side = draw.size(2, 200_000), draw.size(1, 100_000), draw.pick("left", "right")
    method = draw.pick("scan", "scan_unrolled", "sort")
    return drawn(
        lambda table, x: jnp.searchsorted(table, x, side=side, method=method).astype(jnp.int32),
        ordered(size),
        uniform(count),
    )


@kind("sorts")
def distinct(draw: Draw) -> Drawn:
    size, high = draw.elements(1e5), draw.size(2, 5000)
    most = min(size, high)
    return drawn(lambda x: jnp.unique(x, size=most, fill_value=-1, return_counts=True), skewed(size, high=high))


@kind("sorts")
def ranks(draw: Draw) -> Drawn:
    rows, columns = _rows(draw, 2e5)
    return drawn(
        lambda x: jnp.argsort(jnp.argsort(x, axis=-1), axis=-1).astype(jnp.float32) / columns, normal(rows, columns)
    )


@kind("sorts", batch=False)
def boxes_without_overlap(draw: Draw) -> Drawn:
    """Non-maximum suppression: sorted by score, then a loop that strikes out."""
    count = draw.size(4, 400)

    def function(centers: Any, sizes: Any, scores: Any) -> Any:
        order = jnp.argsort(-scores)
        low, high = (centers - sizes)[order], (centers + sizes)[order]
        extent = jnp.minimum(high[:, None], high[None]) - jnp.maximum(low[:, None], low[None])
        shared = jnp.prod(jnp.maximum(extent, 0), -1)
        area = jnp.prod(high - low, -1)
        overlap = shared / (area[:, None] + area[None] - shared)

        def step(number: Any, kept: Any) -> Any:
            struck = (overlap[number] > 0.3) & (jnp.arange(count) > number) & kept[number]
            return kept & ~struck

        return jax.lax.fori_loop(0, count, step, jnp.ones(count, bool))

    return drawn(function, uniform(count, 2), uniform(count, 2, low=0.05, high=0.3), uniform(count), share=0.02)


@kind("sorts", batch=False)
def shuffled(draw: Draw) -> Drawn:
    """A permutation from random bits, and batches read by it."""
    rows, features = draw.size(4, 20_000), draw.size(1, 20)
    return drawn(lambda x, noise: x[jnp.argsort(noise)] - x.mean(0), normal(rows, features), bits(rows))


@kind("sorts")
def nucleus(draw: Draw) -> Drawn:
    """Sampling's mask: the most probable words that make up a share of all."""
    rows, columns = _rows(draw, 2e5)

    def function(logits: Any) -> Any:
        shares = jax.nn.softmax(logits)
        falling = jnp.sort(shares, axis=-1)[:, ::-1]
        is_in = jnp.cumsum(falling, axis=-1) - falling < 0.9
        least = jnp.min(jnp.where(is_in, falling, jnp.inf), axis=-1, keepdims=True)
        return jnp.where(shares >= least * 0.999, logits, -1e9)

    return drawn(function, normal(rows, columns), share=0.01)
