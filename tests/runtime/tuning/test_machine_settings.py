"""Results are right for the least and the greatest value of every number of the machine that tune may set."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.framework.machine import TUNABLE


def _of_many_dispatches(x: jax.Array, w: jax.Array, i: jax.Array, q: jax.Array) -> tuple[jax.Array, ...]:
    """One operation for each pass that reads a number that may be set."""
    return (
        jax.nn.softmax(q[:, :512], axis=-1),
        jnp.argmax(q, -1),
        jnp.sort(i),
        jnp.sum(q, 0),
        x @ w,
        x[:3] @ w,
        jnp.take(w, i[:64] % 600, axis=0),
        jnp.transpose(q.reshape(64, 8, 16, 64), (2, 0, 1, 3)),
        jnp.abs(jnp.fft.fft(q[:64].astype(jnp.complex64))),
        jnp.concatenate([q, q * 2, q[:, :128]], 1),
    )


@pytest.mark.parametrize("pick", [min, max])
def test_results_are_right_whatever_is_set(pick: Callable[[tuple[int, ...]], int]) -> None:
    random = np.random.default_rng(0)
    x, w, q = (random.normal(size=size).astype(np.float32) for size in ((128, 600), (600, 800), (512, 1024)))
    i = random.integers(0, 10000, 4096).astype(np.int32)
    program = jax.jit(_of_many_dispatches).lower(x, w, i, q).as_text()
    settings = tuple(f"{name}={pick(values)}" for name, values in TUNABLE.items())
    found = hloforge.compile(program, machine=settings)(x, w, i, q)
    wide = q.astype(np.float64)
    weights = np.exp(wide[:, :512])
    wanted = (
        weights / weights.sum(1, keepdims=True),
        q.argmax(1),
        np.sort(i),
        wide.sum(0),
        x.astype(np.float64) @ w,
        x[:3].astype(np.float64) @ w,
        w[i[:64] % 600],
        q.reshape(64, 8, 16, 64).transpose(2, 0, 1, 3),
        np.abs(np.fft.fft(wide[:64])),
        np.concatenate([q, q * 2, q[:, :128]], 1),
    )
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-4)
