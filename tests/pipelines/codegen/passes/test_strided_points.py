"""Convolutions of windows of one position with strides, and their gradients, with XLA's numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax

import hloforge
from hloforge.pipelines.codegen.lowering import lower
from tests.pipelines.codegen.jax_programs import check, normal


@given(
    strides=st.lists(st.integers(1, 3), min_size=1, max_size=3).filter(lambda found: max(found) > 1),
    sizes=st.tuples(*(st.integers(2, 9) for _ in range(3))),
    last=st.booleans(),
    dtype=st.sampled_from([np.float32, jnp.bfloat16]),
    way=st.sampled_from(["forward", "image", "weights"]),
)
@settings(max_examples=15, deadline=None)
def test_single_positions_with_strides(strides: list[int], sizes: Any, last: bool, dtype: Any, way: str) -> None:
    """Images end where windows do, or later."""
    space = "DHW"[: len(strides)]
    order = ("N" + space + "C", space + "IO") if last else ("NC" + space, "OI" + space)
    numbers = (*order, order[0])
    letters = {"N": 3, "C": 7, "I": 7, "O": 17} | dict(zip(space, sizes, strict=False))
    x = np.round(normal(*(letters[one] for one in numbers[0])) * 4).astype(dtype)
    w = np.round(normal(*(1 if one in space else letters[one] for one in numbers[1])) * 4).astype(dtype)

    def forward(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, strides, "VALID", dimension_numbers=numbers)

    def gradient(x: Any, w: Any, slope: Any) -> Any:
        return jax.vjp(forward, x, w)[1](slope)[way == "weights"]

    if way == "forward":
        check(forward, x, w)
        return
    slope = np.round(normal(*jax.eval_shape(forward, x, w).shape) * 4).astype(dtype)
    check(gradient, x, w, slope)


@pytest.mark.parametrize("way", [0, 1])
def test_gradients_of_strides_are_products(way: int) -> None:
    """By the image a convolution of single pixels is left, which has no gaps; by the weights a product."""
    x, w, slope = normal(2, 9, 9, 20), normal(1, 1, 20, 17), normal(2, 5, 5, 17)

    def gradient(x: Any, w: Any, slope: Any) -> Any:
        def forward(x: Any, w: Any) -> Any:
            return lax.conv_general_dilated(x, w, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))

        return jax.vjp(forward, x, w)[1](slope)[way]

    program = hloforge.as_program(jax.jit(gradient).lower(x, w, slope))
    lower(program.module)
    assert "dilate = [2" not in program.text()
    assert ("stablehlo.dot_general" in program.text()) == bool(way)
    check(gradient, x, w, slope)
