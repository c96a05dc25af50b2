"""Optimizers, and whole steps of training."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import Argument, integers, normal, uniform, weights
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.kinds.dense import activation
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


def _tensors(draw: Draw, high: float) -> list[tuple[int, ...]]:
    """Shapes of the parameters of a model: some matrices, some vectors."""
    count = draw.size(1, 6)
    return [draw.shape(draw.pick(1, 2, 2), high / count) for _ in range(count)]


@kind("optimizers", batch=False)
def sgd_momentum(draw: Draw) -> Drawn:
    shapes = _tensors(draw, 4e6)
    rate, keep, is_nesterov = draw.number(0.01, 0.1), draw.number(0.8, 0.99), draw.chance(0.5)
    count = len(shapes)

    def function(*given: Any) -> Any:
        results = []
        for number in range(count):
            p, g, m = given[number], given[count + number], given[2 * count + number]
            m = keep * m + g
            results += [p - rate * (g + keep * m if is_nesterov else m), m]
        return tuple(results)

    return drawn(function, [normal(*shape) for _ in range(3) for shape in shapes])


@kind("optimizers", batch=False)
def adam(draw: Draw) -> Drawn:
    shapes, decay = _tensors(draw, 3e6), draw.pick(0.0, 0.01)
    count = len(shapes)

    def function(step: Any, *given: Any) -> Any:
        results = []
        for number in range(count):
            p, g, m, v = (given[place * count + number] for place in range(4))
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            upward = (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.999**step)) + 1e-8)
            results += [p - 1e-3 * (upward + decay * p), m, v]
        return tuple(results)

    return drawn(
        function,
        uniform(low=1, high=50),
        [normal(*shape) for _ in range(3) for shape in shapes],
        [uniform(*shape) for shape in shapes],
    )


@kind("optimizers", batch=False)
def rmsprop(draw: Draw) -> Drawn:
    shape = draw.shape(2, 4e6)
    dtype = draw.pick("float32", "float32", "bfloat16")

    def function(p: Any, g: Any, v: Any) -> Any:
        wide = g.astype(jnp.float32)
        v = 0.95 * v + 0.05 * jnp.square(wide)
        return (p - 1e-3 * wide / (jnp.sqrt(v) + 1e-7)).astype(p.dtype), v

    return drawn(function, normal(*shape, dtype=dtype), normal(*shape, dtype=dtype), uniform(*shape))


@kind("optimizers", batch=False)
def clipped_update(draw: Draw) -> Drawn:
    shapes = _tensors(draw, 4e6)
    count = len(shapes)

    def function(*given: Any) -> Any:
        parameters, slopes = given[:count], given[count:]
        norm = jnp.sqrt(sum(jnp.sum(jnp.square(slope)) for slope in slopes))
        factor = jnp.minimum(1.0, 1.0 / (norm + 1e-6))
        return tuple(p - 0.1 * factor * g for p, g in zip(parameters, slopes, strict=True)), norm

    return drawn(function, [normal(*shape) for _ in range(2) for shape in shapes])


@kind("optimizers", batch=False)
def factored_update(draw: Draw) -> Drawn:
    """Adafactor: second moments as rows and columns."""
    rows, columns = draw.shape(2, 4e6)

    def function(p: Any, g: Any, r: Any, c: Any) -> Any:
        square = jnp.square(g) + 1e-30
        r, c = 0.9 * r + 0.1 * square.mean(1), 0.9 * c + 0.1 * square.mean(0)
        update = g * jax.lax.rsqrt(r[:, None] * c[None, :] / r.mean())
        update = update / jnp.maximum(1.0, jnp.sqrt(jnp.mean(jnp.square(update))))
        return p - 0.01 * update, r, c

    shape = (rows, columns)
    return drawn(function, normal(*shape), normal(*shape), uniform(rows, low=0.1), uniform(columns, low=0.1))


@kind("training", batch=False)
def mlp_training_step(draw: Draw) -> Drawn:
    dtype, act = draw.pick("float32", "float32", "bfloat16"), activation(draw)
    rows, inputs, hidden = draw.sizes(draw.products(dtype) / 6, 3, least=4)
    classes = draw.size(2, 100)

    def loss(parameters: Any, x: Any, labels: Any) -> Any:
        a, b, c, d = parameters
        logs = jax.nn.log_softmax((act(x @ a + b) @ c + d).astype(jnp.float32))
        return -jnp.mean(jnp.take_along_axis(logs, labels[:, None], axis=1))

    def function(x: Any, labels: Any, *parameters: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(parameters, x, labels)
        return value, tuple(p - jnp.asarray(0.1, p.dtype) * g for p, g in zip(parameters, slopes, strict=True))

    parameters: list[Argument] = [
        weights(inputs, hidden, dtype=dtype),
        normal(hidden, dtype=dtype, scale=0.1),
        weights(hidden, classes, dtype=dtype),
        normal(classes, dtype=dtype, scale=0.1),
    ]
    return drawn(function, normal(rows, inputs, dtype=dtype), integers(rows, high=classes), parameters)


@kind("training", batch=False)
def convolution_training_step(draw: Draw) -> Drawn:
    batch, channels, filters = draw.size(1, 8), draw.pick(1, 3, 4, 8), draw.size(4, 32)
    height, width = draw.image(3e7 / (batch * channels * filters * 9))

    def loss(parameters: Any, x: Any, labels: Any) -> Any:
        kernel, dense = parameters
        y = jax.lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        logs = jax.nn.log_softmax(jax.nn.relu(y).mean((1, 2)) @ dense)
        return -jnp.mean(jnp.take_along_axis(logs, labels[:, None], axis=1))

    def function(x: Any, labels: Any, kernel: Any, dense: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)((kernel, dense), x, labels)
        return value, kernel - 0.1 * slopes[0], dense - 0.1 * slopes[1]

    return drawn(
        function,
        normal(batch, height, width, channels),
        integers(batch, high=10),
        weights(3, 3, channels, filters, inputs=9 * channels),
        weights(filters, 10),
    )


@kind("training", batch=False)
def training_loop(draw: Draw) -> Drawn:
    """Steps of logistic regression by gradient descent, in a loop."""
    steps = draw.size(5, 100)
    rows, features = draw.sizes(draw.work(50, 2e7 / steps), 2, least=3)

    def function(x: Any, y: Any, w: Any) -> Any:
        def loss(w: Any) -> Any:
            return jnp.mean(jnp.logaddexp(0.0, -y * (x @ w))) + 1e-3 * jnp.sum(w * w)

        return jax.lax.fori_loop(0, steps, lambda _, w: w - 0.1 * jax.grad(loss)(w), w)

    return drawn(function, normal(rows, features), normal(rows), normal(features, scale=0.1))


@kind("training", batch=False)
def embedding_training_step(draw: Draw) -> Drawn:
    """Word vectors with sampled negatives: gathers, and scatters of gradients."""
    words, features = draw.size(50, 30_000), draw.size(4, 100)
    rows, negatives = draw.sizes(draw.work(30, 3e6) / features, 2, least=2)

    def loss(tables: Any, centers: Any, contexts: Any) -> Any:
        scores = jnp.einsum("rf,rnf->rn", tables[0][centers], tables[1][contexts])
        signs = jnp.where(jnp.arange(contexts.shape[1]) == 0, 1.0, -1.0)
        return -jnp.mean(jax.nn.log_sigmoid(signs * scores))

    def function(first: Any, second: Any, centers: Any, contexts: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)((first, second), centers, contexts)
        return value, first - 0.5 * slopes[0], second - 0.5 * slopes[1]

    return drawn(
        function,
        normal(words, features, scale=0.3),
        normal(words, features, scale=0.3),
        integers(rows, high=words),
        integers(rows, negatives, high=words),
    )
