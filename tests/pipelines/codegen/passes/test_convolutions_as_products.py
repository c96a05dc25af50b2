"""Convolutions of images with one position along each window are products, with XLA's numbers."""

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
from tests.pipelines.codegen import whole_programs
from tests.pipelines.codegen.jax_programs import check, normal


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int32])
def test_without_windows(dtype: Any) -> None:
    x, w = normal(5, 7).astype(dtype), normal(7, 3).astype(dtype)
    check(lambda x, w: lax.conv_general_dilated(x, w, (), [], dimension_numbers=("NC", "IO", "NC")), x, w)


@given(
    windows=st.lists(st.integers(1, 5), min_size=1, max_size=2),
    images=st.lists(st.sampled_from([1, 1, 4]), min_size=2, max_size=2),
    edges=st.lists(st.tuples(st.integers(-1, 5), st.integers(-1, 5)), min_size=2, max_size=2),
    features_first=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_images_of_one_position(windows: Any, images: Any, edges: Any, features_first: bool) -> None:
    rank = len(windows)
    images, edges = images[:rank], edges[:rank]
    if any(image + sum(edge) < window for image, edge, window in zip(images, edges, windows, strict=True)):
        return
    if any(low < 0 < high for low, high in edges):
        return  # XLA's CPU client reads beside the image
    spatial = "HW"[-rank:]
    names = ("NC" + spatial, "OI" + spatial) if features_first else (f"N{spatial}C", spatial + "IO")
    sizes = {"N": 3, "C": 4, "I": 4, "O": 5}
    x = normal(*(sizes.get(name) or images[spatial.index(name)] for name in names[0]))
    w = normal(*(sizes.get(name) or windows[spatial.index(name)] for name in names[1]))
    numbers = (*names, names[0])
    check(lambda x, w: lax.conv_general_dilated(x, w, (1,) * rank, edges, dimension_numbers=numbers), x, w)


@given(
    kinds=st.lists(st.sampled_from(["whole", "whole", "batch", "point"]), min_size=1, max_size=3),
    orders=st.tuples(*(st.permutations(range(5)) for _ in range(3))),
    dtype=st.sampled_from([np.float32, jnp.bfloat16, np.int32]),
    step=st.integers(1, 2),
)
@settings(max_examples=12, deadline=None)
def test_one_result_of_an_image(kinds: list[str], orders: Any, dtype: Any, step: int) -> None:
    """Windows as large as the image, beside windows of one position and images of one, in any order of dimensions."""
    space = "DHW"[: len(kinds)]
    image, window = ({"whole": 4, "batch": 5, "point": 1}, {"whole": 4, "batch": 1, "point": 3})
    letters = ["NC" + space, "IO" + space, "NC" + space]
    names = [
        "".join(one[place] for place in order if place < len(one)) for one, order in zip(letters, orders, strict=True)
    ]
    by_name = dict(zip(space, kinds, strict=True))
    x = normal(*({"N": 6, "C": 7}.get(name) or image[by_name[name]] for name in names[0])) * 4
    w = normal(*({"I": 7, "O": 9}.get(name) or window[by_name[name]] for name in names[1])) * 4
    # JAX takes both in the kernel's order.
    kinds = [by_name[name] for name in names[1] if name in space]
    edges = [(2, 2) if kind == "point" else (0, 0) for kind in kinds]
    steps = [step if kind == "whole" else 1 for kind in kinds]

    def function(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, steps, edges, dimension_numbers=tuple(names))

    if "whole" in kinds:
        program = hloforge.as_program(jax.jit(function).lower(x, w))
        lower(program.module)
        assert "stablehlo.convolution" not in program.text()
    check(function, x.astype(dtype), w.astype(dtype))


@pytest.mark.parametrize("order", ["NHWC", "NCHW"])
def test_gradients_of_single_pixels(order: str) -> None:
    x, w = normal(4, 6, 5, 7), normal(8, 7, 1, 1)
    x, w = (x if order == "NHWC" else np.moveaxis(x, -1, 1)), (w if order == "NCHW" else w.transpose(2, 3, 1, 0))
    numbers = order, "HWIO" if order == "NHWC" else "OIHW", order

    def gradient(x: Any, w: Any) -> Any:
        return jax.grad(
            lambda w: jnp.sin(lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=numbers)).sum()
        )(w)

    check(gradient, x, w)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_reversed_images_of_one_result(is_reversed: bool) -> None:
    text = f"""func.func @main(%x: tensor<6x5x2xf32>, %w: tensor<5x2x4xf32>) -> tensor<6x1x4xf32> {{
      %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
        window = {{reverse = [{str(is_reversed).lower()}]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<6x5x2xf32>, tensor<5x2x4xf32>) -> tensor<6x1x4xf32>
      return %r : tensor<6x1x4xf32>
    }}"""
    x, w = (np.round(normal(*shape) * 4) for shape in ((6, 5, 2), (5, 2, 4)))
    whole_programs.check(text, x, w)


@pytest.mark.parametrize(("low", "high"), [(2, 2), (3, 1), (1, 4)])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_reversed_windows(low: int, high: int, is_reversed: bool) -> None:
    result = f"tensor<6x{low + high - 1}x4xf32>"
    text = f"""func.func @main(%x: tensor<6x1x2xf32>, %w: tensor<3x2x4xf32>) -> {result} {{
      %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
        window = {{pad = [[{low}, {high}]], reverse = [{str(is_reversed).lower()}]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<6x1x2xf32>, tensor<3x2x4xf32>) -> {result}
      return %r : {result}
    }}"""
    x, w = (np.round(normal(*shape) * 4) for shape in ((6, 1, 2), (3, 2, 4)))
    whole_programs.check(text, x, w)


def test_no_position_of_padding_is_multiplied() -> None:
    def full(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (1,), [(7, 7)], dimension_numbers=("NWC", "WIO", "NWC"))

    program = hloforge.as_program(jax.jit(full).lower(normal(2, 1, 9), normal(8, 9, 5)))
    lower(program.module)
    assert "stablehlo.convolution" not in program.text()
    assert "stablehlo.dot_general" in program.text()
