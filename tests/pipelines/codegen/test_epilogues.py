"""Elementwise operations on products' sums, stored in place of these: judged by XLA's client."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.pipelines.codegen.jax_programs import check

_RANDOM = np.random.default_rng(0)


def _bytes(*dims: int, dtype: Any = np.int8) -> Any:
    return _RANDOM.integers(-100, 100, dims).astype(dtype)


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_after_products(data: st.DataObject) -> None:
    """Batches, rows and columns of any number; what is read of columns, all places, and one number; two results."""
    batch = data.draw(st.sampled_from([(), (2,), (2, 3)]), "batch")
    m, k, n = (data.draw(st.integers(1, 40), name) for name in "mkn")
    x, w = _bytes(*batch, m, k), _bytes(*batch, k, n)
    other, column = _bytes(*batch, m, n, dtype=np.int32), _bytes(n, dtype=np.int32)
    row, one = _bytes(m, 1, dtype=np.int32), np.int32(5)
    kind = data.draw(st.sampled_from(["columns", "all", "row", "one", "two", "itself", "turned"]), "kind")

    def product(x: Any, w: Any, other: Any, column: Any, row: Any, one: Any) -> Any:
        sums = jnp.matmul(x, w, preferred_element_type=jnp.int32)
        found = jnp.maximum(sums + column, -1000) * one
        if kind == "all":
            return (found + other).astype(jnp.int8)
        if kind == "row":
            return (found + row).astype(jnp.int16)
        if kind == "two":
            return found.astype(jnp.float32) * 0.5, found ^ other
        if kind == "itself":
            return sums, found
        if kind == "turned":
            return found - sums[..., ::-1]
        return found.reshape(-1) if kind == "one" else found

    check(product, x, w, other, column, row, one)


@pytest.mark.parametrize("groups", [1, 6])
@pytest.mark.parametrize("low", [0, 1, 2])
def test_with_a_border(groups: int, low: int) -> None:
    """The next convolution takes the result with a border of its zero point; another reader takes it without."""
    image, kernel = _bytes(2, 9, 7, 6), _bytes(3, 2, 6 // groups, 6)
    other = _bytes(3, 3, 6, 5)

    def layers(x: Any, kernel: Any, other: Any) -> Any:
        sums = jax.lax.conv_general_dilated(
            x.astype(jnp.int32),
            kernel.astype(jnp.int32),
            (1, 1),
            "VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )
        small = jnp.clip(sums // 64, -128, 127).astype(jnp.int8)
        wide = jnp.pad(small, ((0, 0), (low, 1), (1, low), (0, 0)), constant_values=-7)
        found = jax.lax.conv_general_dilated(
            wide.astype(jnp.int32),
            other.astype(jnp.int32),
            (1, 1),
            "VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        return found, small.astype(jnp.int32).sum()

    check(layers, image, kernel, other)


@pytest.mark.wide(2)
@pytest.mark.parametrize("features", range(1, 10))
def test_features(features: int) -> None:
    """Few features have vectors along pixels."""

    def layer(x: Any, kernel: Any) -> Any:
        sums = jax.lax.conv_general_dilated(
            x.astype(jnp.int32), kernel.astype(jnp.int32), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return (sums + jnp.arange(features, dtype=jnp.int32)).astype(jnp.int8)

    check(layer, _bytes(1, 9, 12, 4), _bytes(3, 3, 4, features))


def test_in_a_loop() -> None:
    """Sums that a loop carries on, changed where they are read."""
    x, w = _bytes(8, 8), _bytes(8, 8)

    def loop(x: Any, w: Any) -> Any:
        def turn(_: Any, state: Any) -> Any:
            sums = jnp.matmul(state, w, preferred_element_type=jnp.int32)
            return (sums + state).astype(jnp.int8)

        return jax.lax.fori_loop(0, 5, turn, x)

    check(loop, x, w)


def test_what_depends_on_another_sum() -> None:
    """A number of the sums themselves is no part of their loop."""
    x, w = _bytes(5, 7), _bytes(7, 9)

    def centered(x: Any, w: Any) -> Any:
        sums = jnp.matmul(x, w, preferred_element_type=jnp.int32)
        return sums - sums[2, 3], sums.max() - sums

    check(centered, x, w)


def _floats(*dims: int, dtype: Any = np.float32) -> Any:
    return _RANDOM.normal(size=dims).astype(dtype)


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_after_products_of_floats(data: st.DataObject) -> None:
    """Biases of rows and columns, flags, residuals, other orders and shapes of the result, and narrow types."""
    batch = data.draw(st.sampled_from([(), (2,), (3, 2)]), "batch")
    m, k, n = (data.draw(st.integers(1, 40), name) for name in "mkn")
    dtype = data.draw(st.sampled_from([np.float32, np.float64, jnp.bfloat16, np.float16]), "type")
    x, w = _floats(*batch, m, k, dtype=dtype), _floats(*batch, k, n, dtype=dtype)
    other, column, row = _floats(*batch, m, n, dtype=dtype), _floats(n, dtype=dtype), _floats(m, 1, dtype=dtype)
    kind = data.draw(st.sampled_from(["bound", "all", "row", "leaky", "turned", "places", "narrow", "flags"]), "kind")

    def product(x: Any, w: Any, other: Any, column: Any, row: Any) -> Any:
        found = jnp.matmul(x, w) + column
        if kind == "all":
            return jnp.maximum(found, 0) + other
        if kind == "row":
            return found * row
        if kind == "leaky":
            return jnp.where(found > 0, found, found * dtype(0.25))
        if kind == "turned":
            # Columns stay next to each other.
            return jnp.swapaxes(jnp.maximum(found, -1).reshape(-1, m, n), 0, 1)
        if kind == "places":
            return found + jnp.arange(m, dtype=dtype)[:, None]
        if kind == "narrow":
            return jnp.clip(jnp.round(found * dtype(8)), -100, 100).astype(jnp.int8)
        return (found > 0) if kind == "flags" else jnp.maximum(found, 0)

    check(product, x, w, other, column, row)


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_after_convolutions_of_floats(data: st.DataObject) -> None:
    """Features before or after pixels, groups, strides, zeros between pixels, one spatial dimension to three."""
    rank = data.draw(st.integers(1, 3), "rank")
    groups = data.draw(st.sampled_from([1, 1, 2, 6]), "groups")
    features, stride, base = (data.draw(st.integers(1, 3), name) for name in ("features", "stride", "base"))
    is_last = data.draw(st.booleans(), "features last")
    image = _floats(2, 6, *(data.draw(st.integers(3, 19), "size") for _ in range(rank)))
    kernel = _floats(groups * features, 6 // groups, *[3] * rank)
    if is_last:
        image, kernel = np.moveaxis(image, 1, -1).copy(), np.moveaxis(kernel, (0, 1), (-1, -2)).copy()
    spatial = "DHW"[:rank]
    numbers = (
        (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
        if is_last
        else (f"NC{spatial}", f"OI{spatial}", f"NC{spatial}")
    )
    scale = _floats(groups * features, *[1] * (0 if is_last else rank))

    def layer(image: Any, kernel: Any, scale: Any) -> Any:
        found = jax.lax.conv_general_dilated(
            image, kernel, [stride] * rank, [(1, 2)] * rank, [base] * rank, None, numbers, groups
        )
        bounded = jnp.maximum(found * scale + scale, 0)
        return bounded, bounded * jnp.arange(found.shape[-1], dtype=np.float32)[0] - scale

    check(layer, image, kernel, scale)


def test_a_carry_that_is_read_where_it_is_written() -> None:
    """Sums are added to what a loop carries on."""
    x, w = _floats(9, 40), _floats(40, 40) / 40

    def loop(x: Any, w: Any) -> Any:
        return jax.lax.fori_loop(0, 5, lambda _, state: state + jnp.maximum(state @ w, 0), x)

    check(loop, x, w)
