"""decompose-remainder against C's fmod, which is exact."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.pipelines.decompose.remainder import DecomposeRemainder
from tests.elementwise import PAIRS, assert_special, evaluate

RANGES = {"near": (-10, 10), "any": (-1022, 1023), "subnormal": (-1074, -1000)}


@pytest.mark.parametrize("dividend", RANGES)
@pytest.mark.parametrize("divisor", RANGES)
def test_every_bit_is_right(dividend: str, divisor: str) -> None:
    rng = np.random.default_rng(8)
    x, y = (2.0 ** rng.uniform(*RANGES[name], 200) * rng.choice([-1, 1], 200) for name in (dividend, divisor))
    got = evaluate("remainder", (DecomposeRemainder(),), x, y)
    assert_special(got, np.fmod(x, y), x, y, ulps=0)


def test_special_values() -> None:
    x, y = PAIRS
    with np.errstate(invalid="ignore"):
        want = np.fmod(x, y)
    assert_special(evaluate("remainder", (DecomposeRemainder(),), x, y), want, x, y, ulps=0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_floats_where_they_have_no_form_of_their_own(dtype: type) -> None:
    rng = np.random.default_rng(8)
    x, y = ((2.0 ** rng.uniform(-14, 15, 200) * rng.choice([-1, 1], 200)).astype(dtype) for _ in range(2))
    x[:3], y[:3] = [np.inf, 1, -0.0], [1, np.inf, 3]
    with np.errstate(invalid="ignore"):
        want = np.fmod(x, y)
    np.testing.assert_array_equal(evaluate("remainder", (DecomposeRemainder(all_types=True),), x, y), want)
