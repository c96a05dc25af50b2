"""decompose-logarithm against numpy's longest float."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.pipelines.decompose.logarithm import DecomposeLogarithm
from tests.elementwise import SPECIAL, assert_special, evaluate, worst

RANGES = {"near 1": (-0.5, 0.5), "any": (-708, 709), "subnormal": (-744, -708)}


@pytest.mark.parametrize("name", RANGES)
def test_within_an_ulp(name: str) -> None:
    x = np.exp(np.random.default_rng(5).uniform(*RANGES[name], 2000))
    x = x[x > 0]
    assert worst(evaluate("log", (DecomposeLogarithm(),), x), np.log(x.astype(np.longdouble))) < 0.9


def test_special_values() -> None:
    with np.errstate(invalid="ignore", divide="ignore"):
        want = np.log(SPECIAL)
    assert_special(evaluate("log", (DecomposeLogarithm(),), SPECIAL), want, SPECIAL)
