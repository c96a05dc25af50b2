"""``stablehlo.convolution`` in all its forms, as code of our own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from jax import lax

from tests.pipelines.codegen.jax_programs import check, normal
from tests.pipelines.codegen.whole_programs import check as check_text

_LAST, _FIRST = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


@dataclass(frozen=True)
class _Form:
    image: tuple[int, ...]
    kernel: tuple[int, ...]
    numbers: tuple[str, str, str] = _LAST
    strides: tuple[int, ...] = (1, 1)
    padding: Any = "SAME"
    base: tuple[int, ...] | None = None
    dilation: tuple[int, ...] | None = None
    groups: int = 1
    batch_groups: int = 1
    dtype: Any = np.float32
    result: Any = None


_FORMS = {
    "features last": _Form((2, 9, 9, 5), (3, 3, 5, 6)),
    "features first": _Form((2, 5, 9, 9), (6, 5, 3, 3), _FIRST, (2, 2), "VALID"),
    "any order": _Form((9, 5, 2, 7), (6, 3, 2, 5), ("HCNW", "OWHI", "WNCH")),
    "one by one": _Form((2, 7, 7, 8), (1, 1, 8, 6)),
    "depthwise": _Form((2, 9, 9, 8), (3, 3, 1, 8), groups=8),
    "groups": _Form((2, 9, 9, 8), (3, 3, 4, 6), groups=2),
    "groups, features first": _Form((2, 8, 9, 9), (6, 4, 3, 3), _FIRST, groups=2),
    "groups of images": _Form((4, 9, 9, 3), (3, 3, 3, 8), batch_groups=2),
    "transposed": _Form((2, 7, 7, 4), (4, 4, 4, 3), padding=((2, 2), (2, 2)), base=(2, 2)),
    "dilated": _Form((2, 11, 11, 4), (3, 3, 4, 3), dilation=(2, 2)),
    "negative padding": _Form((2, 9, 9, 4), (3, 3, 4, 3), padding=((-1, -2), (3, -1))),
    "one dimension": _Form((2, 20, 8), (5, 8, 6), ("NWC", "WIO", "NWC"), (1,)),
    "three dimensions": _Form((1, 4, 5, 6, 3), (3, 3, 3, 3, 4), ("NDHWC", "DHWIO", "NDHWC"), (1, 1, 1)),
    "no dimension": _Form((3, 8), (8, 6), ("NC", "IO", "NC"), (), ()),
    "no feature": _Form((2, 5, 5, 0), (3, 3, 0, 6)),
    "no image": _Form((0, 5, 5, 3), (3, 3, 3, 6)),
    "f64": _Form((2, 7, 7, 4), (3, 3, 4, 3), dtype=np.float64),
    "bf16": _Form((2, 7, 7, 4), (3, 3, 4, 3), dtype=ml_dtypes.bfloat16),
    "complex": _Form((2, 7, 7, 4), (3, 3, 4, 3), dtype=np.complex64),
    "bytes": _Form((2, 7, 7, 4), (3, 3, 4, 3), dtype=np.int8, result=np.int32),
}


@pytest.mark.parametrize("name", _FORMS)
def test_a_convolution_is_xlas(name: str) -> None:
    form = _FORMS[name]

    def convolved(image: jax.Array, kernel: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(
            image,
            kernel,
            form.strides,
            form.padding,
            form.base,
            form.dilation,
            form.numbers,
            form.groups,
            form.batch_groups,
            preferred_element_type=form.result,
        )

    check(convolved, *((normal(*shape) * 3).astype(form.dtype) for shape in (form.image, form.kernel)))


# Rows of whole vectors of any processor, nearly so, and longer by one.
@pytest.mark.wide(4)
@pytest.mark.parametrize("width", [16, 31, 32, 33, 47, 64])
@pytest.mark.parametrize("seed", range(3))
def test_rows_of_whole_vectors(width: int, seed: int) -> None:
    """Gaps between rows of contiguous pixels are left out, whatever the strides, dilations, groups and dimensions."""
    random = np.random.default_rng(100 * width + seed)
    rank, groups = (int(random.integers(2, 4)), int(random.choice([1, 1, 2])))
    window = [int(size) for size in random.integers(1, 5, rank)]
    strides, dilation = ([int(size) for size in random.choice([1, 1, 2], rank)] for _ in range(2))
    # With this image the result's rows are as long as asked for.
    low, high = (int(size) for size in random.integers(0, 3, 2))
    seen = (width - 1) * strides[-1] + (window[-1] - 1) * dilation[-1] + 1
    sizes = [*(int(size) for size in random.integers(9, 14, rank - 1)), max(seen - low - high, 1)]
    inputs, outputs = groups * int(random.integers(1, 9)), groups * int(random.integers(2, 12))
    letters = "DHW"[-rank:]
    numbers = f"NC{letters}", f"OI{letters}", f"NC{letters}"
    image = normal(int(random.integers(1, 4)), inputs, *sizes)
    kernel = normal(outputs, inputs // groups, *window)

    def convolved(x: Any, w: Any) -> Any:
        padding = [(1, 0)] * (rank - 1) + [(low, high)]
        found = lax.conv_general_dilated(
            x, w, strides, padding, rhs_dilation=dilation, dimension_numbers=numbers, feature_group_count=groups
        )
        assert found.shape[-1] == width
        return found, jax.nn.relu(found)

    check(convolved, image, kernel)


@pytest.mark.parametrize("element", ["f32", "complex<f32>", "i1"])
def test_windows_may_be_reversed(element: str) -> None:
    image, kernel, result = (f"tensor<{size}x{element}>" for size in ("2x9x9x3", "3x4x3x5", "2x7x9x5"))
    text = f"""func.func @main(%x: {image}, %w: {kernel}) -> {result} {{
      %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{stride = [1, 1], pad = [[0, 0], [2, 1]], reverse = [true, false]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({image}, {kernel}) -> {result}
      return %r : {result} }}"""
    dtype = {"f32": np.float32, "complex<f32>": np.complex64, "i1": np.bool_}[element]
    # Integers, whose sums nothing rounds.
    check_text(text, *(np.rint(normal(*shape)).astype(dtype) for shape in ((2, 9, 9, 3), (3, 4, 3, 5))))
