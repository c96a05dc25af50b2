"""legalize-long-sums: long sums of floats are as near to the truth as sums of few parts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.whole_programs import compiled


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((200000, 8), (0,)),
        ((100003, 3), (0,)),
        ((3, 100000), (1,)),
        ((400000,), (0,)),
        ((16, 70, 70, 5), (0, 1, 2)),
        ((2, 3, 300, 300), (2, 3)),
    ],
)
def test_errors_do_not_grow_with_the_terms(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = (1 + np.random.default_rng(0).standard_normal(shape)).astype(np.float32)
    lowered = jax.jit(lambda x: jnp.square(x).mean(axes)).lower(x)
    got = np.asarray(compiled(hloforge.as_program(lowered)).load()(x), np.float64)
    np.testing.assert_allclose(got, np.square(x.astype(np.float64)).mean(axes), rtol=2e-6)


def test_the_initial_value_counts_once() -> None:
    x = np.full((100000, 2), 0.5, np.float32)
    lowered = jax.jit(lambda x: jax.lax.reduce(x, np.float32(3), jax.lax.add, (0,))).lower(x)
    np.testing.assert_allclose(compiled(hloforge.as_program(lowered)).load()(x), 50003.0, rtol=1e-6)
