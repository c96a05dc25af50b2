"""Sums along rows by vectors of our own, beside XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.jax_programs import check, normal
from tests.pipelines.codegen.whole_programs import compiled

_PROGRAMS: dict[str, Callable[..., Any]] = {
    "exponentials": lambda x: (jax.nn.softmax(x), jax.nn.logsumexp(x, -1)),
    "several sums": lambda x: (jnp.exp(x).sum(-1), (jnp.exp(x) * x).sum(-1) + 1, x.sum(-1)),
    "squares": lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5),
    "in place": lambda x: jax.lax.fori_loop(0, 3, lambda _, y: jnp.exp(y) / jnp.exp(y).sum(-1, keepdims=True), x),
    "of what is chosen": lambda x: jnp.where(x > 0, jnp.exp(x), 0).sum(-1),
}


@pytest.mark.wide(2)
@pytest.mark.parametrize(("shape", "dtype"), [((5, 101), np.float32), ((2, 1000), np.float64), ((3, 70), jnp.bfloat16)])
@pytest.mark.parametrize("name", _PROGRAMS)
def test_programs(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    check(_PROGRAMS[name], normal(*shape).astype(dtype))


def test_one_long_row() -> None:
    check(lambda x: (jnp.exp(x).sum(), jnp.exp(x)), normal(20_003))


def test_the_initial_value_counts_once() -> None:
    x = np.zeros((3, 100), np.float32)
    program = jax.jit(lambda x: jax.lax.reduce(jnp.exp(x), np.float32(3), jax.lax.add, (1,))).lower(x)
    np.testing.assert_allclose(compiled(hloforge.as_program(program)).load()(x), 103.0)


def test_exponentials_of_rows() -> None:
    """Of all magnitudes, within a unit in the last place of f64's, and of what is no number or beyond all of them."""
    special = [np.nan, np.inf, -np.inf, 88.7228317, 88.7228394, -87.33654, -87.33655, 0.0, -0.0, 3e38, -3e38, 1e30, 111]
    x = np.concatenate([np.linspace(-95, 95, 4096 - len(special)), special]).astype(np.float32).reshape(4, 1024)
    program = hloforge.as_program(jax.jit(lambda x: (jnp.exp(x).sum(1), jnp.exp(x))).lower(x))
    found = np.asarray(compiled(program).load()(x)[1]).astype(np.float64)
    with np.errstate(over="ignore"):
        exact = np.exp(x.astype(np.float64))
    limits = np.finfo(np.float32)
    exact = np.where(exact < limits.tiny, 0, np.where(exact > limits.max, np.inf, exact))
    is_plain = np.isfinite(exact)
    np.testing.assert_array_equal(found[~is_plain], exact[~is_plain])
    np.testing.assert_allclose(found[is_plain], exact[is_plain], rtol=1.2e-7, atol=0)
