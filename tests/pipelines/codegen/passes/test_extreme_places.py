"""Places of extremes beside XLA: ties, NaN, infinities, signs of zero, and numbers that are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.pipelines.codegen.jax_programs import check, normal

_SPECIAL = [np.nan, -np.inf, np.inf, -0.0, 0.0, 1.0, 1.0, -1.0, 2.0]


@given(
    st.sampled_from([(1,), (7,), (300,), (5, 9), (40, 17), (3, 130), (33, 2, 5), (64, 4, 3)]),
    st.sampled_from([np.float32, np.float64, jnp.bfloat16, np.float16, np.int8, np.uint32, np.int64, np.bool_]),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
@settings(max_examples=12, deadline=None)
def test_places(shape: tuple[int, ...], dtype: Any, seed: int, has_nan: bool) -> None:
    values = _SPECIAL if jnp.issubdtype(dtype, jnp.floating) else [0, 1, 1, 2, 3]
    chosen = np.random.default_rng(seed).choice(values if has_nan else values[1:], shape)
    with jax.enable_x64(True):
        for dim in range(len(shape)):
            check(lambda x, d=dim: (jnp.argmax(x, d), jnp.argmin(x, d)), chosen.astype(dtype))


@pytest.mark.parametrize("value", [np.nan, -np.inf, np.inf])
def test_rows_of_one_number(value: float) -> None:
    check(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 1)), np.full((40, 21), value, np.float32))


_COMPUTED: dict[str, Callable[..., Any]] = {
    # Contracted to one rounding in some loops, these would not be equal in others.
    "sums of products": lambda x, y: jnp.argmax(x * y + x, 1),
    "functions": lambda x, y: jnp.argmin(jnp.sin(x) * y - jnp.exp(y), 0),
    "softmax": lambda x, y: jnp.argmax(jax.nn.softmax(x * y), 1),
    "its transpose": lambda x, y: jnp.argmax((x * y + y).T[::-1], 0),
    "distances": lambda x, y: jnp.argmin(((x[:, None] - y[None]) ** 2).sum(-1), 1),
    "each with each": lambda x, y: jnp.argmin(abs(x[:, None, :1] - y[None, :, 1:2] * 2)[..., 0], 0),
    "functions of each with each": lambda x, y: jnp.argmax(jnp.sin(x.ravel()[:, None]) * y.ravel()[None, :9], 0),
    "with the extreme": lambda x, y: ((x * y + x).max(1), jnp.argmax(x * y + x, 1)),
    "in a loop": lambda x, y: jax.lax.scan(
        lambda c, row: (c * 0.9 + row, jnp.argmax((c * row + y).max(1) * row[0] + y[:, 0])), x[0], x
    ),
}


@pytest.mark.wide(3)
@pytest.mark.parametrize("name", _COMPUTED)
@pytest.mark.parametrize("shape", [(9, 7), (70, 33), (130, 260)])
def test_computed_numbers(name: str, shape: tuple[int, int]) -> None:
    check(_COMPUTED[name], normal(*shape), normal(*shape))
