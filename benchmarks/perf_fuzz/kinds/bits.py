"""Integers and their bits, and quantized products."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.perf_fuzz.arguments import bits, booleans, integers, normal, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


@kind("integers")
def hashes(draw: Draw) -> Drawn:
    shape, rounds = draw.shape(draw.pick(1, 2), 3e6), draw.size(1, 4)
    dtype = draw.pick("uint32", "uint32", "uint64")

    def function(x: Any) -> Any:
        width = 8 * np.dtype(dtype).itemsize
        for number in range(rounds):
            x = x ^ (x >> np.array(width // 2 - 1, dtype))
            x = x * np.array(0x85EBCA6B + 2 * number, dtype)
            x = (x << np.array(13, dtype)) | (x >> np.array(width - 13, dtype))
        return x ^ (x >> np.array(width // 2, dtype))

    return drawn(function, bits(*shape, dtype=dtype))


@kind("integers")
def generator_in_loop(draw: Draw) -> Drawn:
    """Xorshift or a linear congruence, many streams."""
    steps, streams = draw.size(3, 200), draw.size(1, 20_000)
    is_linear = draw.chance(0.4)

    def function(state: Any) -> Any:
        def step(_: Any, given: Any) -> Any:
            x, total = given
            if is_linear:
                x = x * np.uint32(1664525) + np.uint32(1013904223)
            else:
                x = x ^ (x << np.uint32(13))
                x = x ^ (x >> np.uint32(17))
                x = x ^ (x << np.uint32(5))
            return x, total + (x >> np.uint32(8)).astype(jnp.float32) * np.float32(2.0**-24)

        return jax.lax.fori_loop(0, steps, step, (state, jnp.zeros(streams)))

    return drawn(function, bits(streams))


@kind("integers")
def hamming_distances(draw: Draw) -> Drawn:
    rows, columns, words = draw.size(1, 800), draw.size(1, 800), draw.size(1, 8)

    def function(x: Any, y: Any) -> Any:
        return jnp.sum(jax.lax.population_count(x[:, None] ^ y[None]).astype(jnp.int32), -1)

    return drawn(function, bits(rows, words), bits(columns, words))


@kind("integers")
def byte_product(draw: Draw) -> Drawn:
    m, k, n = draw.sizes(draw.work(1e3, 1e8), 3, least=3)
    dtype = draw.pick("int8", "int8", "uint8")
    low, high = (-128, 128) if dtype == "int8" else (0, 256)
    is_scaled = draw.chance(0.5)

    def function(x: Any, y: Any, scale: Any) -> Any:
        total = jax.lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
        return total.astype(jnp.float32) * scale if is_scaled else total

    return drawn(
        function, integers(m, k, low=low, high=high, dtype=dtype), integers(k, n, low=low, high=high, dtype=dtype),
        uniform(n, low=0.001, high=0.1),
    )  # fmt: skip


@kind("integers")
def quantized_layer(draw: Draw) -> Drawn:
    """Floats to bytes with scales of rows, a product, floats again."""
    rows, inputs, outputs = draw.sizes(draw.work(1e3, 5e7), 3, least=3)

    def function(x: Any, w: Any, scale: Any) -> Any:
        size = jnp.max(jnp.abs(x), axis=1, keepdims=True) / 127 + 1e-6
        narrow = jnp.clip(jnp.round(x / size), -127, 127).astype(jnp.int8)
        total = jax.lax.dot_general(narrow, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
        return jax.nn.relu(total.astype(jnp.float32) * size * scale)

    return drawn(
        function, integers(rows, inputs, low=-100, high=100, dtype="float32"),
        integers(inputs, outputs, low=-127, high=128, dtype="int8"), uniform(outputs, low=0.001, high=0.01), share=0.01,
    )  # fmt: skip


@kind("integers")
def unpacked_weights(draw: Draw) -> Drawn:
    """Numbers of four bits, two in a byte, with scales of groups, times a few rows."""
    rows, group = draw.size(1, 8), draw.pick(16, 32, 64)
    inputs, outputs = draw.sizes(draw.work(1e3, 2e6), 2, least=4)
    inputs = group * max(1, inputs // group)

    def function(x: Any, packed: Any, scale: Any) -> Any:
        low, high = (packed & 15).astype(jnp.float32) - 8, (packed >> 4).astype(jnp.float32) - 8
        w = jnp.stack([low, high], axis=1).reshape(inputs, outputs)
        w = w.reshape(inputs // group, group, outputs) * scale[:, None]
        return x @ w.reshape(inputs, outputs)

    return drawn(
        function, normal(rows, inputs), bits(inputs // 2, outputs, dtype="uint8"),
        uniform(inputs // group, outputs, low=0.01, high=0.1),
    )  # fmt: skip


@kind("integers")
def checksums(draw: Draw) -> Drawn:
    """A table of remainders, byte by byte, for several messages."""
    length, messages = draw.size(4, 400), draw.size(1, 500)

    def function(data: Any, table: Any) -> Any:
        def step(state: Any, byte: Any) -> Any:
            place = (state ^ byte.astype(jnp.uint32)) & np.uint32(255)
            return (state >> np.uint32(8)) ^ table[place], None

        return ~jax.lax.scan(step, jnp.full(messages, 0xFFFFFFFF, jnp.uint32), data)[0]

    return drawn(function, bits(length, messages, dtype="uint8"), bits(256))


@kind("integers")
def packed_bits(draw: Draw) -> Drawn:
    words, rows = draw.size(1, 5000), draw.size(1, 60)

    def function(flags: Any) -> Any:
        places = np.arange(32, dtype=np.uint32)
        packed = jnp.sum(flags.reshape(rows, words, 32).astype(jnp.uint32) << places, -1, dtype=jnp.uint32)
        return packed, jax.lax.population_count(packed)

    return drawn(function, booleans(rows, words * 32))


@kind("integers")
def fixed_point(draw: Draw) -> Drawn:
    """Blends, shifts and clips of small integers."""
    shape = draw.shape(2, 5e6)
    dtype = draw.pick("uint8", "uint8", "int16")
    high = 256 if dtype == "uint8" else 20_000

    def function(a: Any, b: Any, alpha: Any) -> Any:
        wide = a.astype(jnp.int32) * alpha + b.astype(jnp.int32) * (256 - alpha)
        mixed = jnp.clip((wide + 128) >> 8, 0, high - 1)
        return mixed.astype(a.dtype), jnp.maximum(a, b) - jnp.minimum(a, b)

    return drawn(
        function, integers(*shape, high=high, dtype=dtype), integers(*shape, high=high, dtype=dtype),
        integers(shape[-1], high=257),
    )  # fmt: skip


@kind("integers")
def division_and_remainder(draw: Draw) -> Drawn:
    shape = draw.shape(draw.pick(1, 2), 2e6)

    def function(x: Any, y: Any) -> Any:
        whole, rest = x // y, x % y
        return jnp.where(rest > y // 2, whole + 1, whole), jnp.gcd(x & 255, y) if x.size < 20_000 else rest

    return drawn(function, integers(*shape, low=-100_000, high=100_000), integers(*shape, low=1, high=1000))


@kind("integers")
def counted_pairs(draw: Draw) -> Drawn:
    """Co-occurrence: counts of pairs by one index made of two."""
    size, kinds_ = draw.elements(2e5), draw.size(2, 100)

    def function(a: Any, b: Any) -> Any:
        counts = jnp.bincount(a * kinds_ + b, length=kinds_ * kinds_).reshape(kinds_, kinds_)
        return counts, counts.sum(0)

    return drawn(function, integers(size, high=kinds_), integers(size, high=kinds_))


@kind("integers")
def space_filling_curve(draw: Draw) -> Drawn:
    """Morton codes of points, and their order."""
    size = draw.elements(1e5)

    def function(x: Any, y: Any) -> Any:
        def spread(v: Any) -> Any:
            for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
                v = (v | (v << np.uint32(shift))) & np.uint32(mask)
            return v

        code = spread((x * 65535).astype(jnp.uint32)) | (spread((y * 65535).astype(jnp.uint32)) << np.uint32(1))
        return jnp.sort(code)

    return drawn(function, uniform(size, high=0.99), uniform(size, high=0.99), share=0.01)
