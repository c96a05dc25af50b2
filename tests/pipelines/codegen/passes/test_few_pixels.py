"""Convolutions of few pixels: products of their weights, where they lie, by patches."""

from __future__ import annotations

from typing import Any

import jax
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.codegen.passes.product_forms import LegalizeProductForms
from tests.pipelines.codegen.jax_programs import check, normal


@pytest.mark.parametrize(
    ("labels", "image", "weights", "settings"),
    [
        (("NCH", "OIH", "NCH"), (1, 26, 15), (96, 26, 7), {"padding": [(3, 3)]}),
        (("NCH", "OIH", "NCH"), (3, 24, 8), (128, 24, 6), {"padding": [(2, 1)], "window_strides": (2,)}),
        (("NHC", "OHI", "NHC"), (1, 20, 26), (96, 7, 26), {"padding": [(0, 3)], "rhs_dilation": (2,)}),
        (("NCHW", "OIHW", "NCHW"), (2, 20, 3, 4), (128, 20, 3, 3), {"padding": [(1, 1), (1, 0)]}),
        (("NHWC", "OIHW", "NHWC"), (1, 4, 5, 20), (128, 20, 3, 3), {"padding": [(-1, 1), (1, 2)]}),
        (("NHWC", "OHWI", "NCHW"), (1, 5, 5, 20), (128, 3, 3, 20), {"padding": [(1, 1), (0, 1)]}),
    ],
)
def test_weights_are_multiplied_where_they_lie(labels: Any, image: Any, weights: Any, settings: Any) -> None:
    named = {"window_strides": (1,) * (len(image) - 2), **settings}

    def convolution(x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, dimension_numbers=labels, **named)

    arrays = normal(*image), normal(*weights)
    module = hloforge.read(jax.jit(convolution).lower(*arrays).as_text().encode()).module
    LegalizeProductForms().run(module)
    assert not operations(module, {"stablehlo.convolution"})
    check(convolution, *arrays)
