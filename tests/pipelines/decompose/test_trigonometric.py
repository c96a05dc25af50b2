"""decompose-trigonometric against numpy in extended precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hloforge.pipelines.decompose.trigonometric import DecomposeTrigonometric
from tests.elementwise import SPECIAL, assert_special, evaluate, worst

FUNCTIONS = {"sine": np.sin, "cosine": np.cos, "tan": np.tan}
# The float64 and the float32 closest to a multiple of pi/2, and neighbours of small multiples.
HARD = [6381956970095103.0 * 2.0**797, 16367173.0 * 2.0**72, np.pi / 4, np.pi / 2, np.pi, 1.5 * np.pi, 2e16, 22.0]


def angles(dtype: Any) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(7)
    large = 2.0 ** rng.uniform(-30, 127 if dtype == np.float32 else 1023, 200)
    hard = [angle for angle in HARD if angle < float(np.finfo(dtype).max)]
    return np.concatenate([rng.uniform(-10, 10, 200), large, hard]).astype(dtype)


@pytest.mark.parametrize("op", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_angle_is_accurate(op: str, dtype: Any) -> None:
    x = angles(dtype)
    got = evaluate(op, (DecomposeTrigonometric(),), x)
    assert worst(got, FUNCTIONS[op](x.astype(np.longdouble))) < 0.75


@pytest.mark.parametrize("op", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_special_values(op: str, dtype: Any) -> None:
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(dtype)
        want = FUNCTIONS[op](x.astype(np.float64)).astype(dtype)
    assert_special(evaluate(op, (DecomposeTrigonometric(),), x), want, x)
