"""Operations of JAX that are called one by one: the first call in a process, and further ones, beside JAX's CPU."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks.jax_script import child

# What runs it, on arrays of which size, with the cache that the runs before have left.
RUNS = {
    "hloforge, cold": ("hloforge", 32),
    "hloforge, known": ("hloforge", 32),
    "hloforge, another size": ("hloforge", 48),
    "JAX's CPU": ("cpu", 32),
}
PARTS = ("first", "compiling", "again")

_CALLS = 200


def run(size: int) -> dict[str, list[float]]:
    """Call each operation on JAX's default platform with matrices of ``size`` rows.

    Returns:
        For each part the seconds of each operation: of its first call, of this the part in which the platform compiles
        and loads (the rest is JAX's tracing and lowering), and of a later call (the median).
    """
    import jax.numpy as jnp
    import numpy as np
    from jax._src import compiler

    compiling = [0.0]
    compile_and_load: Any = compiler.backend_compile_and_load

    def timed(*arguments: Any, **options: Any) -> Any:
        begin = time.perf_counter()
        try:
            return compile_and_load(*arguments, **options)
        finally:
            compiling[0] += time.perf_counter() - begin

    compiler.backend_compile_and_load = timed
    operations: list[Callable[[Any, Any], Any]] = [
        lambda a, b: a + b,
        lambda a, b: a * b,
        lambda a, b: a @ b,
        lambda a, b: jnp.exp(a),
        lambda a, b: jnp.tanh(a),
        lambda a, b: a.sum(),
        lambda a, b: a.mean(0),
        lambda a, b: a.max(1),
        lambda a, b: a.argmax(),
        lambda a, b: a.T,
        lambda a, b: a.reshape(-1),
        lambda a, b: a.astype(jnp.int32),
        lambda a, b: jnp.concatenate([a, b]),
        lambda a, b: a.cumsum(0),
        lambda a, b: jnp.sort(a),
    ]
    random = np.random.default_rng(0)
    a, b = (jnp.asarray(random.random((size, size), np.float32)) for _ in range(2))
    (a - b).block_until_ready()
    found: dict[str, list[float]] = {part: [] for part in PARTS}
    for operation in operations:
        compiling[0] = 0.0
        found["first"].append(_seconds(operation, a, b))
        found["compiling"].append(compiling[0])
        found["again"].append(median(_seconds(operation, a, b) for _ in range(_CALLS)))
    return found


def _seconds(operation: Callable[[Any, Any], Any], a: Any, b: Any) -> float:
    begin = time.perf_counter()
    operation(a, b).block_until_ready()
    return time.perf_counter() - begin


def measure(turns: int, timeout: float) -> dict[str, Any]:
    """All runs in turns: for each a list of what ``run`` returned. Raises RuntimeError if a run fails."""
    found: dict[str, Any] = {name: [] for name in RUNS}
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as cache:
            for name, (platform, size) in RUNS.items():
                found[name].append(child(["benchmarks.eager_jax", str(size)], platform, cache, timeout))
    return found


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]))))
