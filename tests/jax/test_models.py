"""Models that train or run on hloforge as with ``jax.jit`` on the CPU; frameworks where they are installed.

They run by ``hloforge.jit``, and in ``make test-all`` by ``jax.jit`` on hloforge's device too. Gradients are compared
and not what Adam makes of them: it turns the rounding of a gradient that is exactly zero into steps of full length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloforge

jax = pytest.importorskip("jax")
jnp = jax.numpy


Jit = Callable[..., Callable[..., Any]]


def jit_on(platform: str) -> Jit:
    """``jax.jit`` of functions that run on the platform's first device, wherever their arguments are."""

    def jit(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        compiled = jax.jit(function, **options)

        def run(*arguments: Any) -> Any:
            with jax.default_device(jax.devices(platform)[0]):
                return compiled(*arguments)

        return run

    return jit


on_cpu = jit_on("cpu")


@pytest.fixture(params=["jit", pytest.param("backend", marks=pytest.mark.slow)])
def jit(request: pytest.FixtureRequest) -> Jit:
    """What compiles a function for hloforge."""
    return hloforge.jit if request.param == "jit" else jit_on("hloforge")


def assert_close(got: Any, expected: Any, tolerance: float = 2e-5) -> None:
    """Equal within a part of the largest element of each array."""
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        scale = max(1.0, float(np.abs(other).max(initial=0)))
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale)


def draw(seed: int, *sizes: int) -> Any:
    """Numbers of a magnitude that keeps products of matrices near 1."""
    return jax.random.normal(jax.random.key(seed), sizes) / np.sqrt(sizes[0])


def convolution(x: Any, w: Any) -> Any:
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def adam(parameters: Any, gradients: Any, state: Any) -> Any:
    """One step, with the state (count, first moments, second moments)."""
    count, first, second = state
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)

    def moved(p: Any, m: Any, v: Any) -> Any:
        return p - 1e-2 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

    return jax.tree.map(moved, parameters, first, second), (count, first, second)


def test_a_convolutional_network_with_batch_normalization_trains(jit: Jit) -> None:
    def loss(parameters: Any, x: Any, labels: Any) -> Any:
        y = convolution(x, parameters["conv"])
        mean, variance = y.mean((0, 1, 2)), y.var((0, 1, 2))
        y = jax.nn.relu((y - mean) * jax.lax.rsqrt(variance + 1e-5) * parameters["scale"])
        y = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        logits = y.reshape(len(x), -1) @ parameters["dense"]
        return -jax.nn.log_softmax(logits)[jnp.arange(len(x)), labels].mean(), (mean, variance)

    parameters = {"conv": draw(0, 3, 3, 2, 4), "scale": jnp.ones(4), "dense": draw(1, 64, 3)}
    step = jax.value_and_grad(loss, has_aux=True)
    run, reference = jit(step), on_cpu(step)
    x, labels = draw(2, 4, 8, 8, 2), jnp.array([0, 1, 2, 1])
    for _ in range(3):
        got, expected = run(parameters, x, labels), reference(parameters, x, labels)
        assert_close(got, expected)
        parameters = jax.tree.map(lambda p, g: p - 0.1 * g, parameters, got[1])


