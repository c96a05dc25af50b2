"""Hyperbolic sine and cosine of complex numbers: mpmath says how far they are from the truth, numpy what is special."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import hloforge

_PARTS = (0.0, -0.0, 1e-30, 0.7, -2.5, 80.0, np.inf, -np.inf, np.nan)


@pytest.fixture(scope="module", params=["c64", "c128"])
def session(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    element = {"c64": "complex<f32>", "c128": "complex<f64>"}[request.param]
    type_ = f"tensor<1000x{element}>"
    text = f"""func.func @main(%z: {type_}) -> ({type_}, {type_}) {{
      %s = chlo.sinh %z : {type_} -> {type_}
      %c = chlo.cosh %z : {type_} -> {type_}
      return %s, %c : {type_}, {type_} }}"""
    dtype = np.complex64 if request.param == "c64" else np.complex128
    return hloforge.load(hloforge.compile(text.encode())), dtype


def test_errors_in_epsilons_of_the_modulus(session: tuple[Any, Any]) -> None:
    call, dtype = session
    rng = np.random.default_rng(5)
    scales = 10.0 ** rng.uniform(-6, 1.9, 1000)
    z = (scales * rng.uniform(-1, 1, 1000) + 1j * 10.0 ** rng.uniform(-6, 4, 1000)).astype(dtype)
    for got, function in zip(call(z), (mpmath.sinh, mpmath.cosh), strict=True):
        with mpmath.workdps(40):
            exact = [function(mpmath.mpc(complex(number))) for number in z]
            errors = [float(abs(mpmath.mpc(complex(g)) - e) / abs(e)) for g, e in zip(got, exact, strict=True)]
        # 1.6 measured for each; CHLO's expansion has 2e4 and more.
        assert max(errors) < 2 * np.finfo(dtype).eps


def test_special_values(session: tuple[Any, Any]) -> None:
    """C17 Annex G, by the C library behind numpy; XLA, too, gives NaN for an infinity that nobody knows how to turn."""
    call, dtype = session
    pairs = [(a, b) for a in _PARTS for b in _PARTS if np.isfinite(b) or not np.isinf(a)]
    grid = np.array([complex(a, b) for a, b in pairs], dtype)
    z = np.resize(grid, 1000)
    with np.errstate(all="ignore"):
        truth = np.sinh(grid.astype(np.complex128)), np.cosh(grid.astype(np.complex128))
    for got, want in zip(call(z), truth, strict=True):
        got = np.asarray(got)[: len(grid)]
        for left, right in ((got.real, want.real), (got.imag, want.imag)):
            np.testing.assert_allclose(left, right, rtol=20 * np.finfo(dtype).eps, atol=1e-44)
