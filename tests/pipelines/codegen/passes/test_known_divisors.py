"""legalize-known-divisors: remainders by powers of two, beside numpy's, in each bit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.whole_programs import compiled

DIVISORS = (1.0, -8.0, 1024.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_every_bit(dtype: Any) -> None:
    size = np.dtype(dtype).itemsize
    random = np.random.default_rng(0)
    special = np.array([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan], dtype)
    usual = (random.standard_normal(3000) * 100).astype(dtype)
    x = np.concatenate([np.frombuffer(random.bytes(20000 * size), f"u{size}").view(dtype), usual, special])
    # Subnormal numbers are zero in arithmetic, and XLA's too.
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    x = x[(np.abs(wide) >= float(ml_dtypes.finfo(dtype).smallest_normal)) | np.isnan(wide) | (wide == 0)]
    with jax.enable_x64(True):
        function = jax.jit(lambda x: [jax.lax.rem(x, jnp.full_like(x, divisor)) for divisor in DIVISORS])
        program = hloforge.as_program(function.lower(x))
    for divisor, got in zip(DIVISORS, compiled(program).load()(x), strict=True):
        with np.errstate(invalid="ignore"):
            want = np.fmod(x.astype(np.float64), divisor).astype(dtype)
        is_nan = np.isnan(want.astype(np.float64))
        np.testing.assert_array_equal(np.isnan(np.asarray(got, np.float64)), is_nan)
        bits = f"u{size}"
        np.testing.assert_array_equal(np.asarray(got).view(bits)[~is_nan], want.view(bits)[~is_nan])
