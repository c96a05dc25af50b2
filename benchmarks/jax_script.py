"""An ordinary script of JAX, from its first line to its last, cold and warm, beside JAX's CPU.

Parameters are drawn eagerly, 200 steps of training are one compiled function, and what was learnt is looked at eagerly:
some 90 programs, most of them an operation that runs once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from benchmarks.__main__ import reason
from benchmarks.render import ROOT

ENGINES = {"hloforge": "hloforge", "cached": "hloforge", "xla": "cpu"}
PARTS = ("start", "parameters", "training", "evaluation")

_SIZES = (64, 128, 96, 10)
_ROWS, _BATCH, _STEPS = 512, 64, 200


def run() -> dict[str, float]:
    """Run the script on JAX's default platform: seconds of each part, ``start`` with the imports."""
    marks = [time.perf_counter()]
    import jax
    import jax.numpy as jnp

    jax.devices()
    marks.append(time.perf_counter())

    def forward(parameters: Any, x: Any) -> Any:
        *hidden, (w, b) = parameters
        for weight, bias in hidden:
            x = jax.nn.relu(x @ weight + bias)
        return x @ w + b

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        logits = jax.nn.log_softmax(forward(parameters, x))
        return -jnp.mean(jnp.sum(logits * jax.nn.one_hot(y, _SIZES[-1]), -1))

    @jax.jit
    def step(parameters: Any, momentum: Any, x: Any, y: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(parameters, x, y)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
        return jax.tree.map(lambda p, m: p - 0.05 * m, parameters, momentum), momentum, value

    key = jax.random.key(0)
    parameters = []
    for rows, columns in pairwise(_SIZES):
        key, own = jax.random.split(key)
        parameters.append((jax.random.normal(own, (rows, columns)) * jnp.sqrt(2.0 / rows), jnp.zeros(columns)))
    momentum = jax.tree.map(jnp.zeros_like, parameters)
    x = jax.random.normal(jax.random.key(1), (_ROWS, _SIZES[0]))
    y = jnp.argmax(x @ jax.random.normal(jax.random.key(2), (_SIZES[0], _SIZES[-1])), -1)
    jax.block_until_ready((parameters, momentum, x, y))
    marks.append(time.perf_counter())

    value = jnp.inf
    for number in range(_STEPS):
        first = number * _BATCH % _ROWS
        batch = slice(first, first + _BATCH)
        parameters, momentum, value = step(parameters, momentum, x[batch], y[batch])
    first_loss = float(value)
    marks.append(time.perf_counter())

    logits = forward(parameters, x)
    found = jnp.argmax(logits, -1)
    confusion = jnp.zeros((_SIZES[-1],) * 2).at[y, found].add(1.0)
    recall = jnp.diag(confusion) / jnp.maximum(confusion.sum(1), 1)
    surest = jnp.sort(jax.nn.softmax(logits).max(-1))[-5:]
    norms = [float(jnp.linalg.norm(weight)) for weight, _ in parameters]
    counts, _ = jnp.histogram(parameters[0][0], bins=20)
    told = [first_loss, float(jnp.mean(found == y)), float(recall.mean()), surest.tolist(), norms, int(counts.sum())]
    marks.append(time.perf_counter())
    if told[-1] != _SIZES[0] * _SIZES[1]:
        raise RuntimeError(f"the script computes nonsense: {told}")
    return dict(zip(PARTS, (after - before for before, after in pairwise(marks)), strict=True))


def measure(turns: int, timeout: float) -> dict[str, Any]:
    """All engines in turns: for each a list of the seconds of its parts. Raises RuntimeError if a run fails."""
    found: dict[str, Any] = {engine: [] for engine in ENGINES}
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as cache:
            for engine, platform in ENGINES.items():
                found[engine].append(child(["benchmarks.jax_script"], platform, cache, timeout))
    return found


def child(module: Sequence[str], platform: str, cache: str, timeout: float) -> Any:
    """What a module with its arguments prints last, run by JAX on a platform, with a folder as hloforge's cache."""
    done = subprocess.run(
        [sys.executable, "-m", *module], cwd=ROOT, capture_output=True, text=True, check=False,
        timeout=timeout, env=os.environ | {"JAX_PLATFORMS": platform, "HLOFORGE_CACHE_DIR": cache},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(reason(done.stderr) or f"ended with status {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def total(parts: Sequence[dict[str, float]]) -> list[float]:
    """Seconds of whole runs."""
    return [sum(part.values()) for part in parts]


if __name__ == "__main__":
    print(json.dumps(run()))
