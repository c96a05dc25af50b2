"""legalize-transposed-convolutions: gaps between pixels as products and shifted sums, beside XLA's client."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

import hloforge
from hloforge.pipelines.codegen.lowering import lower
from tests.pipelines.codegen.jax_programs import check, normal

_LAST, _FIRST = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
# Image, kernel, gaps, paddings, and whether it is written as a product.
_CASES: list[tuple[Any, ...]] = [
    ((4, 9, 8, 92), (5, 5, 92, 3), (3, 3), [(3, 3), (3, 3)], True),
    ((1, 7, 6, 16), (4, 4, 16, 8), (2, 2), [(2, 2), (2, 2)], True),
    ((2, 5, 7, 40), (3, 3, 40, 24), (2, 2), [(2, 2), (1, 2)], True),
    ((2, 5, 4, 16), (3, 2, 16, 5), (2, 2), [(0, 0), (5, -1)], True),
    ((1, 6, 6, 8), (3, 1, 8, 3), (3, 1), [(-2, 4), (0, 0)], True),
    ((1, 6, 6, 8), (2, 2, 8, 32), (2, 2), [(1, 1), (1, 1)], False),
    ((1, 6, 6, 8), (2, 2, 8, 3), (3, 3), [(1, 1), (1, 1)], True),
]


@pytest.mark.parametrize(("image", "kernel", "gaps", "padding", "is_product"), _CASES)
def test_transposed(image: Any, kernel: Any, gaps: Any, padding: Any, is_product: bool) -> None:
    def function(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (1, 1), padding, lhs_dilation=gaps, dimension_numbers=_LAST)

    x, w = normal(*image), normal(*kernel)
    check(function, x, w)
    program = hloforge.as_program(jax.jit(function).lower(x, w))
    lower(program.module)
    assert ("stablehlo.convolution" not in str(program.module)) == is_product


@pytest.mark.parametrize("numbers", [_LAST, _FIRST])
def test_gradient_of_a_first_layer(numbers: Any) -> None:
    def loss(x: Any, w: Any) -> Any:
        return (lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=numbers) ** 2).sum()

    image, kernel = ((2, 11, 12, 3), (5, 5, 3, 16)) if numbers is _LAST else ((2, 3, 11, 12), (16, 3, 5, 5))
    check(jax.grad(loss), normal(*image), normal(*kernel), tolerance=1e-4)


def test_reversed_windows_and_one_dimension() -> None:
    def function(x: Any, w: Any) -> Any:
        return lax.conv_transpose(x, w, (3,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"), transpose_kernel=True)

    check(function, normal(2, 9, 12), normal(5, 4, 12, dtype=np.float64).astype(np.float32))


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize(
    ("gaps", "padding"), [((2, 2), [(2, 2), (2, 2)]), ((3, 1), [(4, 3), (1, 1)]), ((2, 3), [(0, 1)] * 2)]
)
def test_sizes_that_are_no_multiple_of_the_gaps(groups: int, gaps: Any, padding: Any) -> None:
    """With features first, a longer result is cut, and nothing is multiplied by the gaps."""

    def function(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, (1, 1), padding, lhs_dilation=gaps, dimension_numbers=_FIRST, feature_group_count=groups
        )

    check(function, normal(2, 16, 9, 11), normal(12, 16 // groups, 3, 3))


# Numbers, strides, gaps between pixels and weights, groups.
_GAPS: list[tuple[Any, ...]] = [
    (_FIRST, (1, 1), (2, 2), (2, 2), 1),
    (_LAST, (1, 1), (4, 6), (6, 9), 1),
    (_FIRST, (1, 1), (3, 2), (2, 3), 1),
    (_FIRST, (1, 1), (2, 4), (3, 2), 2),
    (_LAST, (1, 2), (2, 3), (3, 1), 2),
    (_FIRST, (3, 1), (2, 1), (2, 5), 16),
]


@pytest.mark.parametrize(("numbers", "strides", "gaps", "dilation", "groups"), _GAPS)
@pytest.mark.parametrize("window", [1, 3])
def test_windows_with_gaps(numbers: Any, strides: Any, gaps: Any, dilation: Any, groups: int, window: int) -> None:
    """Of common divisors, and of none, with groups: no zeros are multiplied. Strides leave some where they are few."""

    def function(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, strides, [(4, 3), (5, 7)], gaps, dilation, numbers, feature_group_count=groups
        )

    image, kernel = (2, 16, 5, 6), (32, 16 // groups, window, window)
    if numbers is _LAST:
        image, kernel = (2, 5, 6, 16), (window, window, 16 // groups, 32)
    x, w = normal(*image), normal(*kernel)
    check(function, x, w)
    program = hloforge.as_program(jax.jit(function).lower(x, w))
    lower(program.module)
    if strides == (1, 1):
        assert "lhs_dilate = [2" not in str(program.module)
