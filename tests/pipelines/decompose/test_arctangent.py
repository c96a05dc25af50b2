"""decompose-arctangent against numpy in extended precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hloforge.pipelines.decompose.arctangent import DecomposeArctangent
from tests.elementwise import PAIRS, assert_special, evaluate, worst


@pytest.mark.parametrize("decades", [0.3, 3, 30, 300])
def test_all_quadrants_are_accurate(decades: float) -> None:
    rng = np.random.default_rng(6)
    y, x = (10.0 ** rng.uniform(-decades, decades, 300) * rng.choice([-1, 1], 300) for _ in range(2))
    got = evaluate("atan2", (DecomposeArctangent(),), y, x)
    assert worst(got, np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))) < 0.75


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_special_values(dtype: Any) -> None:
    with np.errstate(all="ignore"):
        y, x = (values.astype(dtype) for values in PAIRS)
        want = np.arctan2(y.astype(np.float64), x.astype(np.float64)).astype(dtype)
    assert_special(evaluate("atan2", (DecomposeArctangent(),), y, x), want, y, x)
