"""dispatch-softmax: exponentials of rows, normalized in one dispatch, give the numbers of float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hloforge
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.named import lower
from hloforge.pipelines.normalize.normalization import normalize

RANDOM = np.random.default_rng(0)
Array = np.ndarray[Any, Any]


def dispatches(text: str) -> int:
    program = read(text)
    normalize(program.module)
    lower(program.module)
    return len(operations(program.module, {"flow.dispatch", "flow.dispatch.workgroups"}))


def check(function: Callable[..., Any], *arguments: Array, made: int) -> None:
    text = jax.jit(function).lower(*arguments).as_text()
    assert dispatches(text) == made
    found = jax.tree.leaves(hloforge.compile(text, cache=False).load()(*arguments))
    with jax.enable_x64(True):
        expected = jax.tree.leaves(function(*(jnp.asarray(a, jnp.float64) for a in arguments)))
    for actual, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(actual, np.asarray(wanted), rtol=2e-6, atol=1e-6)


def rows(*shape: int) -> Array:
    return (RANDOM.standard_normal(shape) * 10).astype(np.float32)


def test_softmax_and_its_logarithm_of_any_length() -> None:
    def normalized(x: Any, y: Any, z: Any) -> Any:
        return jax.nn.softmax(x, axis=-1), jax.nn.log_softmax(y), jax.nn.softmax(z) * 2.0 + 1.0

    check(normalized, rows(60, 333), rows(3, 7, 1025), rows(1, 20000), made=3)


def test_scales_biases_and_masks() -> None:
    def attended(x: Any, bias: Any, mask: Any, scale: Any) -> Any:
        return jax.nn.softmax(jnp.where(mask > 0, x * scale + bias, -1e30), axis=-1)

    check(attended, rows(4, 128, 128), rows(128), rows(4, 128, 128), np.float32(0.2), made=1)


def test_special_values() -> None:
    x = rows(80, 256)
    x[0], x[1, 3], x[2, 5], x[3, 7], x[4] = -np.inf, np.inf, np.nan, -np.inf, 1e30
    check(lambda x: jax.nn.softmax(x), x, made=1)


def test_exponentials_that_others_read_are_left() -> None:
    def both(x: Any) -> Any:
        e = jnp.exp(x - jnp.max(x, 1, keepdims=True))
        return e, e / jnp.sum(e, 1, keepdims=True)

    def apart(x: Any) -> Any:
        return jnp.exp(x) + 1.0, jnp.max(x, 1)

    def masked(x: Any) -> Any:
        """Flags that lie in memory are not read, but what they are made of."""
        mask = jnp.cumsum(x, 1) > 0
        return mask, jax.nn.softmax(jnp.where(mask, x, -100.0))

    check(both, rows(64, 300), made=0)
    check(apart, rows(64, 300) / 10, made=0)
    check(masked, np.round(rows(64, 300)), made=1)


def test_exponentials_of_exponentials() -> None:
    """The end of one expression is the next exponential, and its arrays come from dispatches that are there already."""

    def repeated(x: Any) -> Any:
        for _ in range(5):
            e = jnp.exp(x - jnp.max(x, 1, keepdims=True))
            x = 300.0 * e / jnp.sum(e, 1, keepdims=True)
        return x

    x = rows(256, 256)
    text = jax.jit(repeated).lower(x).as_text()
    assert dispatches(text) > 1
    with jax.enable_x64(True):
        expected = np.asarray(repeated(jnp.asarray(x, jnp.float64)))
    # Each exponential magnifies the error of the one before.
    np.testing.assert_allclose(hloforge.compile(text, cache=False).load()(x), expected, rtol=1e-3, atol=1e-3)
