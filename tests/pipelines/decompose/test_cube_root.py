"""decompose-cube-root against numpy in extended precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hloforge.pipelines.decompose.cube_root import DecomposeCubeRoot
from tests.elementwise import SPECIAL, assert_special, evaluate, worst


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_magnitudes_are_accurate(dtype: Any) -> None:
    rng = np.random.default_rng(4)
    row = np.finfo(dtype)
    x = (2.0 ** rng.uniform(row.minexp, row.maxexp - 1, 500) * rng.choice([-1, 1], 500)).astype(dtype)
    got = evaluate("cbrt", (DecomposeCubeRoot(),), x)
    assert worst(got, np.cbrt(x.astype(np.longdouble))) < 0.67


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_special_values(dtype: Any) -> None:
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(dtype)
    want = np.cbrt(x.astype(np.float64)).astype(dtype)
    assert_special(evaluate("cbrt", (DecomposeCubeRoot(),), x), want, x)


def test_cubes_have_exact_roots() -> None:
    root = np.arange(1.0, 200.0)
    assert evaluate("cbrt", (DecomposeCubeRoot(),), root**3).tolist() == root.tolist()
