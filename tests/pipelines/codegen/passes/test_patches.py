"""Windows that do not overlap, and their gradients, are products, with XLA's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax

import hloforge
from hloforge.pipelines.codegen.lowering import lower
from tests.pipelines.codegen import whole_programs
from tests.pipelines.codegen.jax_programs import check, normal

Function = Callable[..., Any]


def _leaves_no_convolution(function: Function, *arrays: Any) -> None:
    program = hloforge.as_program(jax.jit(function).lower(*arrays))
    lower(program.module)
    assert "stablehlo.convolution" not in program.text()
    assert "stablehlo.dot_general" in program.text()


def _permuted(letters: str, order: Any) -> str:
    return "".join(letters[place] for place in order if place < len(letters))


@given(
    windows=st.lists(st.sampled_from([1, 2, 3, 8]), min_size=1, max_size=3).filter(lambda sizes: max(sizes) > 1),
    counts=st.tuples(*(st.integers(1, 3) for _ in range(3))),
    orders=st.tuples(*(st.permutations(range(5)) for _ in range(3))),
    dtype=st.sampled_from([np.float32, jnp.bfloat16, jnp.bfloat16]),
    way=st.sampled_from(["forward", "image", "weights"]),
    rest=st.integers(0, 1),
)
@settings(max_examples=10, deadline=None)
def test_patches_and_their_gradients(
    windows: list[int], counts: Any, orders: Any, dtype: Any, way: str, rest: int
) -> None:
    """In any order of dimensions; some have patches of one position, and images end with what is in no patch."""
    space = "DHW"[: len(windows)]
    by_name = dict(zip(space, windows, strict=True))
    images = {name: size * count for (name, size), count in zip(by_name.items(), counts, strict=False)}
    images = {name: size + (rest if by_name[name] > 1 and way == "forward" else 0) for name, size in images.items()}
    letters = ("NC" + space, "IO" + space, "NC" + space)
    names = [_permuted(one, order) for one, order in zip(letters, orders, strict=True)]
    sizes = {"N": 6, "C": 7, "I": 7, "O": 17}
    x = np.round(normal(*(sizes.get(name) or images[name] for name in names[0])) * 4)
    w = np.round(normal(*(sizes.get(name) or by_name[name] for name in names[1])) * 4)
    # JAX takes strides in the kernel's order.
    steps = [by_name[name] for name in names[1] if name in space]

    def forward(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, steps, "VALID", dimension_numbers=tuple(names))

    def gradient(x: Any, w: Any, slope: Any) -> Any:
        return jax.vjp(forward, x, w)[1](slope)[way == "weights"]

    x, w = x.astype(dtype), w.astype(dtype)
    if way == "forward":
        check(forward, x, w)
        return
    slope = np.round(normal(*jax.eval_shape(forward, x, w).shape) * 4).astype(dtype)
    # Gradients of one patch have windows of one position, which have code.
    if dtype == jnp.bfloat16 and way == "weights" and max(counts[: len(windows)]) > 1:
        _leaves_no_convolution(gradient, x, w, slope)
    check(gradient, x, w, slope)


@pytest.mark.parametrize(
    ("order", "window"), [("NCHW", (1, 4)), ("NCHW", (3, 5)), ("NHWC", (2, 2)), ("NWHC", (2, 1)), ("NHCW", (8, 7))]
)
def test_rows_of_patches(order: str, window: tuple[int, int]) -> None:
    """Of an image that ends with what is in no patch."""

    def function(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, window, "VALID", dimension_numbers=(order, "OIHW", "NCHW"))

    sizes = {"N": 2, "C": 3, "H": 3 * window[0] + 1, "W": 2 * window[1]}
    x = np.round(normal(*(sizes[name] for name in order)) * 4).astype(jnp.bfloat16)
    w = np.round(normal(20, 3, *window) * 4).astype(jnp.bfloat16)
    _leaves_no_convolution(function, x, w)
    check(function, x, w)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_reversed_windows(is_reversed: bool) -> None:
    text = f"""func.func @main(%x: tensor<6x15x2xbf16>, %w: tensor<5x2x16xbf16>) -> tensor<6x3x16xf32> {{
      %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
        window = {{stride = [5], reverse = [{str(is_reversed).lower()}]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<6x15x2xbf16>, tensor<5x2x16xbf16>) -> tensor<6x3x16xf32>
      return %r : tensor<6x3x16xf32>
    }}"""
    x, w = (np.round(normal(*shape) * 4).astype(jnp.bfloat16) for shape in ((6, 15, 2), (5, 2, 16)))
    whole_programs.check(text, x, w)


@pytest.mark.parametrize(("window", "stride", "pad"), [(3, 2, 0), (2, 3, 0), (3, 3, 1)])
def test_windows_that_overlap_or_have_gaps_or_padding_stay(window: int, stride: int, pad: int) -> None:
    def function(x: Any, w: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, w, (stride,) * 2, [(pad, pad)] * 2, dimension_numbers=numbers)

    x, w = normal(2, 9, 9, 20).astype(jnp.bfloat16), normal(window, window, 20, 17).astype(jnp.bfloat16)
    program = hloforge.as_program(jax.jit(function).lower(x, w))
    lower(program.module)
    assert "stablehlo.convolution" in program.text()
    check(function, x, w)
