"""decompose-power against numpy in extended precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hloforge.pipelines.decompose.power import DecomposePower
from tests.elementwise import PAIRS, assert_special, evaluate, worst

RNG = np.random.default_rng(5)
RANGES = {
    "ordinary": (2.0 ** RNG.uniform(-20, 20, 300), RNG.uniform(-30, 30, 300)),
    "near one": (RNG.uniform(0.99, 1.01, 300), RNG.uniform(-40000, 40000, 300)),
    "any base": (2.0 ** RNG.uniform(-1022, 1023, 300), RNG.uniform(-1, 1, 300)),
    "integer": (RNG.uniform(-3, 3, 300), np.round(RNG.uniform(-300, 300, 300))),
}


@pytest.mark.parametrize("name", RANGES)
def test_the_error_does_not_grow_with_the_exponent(name: str) -> None:
    x, y = RANGES[name]
    got = evaluate("power", (DecomposePower(),), x, y)
    assert worst(got, np.power(x.astype(np.longdouble), y.astype(np.longdouble))) < 0.8


def test_float32_is_rounded_once() -> None:
    x, y = (values.astype(np.float32) for values in RANGES["ordinary"])
    got = evaluate("power", (DecomposePower(),), x, y)
    with np.errstate(over="ignore", under="ignore"):
        assert worst(got, np.power(x.astype(np.float64), y.astype(np.float64))) < 0.51


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_special_values(dtype: Any) -> None:
    with np.errstate(all="ignore"):
        x, y = (values.astype(dtype) for values in PAIRS)
        want = np.power(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
    assert_special(evaluate("power", (DecomposePower(),), x, y), want, x, y)
