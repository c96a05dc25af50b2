"""Elementwise operations on sums of integers, stored in place of these: judged by XLA's client."""

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
