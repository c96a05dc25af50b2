"""decompose-gamma-functions against mpmath in 40 digits, XLA and scipy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import mpmath
import numpy as np
import pytest
import scipy.special
from jax import lax

import hloforge
from hloforge.pipelines.decompose.gamma_functions import DecomposeGammaFunctions
from tests.elementwise import SPECIAL, Array, assert_special, evaluate, worst

PASSES = (DecomposeGammaFunctions(),)
ZEROS = {"lgamma": (1.0, 2.0), "digamma": (1.4616321449683623,)}


def _lgamma(x: Any) -> Any:
    return mpmath.log(abs(mpmath.gamma(x))) if x < 0 else mpmath.loggamma(x)


TRUTH: dict[str, Callable[[Any], Any]] = {"lgamma": _lgamma, "digamma": mpmath.digamma}


def _truth(name: str, x: Array) -> Array:
    """In numpy's longest float; numbers of mpmath are rounded to it by their digits."""
    with mpmath.workdps(40):
        return np.array([np.longdouble(mpmath.nstr(TRUTH[name](mpmath.mpf(float(one))), 25)) for one in x])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "zero"), [(name, zero) for name, zeros in ZEROS.items() for zero in zeros])
def test_digits_at_zeros(name: str, zero: float, dtype: Any) -> None:
    """Down to the last place of the argument, where XLA's error is up to 1e8 ulp."""
    g = np.random.default_rng(5)
    x = (zero + g.choice([-1, 1], 200) * 10.0 ** g.uniform(-15 if dtype is np.float64 else -7, -0.4, 200)).astype(dtype)
    x = x[x != zero]
    assert worst(evaluate(f"chlo.{name}", PASSES, x), _truth(name, x)) < (0.51 if dtype is np.float32 else 4.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ZEROS)
def test_positive_numbers_of_all_magnitudes(name: str, dtype: Any) -> None:
    g = np.random.default_rng(6)
    x = np.concatenate([np.exp(g.uniform(-60, 60, 200)), g.uniform(0, 12, 200), [1e-3, 3.0, 2.9999, 1e30]]).astype(
        dtype
    )
    assert worst(evaluate(f"chlo.{name}", PASSES, x), _truth(name, x)) < (0.51 if dtype is np.float32 else 5.0)


@pytest.mark.parametrize("name", ZEROS)
def test_negative_numbers(name: str) -> None:
    """f32 has its digits at the zeros between negative integers too; f64 has as many as its terms leave."""
    x = -np.random.default_rng(7).uniform(0, 30, 400)
    short = x.astype(np.float32)
    assert worst(evaluate(f"chlo.{name}", PASSES, short), _truth(name, short)) < 0.6
    truth = _truth(name, x).astype(np.float64)
    np.testing.assert_allclose(evaluate(f"chlo.{name}", PASSES, x), truth, rtol=1e-14, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_special_values(dtype: Any) -> None:
    with np.errstate(all="ignore"):
        x = np.append(SPECIAL, [-2.0, -3.0, -7.0, 1e308]).astype(dtype)
        x = x[(np.abs(x) >= np.finfo(dtype).tiny) | (x == 0) | np.isnan(x)]
        lgamma, digamma = (
            f(x.astype(np.float64)).astype(dtype) for f in (scipy.special.gammaln, scipy.special.digamma)
        )
    lgamma = np.where(np.isneginf(x), np.inf, lgamma)  # as C and XLA have it
    # XLA's digamma is NaN at its poles; scipy's has infinities at the zeros, and none at minus infinity.
    digamma = np.where((x <= 0) & (x == np.floor(x)), np.nan, digamma)
    assert_special(evaluate("chlo.lgamma", PASSES, x), lgamma, x, ulps=2.0)
    # At -1/2, close to a zero, f64 has the terms' last places.
    assert_special(evaluate("chlo.digamma", PASSES, x), digamma, x, ulps=20.0)


@pytest.mark.parametrize("function", [lax.lgamma, lax.digamma])
def test_compiled_programs_are_nearer_to_the_truth_than_xla(function: Callable[[Any], Any]) -> None:
    """JAX's own operation, by whichever code generator: about the zeros and elsewhere."""
    x = np.linspace(-4.7, 9.3, 500, dtype=np.float32)
    truth = _truth(function.__name__, x)
    found, xla = (np.asarray(run(function)(x)) for run in (hloforge.jit, jax.jit))
    assert worst(found, truth) < 0.6 < worst(xla, truth)
