"""bf16 and f16: XLA's roundings, in programs with reductions, products, loops and conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.pipelines.codegen.jax_programs import check

_F32 = jnp.float32
# Below and above the size from which on XLA's library computes what a reduction reads.
_SHAPES = ((6, 40), (64, 32), (64, 64), (48, 100))
_TYPES = (jnp.bfloat16, jnp.float16)


def _softmax(x: Any) -> Any:
    return jax.nn.softmax(x, axis=-1)


def _norm(x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(jnp.square(x - mean).mean(-1, keepdims=True) + 0.01)


def _attention(x: Any) -> Any:
    return jax.nn.softmax(x @ x.T * 0.3, axis=-1) @ x


def _loop(x: Any, y: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda i, s: s * 0.5 + (x * y * s).mean(-1, keepdims=True), x)


def _trip(x: Any) -> Any:
    """To f32, and back in the middle."""
    return (jnp.exp(x.astype(_F32)).astype(x.dtype).astype(_F32) * 0.5).astype(x.dtype)


_OF_ONE: tuple[Callable[..., Any], ...] = (
    _softmax,
    _norm,
    _attention,
    _trip,
    lambda x: jnp.tanh(x),
    lambda x: jnp.abs(x) - 0.3,
    lambda x: jax.nn.gelu(x),
    lambda x: jax.nn.logsumexp(x, axis=0, keepdims=True) + x * 0.1,
    lambda x: x - x.max(-1, keepdims=True),
    lambda x: jnp.cumsum(x.astype(_F32) * 0.1, axis=1).astype(x.dtype),
    lambda x: x[::-1] * 0.7,
    lambda x: jnp.sin(x) * x,
)
_OF_TWO: tuple[Callable[..., Any], ...] = (
    _loop,
    lambda x, y: x + y,
    lambda x, y: x * y,
    lambda x, y: x * y - x,
    lambda x, y: jnp.maximum(x, y * 0.5),
    lambda x, y: jnp.where(x > y, x, y * 0.25),
    lambda x, y: x / (jnp.abs(y) + 1),
    lambda x, y: (x.astype(_F32) * y.astype(_F32)).astype(x.dtype),
)
_ENDS: tuple[Callable[..., Any], ...] = (
    lambda x: x,
    lambda x: x.astype(_F32),
    lambda x: x.sum(),
    lambda x: jnp.mean(x.astype(_F32) * x, axis=1),
    lambda x: jnp.sum(x * x, axis=0),
    lambda x: jnp.max(x * 0.3, axis=1),
    lambda x: x.astype(_F32).min(axis=0),
    lambda x: jnp.square(x).mean(-1).astype(_F32),
)


def _program(seed: int) -> tuple[Callable[..., Any], Any, tuple[int, int]]:
    """A random function of two arrays, their element type and shape."""
    random = np.random.default_rng(seed)
    steps = random.integers(3, 9)
    chosen = [
        (bool(random.integers(2)), int(random.integers(len(_OF_ONE) * len(_OF_TWO))), *random.integers(0, 64, 2))
        for _ in range(steps)
    ]
    ends = [(int(random.integers(len(_ENDS))), int(random.integers(1, 4))) for _ in range(random.integers(1, 4))]

    def function(x: Any, y: Any) -> Any:
        arrays = [x, y]
        for is_of_one, number, first, second in chosen:
            a, b = arrays[-1 - first % min(len(arrays), 3)], arrays[-1 - second % min(len(arrays), 3)]
            arrays.append(_OF_ONE[number % len(_OF_ONE)](a) if is_of_one else _OF_TWO[number % len(_OF_TWO)](a, b))
        return tuple(_ENDS[end](arrays[-back]) for end, back in ends)

    return function, _TYPES[seed % 2 if seed % 3 else 0], _SHAPES[random.integers(len(_SHAPES))]


# What XLA rounds, and what it does not; a rounding more or less shows in f32, and in many results of bf16.
_RULE: dict[str, Callable[..., Any]] = {
    "widened": lambda x, y, z: (x * y * z).astype(_F32) + 1,
    "widened and not": lambda x, y, z: ((x * y).astype(_F32), x * y * z),
    "moved": lambda x, y, z: (x * y)[:, ::-1].astype(_F32) + 1,
    "to f32 and back": lambda x, y, z: jnp.exp(x.astype(_F32)).astype(x.dtype).astype(_F32) + 1,
    "summed": lambda x, y, z: jnp.sum((x * y * z).astype(_F32), -1),
    "mean": lambda x, y, z: jnp.mean(x * y * z, 0) * z[0],
    "mean of squares": lambda x, y, z: jnp.square(x * y).mean(-1).astype(_F32),
    "maximum": lambda x, y, z: jnp.max(x * y * z, 1),
    "minimum of f32": lambda x, y, z: jnp.min((x * y * z).astype(_F32), 1),
    "summed after a trip": lambda x, y, z: jnp.sum((x.astype(_F32) * y.astype(_F32)).astype(x.dtype).astype(_F32), 0),
    "used twice inside": lambda x, y, z: jnp.sum(((x * y + z) * (x * y)).astype(_F32), 1),
    "used outside": lambda x, y, z: (jnp.sum((x * y * z).astype(_F32), 1), x * y),
    "summed twice": lambda x, y, z: (jnp.sum((x * y * z).astype(_F32), 1), jnp.max((x * y * z).astype(_F32), 1)),
    "selected": lambda x, y, z: jnp.sum((jnp.where(z > 0, x * y, y) * z * y).astype(_F32), 1),
    "sliced": lambda x, y, z: jnp.sum(((x * y)[:, :60] * z[:, :60]).astype(_F32), 1),
    "reshaped and padded": lambda x, y, z: jnp.sum(
        (jnp.pad((x * y).reshape(-1, 4), ((0, 0), (1, 1))) * z[0, 0]).astype(_F32), 0
    ),
    "spread": lambda x, y, z: jnp.sum((x * (y[:, :1] * z[:, :1]) * z).astype(_F32), 1),
    "functions": lambda x, y, z: jnp.sum((jnp.exp(x * y) * jnp.sin(y * z) * jax.nn.sigmoid(z * x)).astype(_F32), 1),
    "a product": lambda x, y, z: (x * y) @ z.T + 1,
    "a product in f32": lambda x, y, z: ((x * y) @ z.T).astype(_F32),
    "a product that is summed": lambda x, y, z: jnp.sum(((x * y) @ z[:100].T * 0.3).astype(_F32), 1),
    "in a loop": lambda x, y, z: jax.lax.fori_loop(
        0, 3, lambda i, s: s + jnp.sum((x * y * z * s[:, None].astype(x.dtype)).astype(_F32), 1), x[:, 0].astype(_F32)
    ),
    "what a loop changes": lambda x, y, z: jax.lax.fori_loop(
        0, 3, lambda i, s: s * 0.5 + jnp.mean(s * y * z, 1, keepdims=True), x
    ),
    "a long chain": lambda x, y, z: jnp.sum(_chain(x, y, z).astype(_F32), 1),
    "counted": lambda x, y, z: jax.lax.iota(x.dtype, 4000).astype(_F32) * 0.1,
}


# What XLA's library goes on with after a reduction.
_AFTER: dict[str, Callable[..., Any]] = {
    "one reader": lambda x, y, s: jnp.tanh(s) * 0.3,
    "a chain, and what is read beside it": lambda x, y, s: jnp.exp(s * 0.1) * (y[:, 0] * x[:, 0] + s * 0.1),
    "several readers": lambda x, y, s: (s * s + 1, s * 3),
    "several readers and a result": lambda x, y, s: (s * s + 1, s * 3, s),
    "a reader that takes bf16": lambda x, y, s: (s * s + 1, jnp.sort(s)),
    "rows": lambda x, y, s: x * y - s[:, None],
    "rows and a function": lambda x, y, s: (x * y - s[:, None], jnp.sin(s)),
    "compared": lambda x, y, s: jnp.where(s > 0.5, s * 3, s),
    "in f32": lambda x, y, s: (s.astype(_F32) * 3, s * 3),
    "reduced again": lambda x, y, s: (s * s).sum(),
    "a norm": lambda x, y, s: _norm(x * y) * s[:, None],
    "softmax": lambda x, y, s: _softmax(x * y) + s[:, None],
}


def _chain(x: Any, y: Any, z: Any) -> Any:
    """Of more operations than XLA's library takes at once."""
    for step in range(40):
        x = x * y if step % 2 else x + z
    return x


