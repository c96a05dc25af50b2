"""Hessenberg and tridiagonal forms against LAPACK's, element by element: the reflectors are its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.pipelines.library_calls.spectral import adjoint, random
from tests.support_jax import by_jax, evaluated

jax = pytest.importorskip("jax")


@pytest.mark.parametrize("dtype", ["c16", *(pytest.param(name, marks=pytest.mark.slow) for name in ("f4", "f8"))])
def test_forms_vectors_and_factors_are_those_of_lapack(dtype: str) -> None:
    a = np.stack([random(dtype, 7, 7), np.triu(random(dtype, 7, 7, seed=1)), random(dtype, 7, 7, seed=2)])
    a[2] *= 2.0**-60
    symmetric = a + adjoint(a)

    def function(a: Any, symmetric: Any) -> Any:
        lax = jax.lax.linalg
        forms = [lax.tridiagonal(symmetric, lower=lower) for lower in (True, False)]
        return lax.hessenberg(a), *forms, lax.hessenberg(a[:, :1, :1]), lax.tridiagonal(symmetric[:, :1, :1])

    for found, expected in zip(evaluated(function, a, symmetric), by_jax(function, a, symmetric), strict=True):
        assert found.shape == expected.shape
        tolerance = 200 * np.finfo(dtype).eps
        for one, other in zip(found, expected, strict=True):
            assert np.allclose(one, other, rtol=tolerance, atol=tolerance * np.max(np.abs(other), initial=0))
