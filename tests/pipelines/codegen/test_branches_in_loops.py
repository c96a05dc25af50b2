"""Loops with branches in them, and loops in those: rejection sampling, and solvers that accept or refuse a step."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.pipelines.codegen.jax_programs import check

_KEY = np.array([1, 2], np.uint32)


@pytest.mark.wide(2)
@pytest.mark.parametrize("shape", [(), (5,)])
@pytest.mark.parametrize("element", [np.float32, np.float64])
def test_random_gamma(shape: tuple[int, ...], element: Any) -> None:
    shapes = np.random.default_rng(1).uniform(0.05, 4, shape).astype(element)
    check(lambda key, a: jax.random.gamma(key, a, dtype=element), _KEY, shapes)


@pytest.mark.parametrize("element", [np.float32, np.float64])
def test_a_solver_that_refuses_steps(element: Any) -> None:
    """Levenberg-Marquardt with damping that follows what a step gained."""

    def fit(x: Any, y: Any) -> Any:
        def residual(p: Any) -> Any:
            return p[0] * jnp.exp(-p[1] * x) - y

        def step(state: Any) -> Any:
            p, damping, turn, _ = state
            r, slope = residual(p), jax.jacfwd(residual)(p)
            square = slope.T @ slope
            new = p - jnp.linalg.solve(square + damping * jnp.diag(jnp.diag(square)), slope.T @ r)
            is_better = jnp.sum(residual(new) ** 2) < jnp.sum(r**2)
            p, damping = jax.lax.cond(is_better, lambda: (new, damping * 0.3), lambda: (p, damping * 2.0))
            return p, damping, turn + 1, jnp.abs(slope.T @ r).max() < 1e-2

        start = jnp.array([0.5, 0.5], x.dtype), jnp.asarray(1.0, x.dtype), 0, False
        return jax.lax.while_loop(lambda s: (s[2] < 20) & ~s[3], step, start)[:2]

    x = np.linspace(0, 3, 20).astype(element)
    check(fit, x, (2 * np.exp(-1.3 * x)).astype(element), tolerance=1e-3)
