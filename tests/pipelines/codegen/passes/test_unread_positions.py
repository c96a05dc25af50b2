"""Positions of windows that read padding alone are not multiplied, and the others give XLA's numbers."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.codegen.lowering import lower
from tests.pipelines.codegen.jax_programs import check, normal

_SIZES = st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(1, 9), st.integers(1, 2))


@given(sizes=st.lists(_SIZES, min_size=1, max_size=2), edges=st.lists(st.integers(0, 9), min_size=4, max_size=4))
@settings(max_examples=40, deadline=None)
def test_dilated_windows_over_small_images(sizes: Any, edges: Any) -> None:
    images, windows, strides, apart, spread = zip(*sizes, strict=True)
    pads = list(zip(edges[::2], edges[1::2], strict=True))[: len(sizes)]
    for image, window, dilation, between, pad in zip(images, windows, apart, spread, pads, strict=True):
        if (image - 1) * between + 1 + sum(pad) < (window - 1) * dilation + 1:
            return
    x, w = normal(2, *images, 3), normal(*windows, 3, 4)
    spatial = "HW"[: len(sizes)]
    names = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    check(lambda x, w: lax.conv_general_dilated(x, w, strides, pads, spread, apart, names), x, w)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("dilation", "left"), [(3, 3), (4, 1), (9, 1)])
def test_positions_that_are_left(dilation: int, left: int, reverse: bool) -> None:
    """The image has four elements, padded as the window is wide: of three positions the outer ones are beside it."""
    x, w = normal(2, 4, 3), normal(3, 3, 5)

    def function(x: jax.Array, w: jax.Array) -> jax.Array:
        w = lax.rev(w, [0]) if reverse else w
        return lax.conv_general_dilated(x, w, (1,), [(dilation, dilation)], (1,), (dilation,), ("NWC", "WIO", "NWC"))

    check(function, x, w)
    program = hloforge.as_program(jax.jit(function).lower(x, w))
    lower(program.module)
    windows = [op.operands[1].type.shape[0] for op in operations(program.module, {"stablehlo.convolution"})]
    assert windows == [left]


def test_gradients_of_both() -> None:
    x, w = normal(2, 8, 8, 3), normal(3, 3, 3, 4)

    def loss(x: jax.Array, w: jax.Array) -> jax.Array:
        y = lax.conv_general_dilated(x, w, (1, 1), [(6, 6), (12, 12)], None, (6, 12), ("NHWC", "HWIO", "NHWC"))
        return jax.numpy.sin(y).sum()

    check(jax.grad(loss, argnums=(0, 1)), x, w)
    assert np.abs(jax.grad(loss, argnums=1)(x, w)[0, 0]).max() == 0