def _normal(seed: int, count: int, shape: tuple[int, int], element: Any) -> list[Any]:
    """Arrays that do not depend on which tests ran before: one rounding decides about a few of the results."""
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape).astype(element) for _ in range(count)]


@pytest.mark.wide(5)
@pytest.mark.parametrize("rows", [20, 64])
@pytest.mark.parametrize("element", _TYPES)
@pytest.mark.parametrize("name", _RULE)
def test_rounds_where_xla_rounds(name: str, element: Any, rows: int) -> None:
    """Of fewer and of more elements than XLA's library wants; results in 16 bits are XLA's to the last."""
    check(_RULE[name], *_normal(rows, 3, (rows, 100), element), tolerance=1e-5)


@pytest.mark.wide(6)
@pytest.mark.parametrize("rows", [4000, 4200])
@pytest.mark.parametrize("how", ["sum", "max"])
@pytest.mark.parametrize("name", _AFTER)
def test_rounds_where_xla_rounds_after_reductions(name: str, how: str, rows: int) -> None:
    """Of fewer and of more results than XLA's library wants."""

    def function(x: Any, y: Any) -> Any:
        return _AFTER[name](x, y, (x * y).sum(-1) if how == "sum" else (x * y).max(-1))

    check(function, *_normal(rows, 2, (rows, 4), jnp.bfloat16), tolerance=1e-5)


@pytest.mark.wide(10)
@pytest.mark.parametrize("seed", range(60))
def test_a_random_program_is_xlas(seed: int) -> None:
    """Sums in another order may be rounded to a neighbour, which later operations make more of."""
    function, element, shape = _program(seed)
    check(function, *_normal(seed, 2, shape, element), tolerance=2e-2)
