"""Programs of JAX with sizes known at the call: one program, called at five sizes, against XLA at each."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

import hloforge
from hloforge.runtime.debug.consensus import Judge
from hloforge.runtime.reference.engines import reference
from tests.prove.jax_functions import function_of
from tests.prove.pool import Pool

_SIZES = ((1, 2, 3, 7, 16), (4, 1, 33, 2, 8), (5, 6, 129, 1, 64), (3, 15, 4, 1, 17))
_TYPES = ("float32", "float32", "float32", "bfloat16", "float16", "int32", "int32", "int8", "uint8", "uint32", "bool")


def _number(x: Any) -> Any:
    return x.astype("int32") if x.dtype == bool else x


def _places(x: Any) -> Any:
    return jnp.arange(x.shape[0]).reshape(-1, *[1] * (x.ndim - 1))


# Of an array with a first dimension of any size, which the result has too, or not.
_KEEP: tuple[Callable[[Any], Any], ...] = (
    lambda x: x[::-1],
    lambda x: jnp.sort(x, axis=0),
    lambda x: jnp.argsort(x, axis=0),
    lambda x: jnp.roll(x, 1, axis=0),
    lambda x: lax.cumsum(_number(x)),
    lambda x: lax.cummax(_number(x)),
    lambda x: _number(x) * 2 + 1,
    lambda x: jnp.where(_places(x) % 2 == 0, x, jnp.zeros((), x.dtype)),
    lambda x: x.at[0].set(jnp.ones((), x.dtype)),
    lambda x: x.at[_places(x).ravel() // 2].add(jnp.ones((), x.dtype)) if x.dtype != bool else x,
    lambda x: x[_places(x).ravel() * 3 % (x.shape[0] + 2)],
    lambda x: jnp.concatenate([x[1:], x[:1]]) if x.ndim else x,
    lambda x: lax.fori_loop(0, 3, lambda n, c: c + n.astype(c.dtype), _number(x)),
    lambda x: lax.scan(lambda c, r: (c + r, c), jnp.zeros(x.shape[1:], _number(x).dtype), _number(x))[1],
    lambda x: jnp.maximum(x, jnp.flip(x, 0)),
    lambda x: x == x[:1] if x.dtype != bool else ~x,
    lambda x: _number(x) - jnp.max(_number(x), axis=0, keepdims=True, initial=0),
    lambda x: jnp.pad(x, [(1, 0)] + [(0, 0)] * (x.ndim - 1))[:-1],
    lambda x: jax.vmap(lambda row: jnp.flip(row.ravel()).reshape(row.shape))(x),
)
_ANY: tuple[Callable[[Any], Any], ...] = (
    lambda x: jnp.sum(_number(x), axis=0),
    lambda x: jnp.sum(_number(x)),
    lambda x: jnp.any(x != 0, axis=0),
    lambda x: jnp.max(_number(x), axis=0, initial=0),
    lambda x: jnp.concatenate([x, x]),
    lambda x: jnp.repeat(x, 2, axis=0),
    lambda x: x.reshape(-1),
    lambda x: x.reshape(x.shape[0], -1).T,
    lambda x: jnp.pad(x, [(2, 1)] + [(0, 0)] * (x.ndim - 1)),
    lambda x: x[:, None] if x.ndim else x,
    lambda x: jnp.count_nonzero(x),
    lambda x: jnp.stack([x, x], 1),
    lambda x: x[::2],
    lambda x: x.reshape(x.shape[0], -1).astype("float32") @ x.reshape(x.shape[0], -1).astype("float32").T,
    lambda x: x.reshape(x.shape[0], -1).astype("float32").T @ x.reshape(x.shape[0], -1).astype("float32"),
    lambda x: jax.nn.softmax(x.astype("float32"), axis=0),
    lambda x: jnp.mean(x.astype("float32").reshape(x.shape[0], -1), axis=1),
    lambda x: jnp.broadcast_to(jnp.asarray(x.shape[0]), (3,)),
    lambda x: jnp.zeros((x.shape[0] + 1,)).at[_places(x).ravel()].set(1.0),
)


def judge(seed: int) -> str:
    """What is wrong about the calls of a seed's program; empty if nothing is."""
    random = Random(f"sizes {seed}")
    pool = Pool.of(random)
    element = random.choice(_TYPES)
    row = tuple(size or 3 for size in pool.dims(2))
    kept = [random.randrange(len(_KEEP)) for _ in range(random.choice((0, 1, 2, 4)))]
    last = [random.randrange(len(_ANY)) for _ in range(2)]
    rows = function_of(seed, (1, 2, 3)) if random.random() < 0.3 else None

    def function(x: Any) -> Any:
        made = [x]
        for number in kept:
            made.append(_KEEP[number](made[-1]))
        results = [made[-1], *(_ANY[number](random_of(made, number)) for number in last)]
        if rows is not None and not rows.x64:
            results += jax.vmap(lambda r: rows.function(*(_like(r, one) for one in rows.arguments)))(x)[:2]
        return tuple(results)

    def random_of(made: list[Any], number: int) -> Any:
        return made[number % len(made)]

    (size,) = export.symbolic_shape("n")
    argument = jax.ShapeDtypeStruct((size, *row), pool.numbers((), element).dtype)
    try:
        exported = export.export(jax.jit(function), platforms=["cpu"])(argument)
    except (TypeError, ValueError, NotImplementedError):
        return ""  # JAX itself cannot say it for any size
    session = hloforge.compile(exported.mlir_module_serialized, cache=False).load()
    engines = [reference(name, isolated=False) for name in ("xla", "interpreter")]
    for count in random.choice(_SIZES):
        x = pool.numbers((count, *row), element)
        lowered = jax.jit(function).trace(x).lower(lowering_platforms=("cpu",))
        static = hloforge.read(str(lowered.as_text()))
        found = session(x)
        bad = [verdict.text() for verdict in Judge(static, engines)([x], found).verdicts if not verdict.agrees]
        if bad:
            return f"{element}{[count, *row]}, steps {kept} and {last}: {bad[0]}"
    return ""


def _like(row: Any, argument: np.ndarray[Any, Any]) -> Any:
    return jnp.resize(row, argument.shape).astype(argument.dtype)
