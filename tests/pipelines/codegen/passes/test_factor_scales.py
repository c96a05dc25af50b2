"""legalize-factor-scales: scales of both factors as one, and sums of softmax after the product, beside f64."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.lowering import lower
from tests.pipelines.codegen.jax_programs import normal
from tests.pipelines.codegen.whole_programs import compiled


def _attention(q: Any, k: Any, v: Any, *, groups: int) -> Any:
    """With both factors scaled, and heads of keys that are repeated."""
    root = np.float32(q.shape[-1] ** -0.25)
    keys, values = (jnp.repeat(x, groups, 1) for x in (k * root, v))
    scores = jnp.einsum("bhqd,bhkd->bhqk", q * root, keys)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), values)


@pytest.mark.parametrize(
    ("queries", "keys", "groups", "size"), [(1, 200, 1, 64), (1, 33, 4, 16), (70, 70, 1, 24), (9, 130, 2, 8)]
)
def test_attention(queries: int, keys: int, groups: int, size: int) -> None:
    q, k, v = normal(2, 4, queries, size), normal(2, 4 // groups, keys, size), normal(2, 4 // groups, keys, size)
    lowered = jax.jit(lambda q, k, v: _attention(q, k, v, groups=groups)).lower(q, k, v)
    got = compiled(hloforge.as_program(lowered)).load()(q, k, v)
    wide = [x.astype(np.float64) for x in (q, np.repeat(k, groups, 1), np.repeat(v, groups, 1))]
    scores = wide[0] @ wide[1].swapaxes(2, 3) / np.sqrt(size)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    want = shares @ wide[2] / shares.sum(-1, keepdims=True)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)


def test_keys_are_read_as_they_are() -> None:
    q, k, v = normal(2, 4, 1, 32), normal(2, 4, 100, 32), normal(2, 4, 100, 32)
    program = hloforge.as_program(jax.jit(lambda *x: _attention(*x, groups=1)).lower(q, k, v))
    lower(program.module)
    text = str(program.module)
    assert not [line for line in text.splitlines() if "stablehlo.multiply" in line and "100" in line]
    assert not [line for line in text.splitlines() if "stablehlo.divide" in line and "100" in line]


@pytest.mark.parametrize("scales", [(0.0, 2.0), (1e-20, 3.0), (np.inf, 1.0), (-3.0, 0.7)])
def test_any_numbers(scales: tuple[float, float]) -> None:
    """Very small and infinite ones stay where they are."""
    a, b = normal(5, 17), normal(17, 40)
    lowered = jax.jit(lambda a, b: (a * np.float32(scales[0])) @ (b * np.float32(scales[1]))).lower(a, b)
    got = np.asarray(compiled(hloforge.as_program(lowered)).load()(a, b))
    np.testing.assert_allclose(got, lowered.compile()(a, b), rtol=1e-5, atol=1e-5 * min(abs(scales[0]), 1))
