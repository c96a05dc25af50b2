"""decompose-convolution: the numbers that StableHLO's interpreter gives for the convolutions themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect import ops
from hloforge.dialect.operations import operations
from hloforge.pipelines.decompose import convolution
from hloforge.pipelines.decompose.convolution import DecomposeConvolution
from hloforge.pipelines.legalize import long_loops
from tests.engines import interpret

_RANDOM = np.random.default_rng(5)
_CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "features": ((2, 6, 7, 5), (4, 3, 3, 2), {"feature_group_count": 2, "rhs_dilation": [2, 1]}),
    # IREE's kernel of these left zeros where another invocation had summed (Vulkan): ``habits`` 920002.
    "features-of-a-channel": ((1, 2, 4, 3, 5), (6, 1, 2, 2, 3), {"feature_group_count": 2, "rhs_dilation": [1, 2, 1]}),
    "reversed": ((2, 6, 7), (8, 3, 3), {"feature_group_count": 2, "window_reversal": [True]}),
    "images": ((6, 3, 5, 4), (4, 3, 2, 3), {"batch_group_count": 2, "lhs_dilation": [2, 1]}),
    "order": (
        (5, 4, 2, 6),
        (2, 4, 2, 3),
        {"feature_group_count": 2, "dimension_numbers": ops.ConvolutionDimensionNumbers.parse("0fb1_0oi1->1b0f")},
    ),
    "four-dimensions": ((2, 2, 3, 4, 3, 4), (3, 2, 2, 1, 3, 2), {}),
    "empty": ((2, 4, 3), (4, 2, 8), {"feature_group_count": 2}),
}


def _module(x: np.ndarray, k: np.ndarray, options: dict[str, Any]) -> Any:
    space = x.ndim - 2
    with hloforge.Builder("convolution") as builder:
        operands = [builder.parameter(n, hloforge.Shape.array("s32", *a.shape), f"p{n}") for n, a in enumerate((x, k))]
        strides, padding = [2] + [1] * (space - 1), [(1, 2)] * space
        result = ops.conv_with_general_padding(*operands, strides, padding, **options)
        return builder.build(result).module


def _agree(image: tuple[int, ...], kernel: tuple[int, ...], options: dict[str, Any]) -> None:
    x, k = (_RANDOM.integers(-9, 9, dims).astype(np.int32) for dims in (image, kernel))
    (want,) = interpret(_module(x, k, options), x, k)
    module = _module(x, k, options)
    DecomposeConvolution().run(module)
    assert not operations(module, ["stablehlo.convolution"])
    (got,) = interpret(module, x, k)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", _CASES)
def test_by_groups_and_along_four_dimensions(name: str) -> None:
    _agree(*_CASES[name])


def test_more_products_than_a_loop_may_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_loops, "_LIMIT", 20)
    _agree((2, 3, 9, 7), (4, 3, 3, 4), {"window_reversal": [False, True]})


# 2 images of 4 features, windows of 3 places, 4 bytes; a stride of 2 makes 4 results of 7 elements.
_A_PLACE = 2 * 4 * 3 * 4


@pytest.mark.parametrize("places", [1, 3, 4])
def test_windows_that_no_shader_reads_are_made_in_parts(places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "_LARGEST", places * _A_PLACE + 1)
    _agree((2, 4, 7), (2, 2, 3), {"feature_group_count": 2})


@pytest.mark.parametrize(
    ("limit", "counts"), [(4 * 7 * 90 * 4, [1, 1]), (2 * 7 * 90 * 4, [2, 1]), (3 * 90 * 4, [4, 3])]
)
def test_parts_of_two_dimensions(limit: int, counts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """2 images of 5 features and windows of 9 places; 4 by 7 results."""
    monkeypatch.setattr(convolution, "_LARGEST", limit)
    module = _module(np.zeros((2, 5, 6, 6), np.int32), np.zeros((5, 1, 3, 3), np.int32), {"feature_group_count": 5})
    (op,) = operations(module, ["stablehlo.convolution"])
    parts = convolution._parts(op)
    assert parts is not None
    assert [len(of_dimension) for of_dimension in parts] == counts
    _agree((2, 4, 6, 6), (4, 2, 3, 3), {"feature_group_count": 2, "window_reversal": [True, False]})


def test_windows_of_too_many_parts_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, most in ((_A_PLACE - 1, 64), (_A_PLACE, 3)):
        monkeypatch.setattr(convolution, "_LARGEST", limit)
        monkeypatch.setattr(convolution, "_MOST_PARTS", most)
        module = _module(np.zeros((2, 4, 7), np.int32), np.zeros((2, 2, 3), np.int32), {"feature_group_count": 2})
        DecomposeConvolution().run(module)
        assert operations(module, ["stablehlo.convolution"])


def test_what_has_a_kernel_is_left() -> None:
    x, k = np.zeros((1, 3, 6, 6), np.int32), np.zeros((6, 1, 3, 3), np.int32)
    module = _module(x, k, {"feature_group_count": 3})
    DecomposeConvolution().run(module)
    assert operations(module, ["stablehlo.convolution"])
