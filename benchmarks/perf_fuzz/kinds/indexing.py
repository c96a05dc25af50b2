"""Reads and writes at indices, and moves of data."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import booleans, integers, normal, skewed, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


@kind("indexing", gradient=True)
def gather_rows(draw: Draw) -> Drawn:
    dtype = draw.float_type()
    rows, features = draw.shape(2, 3e6, 20)
    count = max(1, int(draw.work(5, 3e6) / features))
    return drawn(
        lambda table, places: table[places] * 2, normal(rows, features, dtype=dtype), integers(count, high=rows)
    )


@kind("indexing", gradient=True)
def scatter_add(draw: Draw) -> Drawn:
    rows, features = draw.shape(2, 2e6, 20)
    count = max(1, int(draw.work(5, 1e6) / features))
    operation = draw.pick("add", "add", "max", "min")
    return drawn(
        lambda table, updates, places: getattr(table.at[places], operation)(updates),
        normal(rows, features),
        normal(count, features),
        integers(count, high=rows),
    )


@kind("indexing")
def scatter_points(draw: Draw) -> Drawn:
    """Points counted or summed into a grid."""
    height, width = draw.image(1e6, least=4)
    count = draw.size(5, 200_000)
    return drawn(
        lambda grid, y, x, value: grid.at[y, x].add(value),
        normal(height, width),
        integers(count, high=height),
        integers(count, high=width),
        normal(count),
    )


@kind("indexing", gradient=True)
def segment_means(draw: Draw) -> Drawn:
    rows, features = draw.shape(2, 2e6, 20)
    groups, is_sorted = draw.size(2, 2000), draw.chance(0.5)

    def function(x: Any, group: Any) -> Any:
        group = jnp.sort(group) if is_sorted else group
        total = jax.ops.segment_sum(x, group, groups)
        count = jax.ops.segment_sum(jnp.ones(rows), group, groups)
        return total / jnp.maximum(count, 1)[:, None]

    return drawn(function, normal(rows, features), skewed(rows, high=groups))


@kind("indexing", gradient=True)
def take_along(draw: Draw) -> Drawn:
    rows, columns = draw.shape(2, 2e6)
    count = draw.size(1, max(1, min(columns, 64)))
    return drawn(
        lambda x, places: jnp.take_along_axis(x, places, axis=1),
        normal(rows, columns),
        integers(rows, count, high=columns),
    )


@kind("indexing", gradient=True)
def one_hot_product(draw: Draw) -> Drawn:
    classes, features = draw.size(2, 300), draw.size(1, 100)
    count = max(1, int(min(draw.work(10, 1e6), 1e8 / (classes * features))))
    return drawn(
        lambda table, labels: jax.nn.one_hot(labels, classes) @ table,
        normal(classes, features),
        integers(count, high=classes),
    )


@kind("indexing", gradient=True)
def choices(draw: Draw) -> Drawn:
    """Chains of where over masks and comparisons."""
    shape = draw.shape(2, 5e6)
    low, high = draw.number(-1.5, -0.2), draw.number(0.2, 1.5)

    def function(x: Any, y: Any, mask: Any) -> Any:
        z = jnp.where(mask, x, y)
        z = jnp.where(z > high, high + 0.1 * (z - high), z)
        return jnp.select([z < low, jnp.abs(z) < 0.1], [low + 0.0 * z, z * 10], z + y)

    return drawn(function, normal(*shape), normal(shape[-1]), booleans(*shape))


@kind("indexing", batch=False)
def slices_in_loop(draw: Draw) -> Drawn:
    """A loop that reads a part of one array and writes a part of another."""
    blocks, rows, columns = draw.size(2, 150), draw.size(1, 30), draw.size(1, 300)

    def function(source: Any, order: Any) -> Any:
        def step(number: Any, out: Any) -> Any:
            part = jax.lax.dynamic_slice_in_dim(source, order[number] * rows, rows)
            part = part - part.mean(0)
            return jax.lax.dynamic_update_slice_in_dim(out, part * 0.5, number * rows, 0)

        return jax.lax.fori_loop(0, blocks, step, jnp.zeros_like(source))

    return drawn(function, normal(blocks * rows, columns), integers(blocks, high=blocks))


@kind("indexing")
def compaction(draw: Draw) -> Drawn:
    """What a mask chooses, moved to the front."""
    size = draw.elements(5e5)
    form = draw.pick("cumsum", "nonzero", "sort")

    def function(x: Any, mask: Any) -> Any:
        if form == "nonzero":
            return jnp.nonzero(mask, size=size, fill_value=-1)[0]
        if form == "sort":
            return x[jnp.argsort(~mask, stable=True)]
        place = jnp.where(mask, jnp.cumsum(mask) - 1, size)
        return jnp.zeros(size, x.dtype).at[place].set(x, mode="drop")

    return drawn(function, normal(size), booleans(size, share=draw.number(0.05, 0.9)))


@kind("indexing", gradient=True)
def sparse_product(draw: Draw) -> Drawn:
    """Edges of a graph: messages gathered, weighted and summed at their targets."""
    nodes, features = draw.shape(2, 3e5, 20)
    edges = max(2, int(draw.work(20, 2e6) / features))

    def function(x: Any, weight: Any, source: Any, target: Any) -> Any:
        return jnp.zeros_like(x).at[target].add(weight[:, None] * x[source])

    return drawn(
        function, normal(nodes, features), normal(edges), integers(edges, high=nodes), integers(edges, high=nodes)
    )


@kind("indexing", gradient=True)
def permuted(draw: Draw) -> Drawn:
    dtype, rank = draw.pick("float32", "float32", "bfloat16", "float64"), draw.pick(2, 3, 4, 5)
    shape = draw.shape(rank)
    order = [int(place) for place in draw.random.permutation(rank)]
    is_scaled = draw.chance(0.5)
    return drawn(lambda x: x.transpose(order) * (2 if is_scaled else 1), normal(*shape, dtype=dtype))


@kind("indexing", gradient=True)
def joined_and_padded(draw: Draw) -> Drawn:
    rows, columns = draw.shape(2, 2e6)
    others = draw.size(1, 200)
    is_rows = draw.chance(0.5)

    def function(x: Any, y: Any) -> Any:
        both = jnp.concatenate([x, y, x[::-1]], axis=0 if is_rows else 1)
        return jnp.pad(both, ((1, 2), (0, 3)), constant_values=0.5)[:, ::2] * 3

    return drawn(function, normal(rows, columns), normal(*((others, columns) if is_rows else (rows, others))))


@kind("indexing", gradient=True)
def table_interpolation(draw: Draw) -> Drawn:
    size, knots, dtype = draw.elements(1e6), draw.size(4, 2000), draw.precise_type()

    def function(x: Any, table: Any) -> Any:
        place = jnp.clip(x, 0, 1) * (knots - 1)
        low = jnp.clip(jnp.floor(place).astype(jnp.int32), 0, knots - 2)
        share = place - low
        return table[low] * (1 - share) + table[low + 1] * share

    return drawn(function, uniform(size, dtype=dtype), normal(knots, dtype=dtype))


@kind("indexing", batch=False)
def ring_buffer(draw: Draw) -> Drawn:
    """A replay memory: rows written at a place that wraps, then a batch read."""
    room, features, new, read = draw.size(20, 10_000), draw.size(1, 100), draw.size(1, 15), draw.size(1, 256)

    def function(memory: Any, rows: Any, place: Any, wanted: Any) -> Any:
        memory = memory.at[(place + jnp.arange(new)) % room].set(rows)
        batch = memory[wanted]
        return memory, (batch - batch.mean(0)) / (batch.std(0) + 1e-2)

    return drawn(
        function, normal(room, features), normal(new, features), integers(high=room), integers(read, high=room)
    )


@kind("indexing", batch=False)
def particles_in_grid(draw: Draw) -> Drawn:
    """Charges deposited to a grid with weights, and the field read back."""
    cells, particles = draw.size(8, 300), draw.size(5, 60_000)

    def function(x: Any, y: Any) -> Any:
        i, j = jnp.floor(x).astype(jnp.int32), jnp.floor(y).astype(jnp.int32)
        dx, dy = x - i, y - j
        grid = jnp.zeros((cells, cells))
        for a, wa in ((0, 1 - dx), (1, dx)):
            for b, wb in ((0, 1 - dy), (1, dy)):
                grid = grid.at[(i + a) % cells, (j + b) % cells].add(wa * wb)
        return grid[i % cells, j % cells] - grid.mean()

    return drawn(function, uniform(particles, high=cells - 1), uniform(particles, high=cells - 1))
