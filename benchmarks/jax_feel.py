"""How JAX feels: from the start of a process to the tenth step of small programs, beside JAX's CPU (``make jax-feel``).

Each program runs with an empty cache, again with what that run has left, and on JAX's CPU. Programs of libraries that
are not installed are left out (``pip install '.[jax-libraries]'``).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from benchmarks.jax_script import ENGINES, child
from benchmarks.tables import seconds, table

STEPS = 10


def mlp() -> None:
    """A perceptron in plain JAX: parameters drawn eagerly, steps jitted."""
    import jax
    import jax.numpy as jnp

    sizes, parameters, key = (64, 128, 128, 10), [], jax.random.key(0)
    for rows, columns in pairwise(sizes):
        key, drawn = jax.random.split(key)
        parameters.append((jax.random.normal(drawn, (rows, columns)) / jnp.sqrt(rows), jnp.zeros(columns)))
    x, y = jax.random.normal(key, (256, 64)), jax.random.randint(key, (256,), 0, 10)

    def loss(parameters: Any) -> Any:
        hidden = x
        for w, b in parameters[:-1]:
            hidden = jax.nn.relu(hidden @ w + b)
        logits = jax.nn.log_softmax(hidden @ parameters[-1][0] + parameters[-1][1])
        return -jnp.take_along_axis(logits, y[:, None], 1).mean()

    @jax.jit
    def step(parameters: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(parameters)
        return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient), value

    for _ in range(STEPS):
        parameters, value = step(parameters)
        float(value)


def nnx() -> None:
    """A convolutional network of Flax's nnx with Adam of Optax."""
    import jax
    import optax
    from flax import nnx as flax_nnx

    class Network(flax_nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.first = flax_nnx.Conv(1, 16, (3, 3), rngs=rngs)
            self.norm = flax_nnx.BatchNorm(16, rngs=rngs)
            self.second = flax_nnx.Conv(16, 32, (3, 3), rngs=rngs)
            self.drop = flax_nnx.Dropout(0.2, rngs=rngs)
            self.last = flax_nnx.Linear(7 * 7 * 32, 10, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            x = flax_nnx.avg_pool(flax_nnx.relu(self.norm(self.first(x))), (2, 2), (2, 2))
            x = flax_nnx.avg_pool(flax_nnx.relu(self.second(x)), (2, 2), (2, 2))
            return self.last(self.drop(x.reshape(len(x), -1)))

    model = Network(flax_nnx.Rngs(0))
    optimizer = flax_nnx.Optimizer(model, optax.adamw(1e-3), wrt=flax_nnx.Param)
    x, y = jax.random.normal(jax.random.key(1), (32, 28, 28, 1)), jax.random.randint(jax.random.key(2), (32,), 0, 10)

    @flax_nnx.jit
    def step(model: Any, optimizer: Any) -> Any:
        def loss(model: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

        value, gradients = flax_nnx.value_and_grad(loss)(model)
        optimizer.update(model, gradients)
        return value

    for _ in range(STEPS):
        float(step(model, optimizer))


def vit() -> None:
    """A vision transformer of Equinox with two blocks."""
    import equinox as eqx
    import jax
    import optax

    class Block(eqx.Module):
        norms: Any
        attention: Any
        mlp: Any

        def __init__(self, key: Any) -> None:
            first, second = jax.random.split(key)
            self.norms = [eqx.nn.LayerNorm(64), eqx.nn.LayerNorm(64)]
            self.attention = eqx.nn.MultiheadAttention(4, 64, key=first)
            self.mlp = eqx.nn.MLP(64, 64, 128, 1, jax.nn.gelu, key=second)

        def __call__(self, x: Any) -> Any:
            normed = jax.vmap(self.norms[0])(x)
            x = x + self.attention(normed, normed, normed)
            return x + jax.vmap(self.mlp)(jax.vmap(self.norms[1])(x))

    class Vit(eqx.Module):
        patches: Any
        blocks: Any
        head: Any

        def __init__(self, key: Any) -> None:
            keys = jax.random.split(key, 4)
            self.patches = eqx.nn.Conv2d(3, 64, 4, 4, key=keys[0])
            self.blocks = [Block(keys[1]), Block(keys[2])]
            self.head = eqx.nn.Linear(64, 10, key=keys[3])

        def __call__(self, x: Any) -> Any:
            x = self.patches(x).reshape(64, -1).T
            for block in self.blocks:
                x = block(x)
            return self.head(x.mean(0))

    model, optimizer = Vit(jax.random.key(0)), optax.adam(1e-3)
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    x, y = jax.random.normal(jax.random.key(1), (16, 3, 32, 32)), jax.random.randint(jax.random.key(2), (16,), 0, 10)

    @eqx.filter_jit
    def step(model: Any, state: Any) -> Any:
        def loss(model: Any) -> Any:
            return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()

        value, gradients = eqx.filter_value_and_grad(loss)(model)
        changes, state = optimizer.update(gradients, state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, changes), state, value

    for _ in range(STEPS):
        model, state, value = step(model, state)
        float(value)


def nuts() -> None:
    """NUTS of NumPyro on a linear regression; a step is ten samples."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    x = jax.random.normal(jax.random.key(0), (100, 3))
    y = x @ jnp.array([1.0, -2.0, 0.5]) + 0.1

    def model() -> None:
        w, b = numpyro.sample("w", dist.Normal(0, 1).expand([3])), numpyro.sample("b", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(x @ w + b, numpyro.sample("scale", dist.HalfNormal(1))), obs=y)

    chain = MCMC(NUTS(model), num_warmup=50, num_samples=10 * STEPS, progress_bar=False)
    chain.run(jax.random.key(1))
    chain.get_samples()["w"].block_until_ready()


def ode() -> None:
    """Parameters of an equation fitted through Diffrax's adaptive solver."""
    import diffrax
    import jax
    import jax.numpy as jnp

    def field(t: Any, y: Any, p: Any) -> Any:
        return jnp.stack([p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]])

    saves = diffrax.SaveAt(ts=jnp.linspace(0, 5, 20))
    control = diffrax.PIDController(rtol=1e-5, atol=1e-6)

    @jax.jit
    def step(p: Any) -> Any:
        def loss(p: Any) -> Any:
            start, term = jnp.array([2.0, 1.0]), diffrax.ODETerm(field)
            found = diffrax.diffeqsolve(
                term, diffrax.Tsit5(), 0, 5, 0.05, start, p, saveat=saves, stepsize_controller=control
            )
            return (found.ys**2).mean()

        value, slope = jax.value_and_grad(loss)(p)
        return p - 1e-3 * slope, value

    p = jnp.array([0.6, 0.4, 0.5, 0.2])
    for _ in range(STEPS):
        p, value = step(p)
        float(value)


# With what each needs beside JAX.
PROGRAMS: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {
    "plain JAX: a perceptron": (mlp, ()),
    "flax nnx and optax: a convolutional network": (nnx, ("flax", "optax")),
    "equinox: a vision transformer": (vit, ("equinox", "optax")),
    "numpyro: NUTS on a regression": (nuts, ("numpyro",)),
    "diffrax: a fit through a solver": (ode, ("diffrax",)),
}


def measure(turns: int, timeout: float, only: str = "") -> dict[str, dict[str, list[float]]]:
    """For each program and engine the seconds of whole processes. Raises RuntimeError if one fails."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, (_, packages) in PROGRAMS.items():
        if only not in name or not all(map(find_spec, packages)):
            continue
        found[name] = {engine: [] for engine in ENGINES}
        for _ in range(turns):
            with tempfile.TemporaryDirectory() as cache:
                for engine, platform in ENGINES.items():
                    begin = time.perf_counter()
                    child(["benchmarks.jax_feel", "--run", name], platform, cache, timeout)
                    found[name][engine].append(time.perf_counter() - begin)
    return found


def rendered(measured: dict[str, dict[str, list[float]]]) -> str:
    """The table: medians, and the medians of the quotients by JAX's CPU in the same turn."""
    rows = []
    for name, times in measured.items():
        quotients = [
            statistics.median(ours / cpu for ours, cpu in zip(times[engine], times["xla"], strict=True))
            for engine in ("hloforge", "cached")
        ]
        medians = [seconds(statistics.median(times[engine])) for engine in ENGINES]
        rows.append([name, *medians, *(f"{quotient:.2f}" for quotient in quotients)])
    return table(["from start to the tenth step", "cold", "warm", "JAX's CPU", "cold / CPU", "warm / CPU"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", metavar="NAME", choices=PROGRAMS, help="run one program in this process")
    parser.add_argument("--only", default="", help="programs whose names contain this")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one run")
    options = parser.parse_args()
    if options.run:
        PROGRAMS[options.run][0]()
        print(json.dumps({}))
        return
    print(rendered(measure(options.turns, options.timeout, options.only)))
    print(f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=sys.stderr)


if __name__ == "__main__":
    main()
