"""Sorts along dimensions that are named in each way that StableHLO has."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pipelines.codegen.whole_programs import check


@pytest.mark.parametrize("attributes", ["", *(f"{{dimension = {d} : i64}}" for d in (-1, -2, 0))])
def test_the_dimension_of_a_sort(attributes: str) -> None:
    check(
        f"""func.func @main(%a: tensor<5x7xf32>) -> tensor<5x7xf32> {{
          %0 = "stablehlo.sort"(%a) ({{
          ^bb0(%x: tensor<f32>, %y: tensor<f32>):
            %1 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1>
          }}) {attributes} : (tensor<5x7xf32>) -> tensor<5x7xf32>
          return %0 : tensor<5x7xf32> }}""",
        np.random.default_rng(3).standard_normal((5, 7)).astype(np.float32),
    )
