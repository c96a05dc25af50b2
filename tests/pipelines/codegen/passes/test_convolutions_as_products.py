"""Convolutions of images with one position along each window are products, with XLA's numbers."""

from __future__ import annotations

from typing import Any

import jax
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

    program = hloforge.as_program(jax.jit(full).lower(normal(2, 1, 3), normal(8, 3, 5)))
    lower(program.module)
    assert "stablehlo.convolution" not in program.text()
    assert "stablehlo.dot_general" in program.text()