def attention(x: Any, p: Any, heads: int, mask: Any = None) -> Any:
    q, k, v = jnp.split(x @ p["qkv"], 3, -1)
    q, k, v = (t.reshape(*t.shape[:-1], heads, -1) for t in (q, k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    scores = scores if mask is None else jnp.where(mask, scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(x.shape) @ p["out"]


def normalized(x: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-6)


def test_a_transformer_trains_with_adam_and_donated_state(jit: Jit) -> None:
    def loss(p: Any, tokens: Any) -> Any:
        x = p["embedding"][tokens[:, :-1]]
        mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
        x = x + jax.checkpoint(attention, static_argnums=2)(normalized(x), p, 2, mask)
        x = x + jax.nn.gelu(normalized(x) @ p["up"]) @ p["down"]
        logits = normalized(x) @ p["embedding"].T
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1).mean()

    def step(parameters: Any, state: Any, tokens: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters, tokens)
        return (*adam(parameters, gradients, state), value, gradients)

    p = {
        "embedding": draw(0, 11, 16),
        "qkv": draw(1, 16, 48),
        "out": draw(2, 16, 16),
        "up": draw(3, 16, 32),
        "down": draw(4, 32, 16),
    }
    zeros = jax.tree.map(jnp.zeros_like, p)
    run, reference = jit(step, donate_argnums=(0, 1)), on_cpu(step)
    tokens = jax.random.randint(jax.random.key(5), (2, 9), 0, 11)
    mine: Any = (p, (0, zeros, zeros))
    mine, values = jax.tree.map(jnp.array, mine), []
    for _ in range(3):
        copied = jax.tree.map(jnp.copy, mine)
        *mine, value, gradients = run(*mine, tokens)
        expected = reference(*copied, tokens)
        assert_close((value, gradients), expected[2:])
        values.append(float(value))
    assert values[2] < values[0]


def test_an_lstm_by_scan_trains(jit: Jit) -> None:
    def loss(p: Any, xs: Any) -> Any:
        def cell(carry: Any, x: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(x @ p["x"] + h @ p["h"] + p["b"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((xs.shape[1], 4))
        return (jax.lax.scan(cell, (zeros, zeros), xs)[1] ** 2).mean()

    p, xs = {"x": draw(0, 3, 16), "h": draw(1, 4, 16), "b": jnp.zeros(16)}, draw(2, 6, 2, 3)
    step = jax.value_and_grad(loss)
    assert_close(jit(step)(p, xs), on_cpu(step)(p, xs))


def test_decoding_with_a_donated_cache(jit: Jit) -> None:
    p = {"qkv": draw(0, 8, 24), "out": draw(1, 8, 8)}

    def step(cache: Any, position: Any, x: Any) -> Any:
        q, k, v = jnp.split(x @ p["qkv"], 3, -1)
        write = jax.vmap(lambda c, row: jax.lax.dynamic_update_slice(c, row[None], (position, 0)))
        cache = {"k": write(cache["k"], k), "v": write(cache["v"], v)}
        scores = jnp.einsum("bd,bkd->bk", q, cache["k"])
        scores = jnp.where(jnp.arange(scores.shape[1]) <= position, scores, -jnp.inf)
        x = jnp.tanh(jnp.einsum("bk,bkd->bd", jax.nn.softmax(scores), cache["v"]) @ p["out"])
        return cache, position + 1, x

    def decoded(step: Any) -> Any:
        cache = {"k": jnp.zeros((2, 1024, 8)), "v": jnp.zeros((2, 1024, 8))}
        state: Any = (cache, jnp.int32(0), draw(3, 2, 8))
        addresses, found = [], []
        for _ in range(5):
            state = step(*state)
            addresses.append(state[0]["k"].unsafe_buffer_pointer())
            found.append(state[2])
        return addresses, found

    addresses, got = decoded(jit(step, donate_argnums=0))
    # In place, or at most to and fro between two.
    assert len(set(addresses)) <= 2
    assert_close(got, decoded(on_cpu(step))[1])


@pytest.mark.slow
def test_a_block_of_a_diffusion_model(jit: Jit) -> None:
    def block(p: Any, x: Any, time: Any, key: Any) -> Any:
        angles = time[:, None] * jnp.exp(-jnp.arange(4.0))
        embedded = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1) @ p["time"]
        noisy = x + 0.1 * jax.random.normal(key, x.shape)
        groups = normalized(noisy.reshape(2, 8, 8, 2, 4)).reshape(x.shape)
        y = convolution(jax.nn.silu(groups), p["first"]) + embedded[:, None, None]
        y = y + attention(y.reshape(2, 64, 8), p, 2).reshape(x.shape)
        small = jax.image.resize(y, (2, 4, 4, 8), "linear")
        return convolution(jax.image.resize(small, x.shape, "nearest"), p["second"]) + x

    p = {
        "time": draw(0, 8, 8),
        "first": draw(1, 3, 3, 8, 8) / 8,
        "second": draw(2, 3, 3, 8, 8) / 8,
        "qkv": draw(3, 8, 24),
        "out": draw(4, 8, 8),
    }

    def step(p: Any, x: Any, time: Any, key: Any) -> Any:
        return jax.value_and_grad(lambda p: ((block(p, x, time, key) - x) ** 2).mean())(p)

    arguments = (p, draw(5, 2, 8, 8, 8), jnp.array([0.3, 2.0]), jax.random.key(9))
    assert_close(jit(step)(*arguments), on_cpu(step)(*arguments))


def test_flax_and_optax(jit: Jit) -> None:
    nn = pytest.importorskip("flax.linen", reason="flax is not installed")
    optax = pytest.importorskip("optax", reason="optax is not installed")

    class Network(nn.Module):  # type: ignore[name-defined, misc]
        @nn.compact  # type: ignore[untyped-decorator]
        def __call__(self, x: Any) -> Any:
            x = nn.BatchNorm(use_running_average=False)(nn.Conv(4, (3, 3))(x))
            x = nn.Dropout(0.5, deterministic=False)(nn.relu(x))
            return nn.Dense(3)(x.reshape(len(x), -1))

    network, x = Network(), draw(0, 2, 8, 8, 3)
    keys = {"params": jax.random.key(1), "dropout": jax.random.key(2)}
    variables = jit(network.init)(keys, x)
    assert_close(variables, on_cpu(network.init)(keys, x))
    optimizer = optax.adamw(1e-2)

    def step(variables: Any, state: Any, x: Any, key: Any) -> Any:
        def loss(parameters: Any) -> Any:
            y, updated = network.apply(
                variables | {"params": parameters}, x, mutable=["batch_stats"], rngs={"dropout": key}
            )
            return (y**2).mean(), updated

        (value, updated), gradients = jax.value_and_grad(loss, has_aux=True)(variables["params"])
        changes, state = optimizer.update(gradients, state, variables["params"])
        parameters = optax.apply_updates(variables["params"], changes)
        return (value, gradients, updated), ({"params": parameters, **updated}, state)

    state = optimizer.init(variables["params"])
    got, _ = jit(step)(variables, state, x, jax.random.key(3))
    assert_close(got, on_cpu(step)(variables, state, x, jax.random.key(3))[0])


def test_equinox(jit: Jit) -> None:
    eqx = pytest.importorskip("equinox", reason="equinox is not installed")
    arrays, rest = eqx.partition(eqx.nn.MLP(4, 2, 8, 2, key=jax.random.key(0)), eqx.is_array)

    def step(arrays: Any, x: Any) -> Any:
        return jax.grad(lambda arrays: (jax.vmap(eqx.combine(arrays, rest))(x) ** 2).sum())(arrays)

    x = draw(0, 3, 4)
    assert_close(jit(step)(arrays, x), on_cpu(step)(arrays, x))


def test_haiku(jit: Jit) -> None:
    hk = pytest.importorskip("haiku", reason="dm-haiku is not installed")
    model = hk.transform(lambda x: hk.dynamic_unroll(hk.LSTM(4), x, hk.LSTM(4).initial_state(2))[0])
    x = draw(0, 5, 2, 3)
    parameters = jit(model.init)(jax.random.key(0), x)
    assert_close(jit(model.apply)(parameters, None, x), on_cpu(model.apply)(parameters, None, x))
