"""Convolutions of bf16 images with gaps, transposed ones and gradients of strides, with XLA's numbers."""

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

_NUMBERS = ("NHWC", "HWIO", "NHWC")


@given(
    gaps=st.tuples(st.integers(1, 3), st.integers(2, 3)),
    window=st.tuples(st.integers(1, 4), st.integers(1, 5)),
    low=st.tuples(st.integers(-1, 4), st.integers(0, 3)),
    high=st.integers(0, 3),
    features=st.sampled_from([(2, 16, 1), (17, 33, 1), (6, 5, 1), (4, 16, 3)]),
    last=st.booleans(),
)
@settings(max_examples=12, deadline=None)
def test_with_gaps(gaps: Any, window: Any, low: Any, high: int, features: Any, last: bool) -> None:
    """Whole numbers, of which sums are exact whatever their order is."""
    inputs, outputs, groups = features
    image = [2, 6, 5, inputs * groups] if last else [2, inputs * groups, 6, 5]
    x = np.round(normal(*image) * 2).astype(jnp.bfloat16)
    w = np.round(normal(*window, inputs, outputs * groups) * 2).astype(jnp.bfloat16)
    numbers = _NUMBERS if last else ("NCHW", "HWIO", "NCHW")

    def transposed(x: Any, w: Any) -> Any:
        padding = [(low[0], high), (low[1], high)]
        return lax.conv_general_dilated(
            x, w, (1, 1), padding, gaps, dimension_numbers=numbers, feature_group_count=groups
        )

    if min(jax.eval_shape(transposed, x, w).shape) > 0:
        check(transposed, x, w)


@pytest.mark.parametrize(("stride", "features"), [(2, 12), (3, 12), (2, 32), (3, 40)])
def test_gradients_of_strides(stride: int, features: int) -> None:
    """Phases of few features are convolutions of their own; those of many leave the gaps out where they are."""
    image, weights = normal(2, 12, 12, features), normal(3, 3, features, 48) / 16
    x, w = (one.astype(jnp.bfloat16) for one in (image, weights))

    def forward(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=_NUMBERS)

    slope = normal(*jax.eval_shape(forward, x, w).shape).astype(jnp.bfloat16)

    def gradient(x: Any, w: Any, slope: Any) -> Any:
        return jax.vjp(forward, x, w)[1](slope)[0]

    program = hloforge.as_program(jax.jit(gradient).lower(x, w, slope))
    lower(program.module)
    assert (f"lhs_dilate = [{stride}" in program.text()) == (features >= 16)
    check(gradient, x, w, slope)
