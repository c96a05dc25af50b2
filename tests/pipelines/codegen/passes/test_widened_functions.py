"""legalize-widened-functions: sums of bf16 that a function reads in f32 are not rounded, as XLA's client does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import hloforge
from tests.pipelines.codegen.whole_programs import compiled


@pytest.mark.parametrize(
    "function",
    [
        lax.digamma,
        lax.lgamma,
        lax.erfc,
        lambda x: lax.erf_inv(x / 100),
        jnp.sinh,
        jnp.cosh,
        special.i1e,
        lambda x: lax.zeta(x + 1, x),
        lambda x: lax.polygamma(jnp.ones_like(x), x),
        jnp.tan,
        jnp.arcsinh,
        special.i0e,
    ],
)
def test_a_sum_is_rounded_where_xla_rounds_it(function: Callable[[Any], Any]) -> None:
    random = np.random.default_rng(0)
    x = (1 + np.abs(2 * random.standard_normal(64))).astype(ml_dtypes.bfloat16)
    y = np.abs(random.standard_normal(64)).astype(ml_dtypes.bfloat16)
    lowered = jax.jit(lambda a, b: function(a + b)).lower(x, y)
    got = np.asarray(compiled(hloforge.as_program(lowered)).load()(x, y))
    np.testing.assert_array_equal(got.astype(np.float32), np.asarray(lowered.compile()(x, y)).astype(np.float32))
