"""decompose-exponential against numpy in extended precision."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.pipelines.decompose.exponential import DecomposeExponential
from tests.elementwise import SPECIAL, assert_special, evaluate, worst

FUNCTIONS = {
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log_plus_one": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
}
# XLA's own errors over these ranges are 1.6, 4.4, 128, 2.3 and 6.5 ulp.
BOUNDS = {"exponential": 0.7, "exponential_minus_one": 1.1, "log_plus_one": 1.0, "logistic": 2.4, "tanh": 2.5}


@pytest.mark.parametrize("op", FUNCTIONS)
@pytest.mark.parametrize("scale", [1e-18, 1e-5, 0.9, 40.0, 700.0])
def test_no_digit_is_lost_near_zero(op: str, scale: float) -> None:
    x = np.random.default_rng(3).uniform(-1, 1, 300) * scale
    if op == "log_plus_one":
        x = np.where(x <= -1, -x, x)
    got = evaluate(op, (DecomposeExponential(),), x)
    assert worst(got, FUNCTIONS[op](x.astype(np.longdouble))) < BOUNDS[op]


@pytest.mark.parametrize("op", FUNCTIONS)
def test_special_values(op: str) -> None:
    x = np.concatenate([SPECIAL, [709.7, 709.79, 710.5, -745.0, 22.5, -22.5]])
    with np.errstate(all="ignore"):
        want = FUNCTIONS[op](x)
    if op in ("exponential", "logistic"):
        # IREE and XLA have zeros for what is no normal number.
        want = np.where(want < np.finfo(np.float64).smallest_normal, 0, want)
    assert_special(evaluate(op, (DecomposeExponential(),), x), want, x, ulps=2.0)


@pytest.mark.parametrize("op", FUNCTIONS)
def test_nan_of_any_bits_stays_nan(op: str) -> None:
    """Arithmetic on the bits of numbers makes finite ones of some NaN."""
    words = [0x7FF0000000000001, 0x7FF8000000000000, 0x7FFFFFFFFFFFFFFF, 0xFFF0000000000001, 0xFFFFFFFFFFFFFFFF]
    x = np.array(words, np.uint64).view(np.float64)
    assert np.isnan(evaluate(op, (DecomposeExponential(),), x)).all()
