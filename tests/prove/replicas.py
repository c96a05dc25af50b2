"""Programs of two and four devices with collectives: JAX's own on as many devices of its CPU client are right."""

from __future__ import annotations

from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import hloforge
from hloforge.runtime.reference.compare import compare
from tests.prove.pool import Pool

# Before JAX has looked for devices.
jax.config.update("jax_num_cpu_devices", 4)

_TYPES = ("float32", "float32", "int32", "bfloat16", "uint8", "int8", "float16", "complex64", "bool")
_AXIS = "i"


def _steps(random: Random, count: int, element: str) -> list[Any]:
    """Some steps of a function of one device's array of rank 1 and more."""
    groups = [list(range(count // 2)), list(range(count // 2, count))] if count == 4 and random.random() < 0.4 else None
    members = len(groups[0]) if groups else count
    shift = random.randrange(count)
    pairs = [(d, (d + shift) % count) for d in range(count) if random.random() < 0.8]
    axis = random.choice((0, -1))
    exact = [
        lambda x: lax.all_gather(x, _AXIS, axis_index_groups=groups, tiled=True, axis=axis % x.ndim),
        lambda x: lax.all_gather(x, _AXIS, axis_index_groups=groups).max(0),
        lambda x: lax.ppermute(x, _AXIS, pairs),
        lambda x: lax.all_to_all(
            jnp.concatenate([x] * members, 0), _AXIS, 0, axis % x.ndim, axis_index_groups=groups, tiled=True
        ),
        lambda x: x[::-1],
        lambda x: jnp.where(lax.axis_index(_AXIS) % 2 == 0, x, x[::-1]),
        lambda x: x + lax.axis_index(_AXIS).astype(x.dtype),
        lambda x: lax.fori_loop(0, 2, lambda _, c: lax.ppermute(c, _AXIS, pairs), x),
        lambda x: jnp.roll(x, 1, axis),
    ]
    numeric = [
        lambda x: lax.psum(x, _AXIS, axis_index_groups=groups),
        lambda x: lax.psum_scatter(
            jnp.concatenate([x] * members, 0), _AXIS, scatter_dimension=0, axis_index_groups=groups, tiled=True
        ),
        lambda x: lax.psum(x, _AXIS) * 2,
        lambda x: lax.scan(lambda c, _: (lax.psum(c, _AXIS) // 3 if "int" in element else c * 2, None), x, None, 2)[0],
    ]
    ordered = [lambda x: lax.pmax(x, _AXIS, axis_index_groups=groups), lambda x: lax.pmin(x, _AXIS)]
    options = list(exact)
    if element != "bool":
        options += numeric
    if element not in ("bool", "complex64"):
        options += ordered
    return random.choices(options, k=random.choice((1, 2, 3, 5)))


def judge(seed: int) -> str:
    """What is wrong about the results of a seed's program; empty if nothing is."""
    random = Random(f"replicas {seed}")
    count, element = random.choice((2, 4)), random.choice(_TYPES)
    pool = Pool.of(random)
    dims = tuple(size or 2 for size in pool.dims(2)) or (3,)
    steps = _steps(random, count, element)

    def function(x: Any) -> Any:
        made = [x]
        for step in steps:
            if made[-1].size < 4096:
                made.append(step(made[-1]))
        return made[-1], made[len(made) // 2]

    x = pool.numbers((count, *dims), element)
    with jax.enable_x64(False):
        mapped = jax.pmap(function, axis_name=_AXIS, devices=jax.devices("cpu")[:count])
        expected = tuple(map(np.asarray, mapped(x)))
        text = str(mapped.lower(x).as_text())
    found = tuple(map(np.asarray, hloforge.replicate(text, partitions=count, cache=False)(x)))
    report = compare(found, expected)
    return "" if report.agrees else f"{count} of {element}{list(dims)}: {report.text()}"
