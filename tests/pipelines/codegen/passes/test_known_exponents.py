"""Powers by exponents that the program states, beside XLA's."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from tests.pipelines.codegen.jax_programs import check

_ENDS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3e38, -3e-38, 1.25, -7.5]


@pytest.mark.parametrize("exponent", [0.0, -0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 4.0])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_ends_of_the_range(exponent: float, dtype: str) -> None:
    x = jnp.asarray(np.float32(_ENDS)).astype(dtype)
    check(lambda x: jnp.power(x, jnp.asarray(exponent, x.dtype)), np.asarray(x))
