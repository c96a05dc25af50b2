"""Losses: from predictions to a number, or one number a row."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.perf_fuzz.arguments import booleans, integers, normal, stochastic, uniform
from benchmarks.perf_fuzz.drawing import Draw
from benchmarks.perf_fuzz.registry import Drawn, drawn, kind


@kind("losses", gradient=True)
def cross_entropy(draw: Draw) -> Drawn:
    dtype = draw.float_type()
    rows, classes = draw.shape(2, 5e6)
    smoothing = draw.pick(0.0, 0.1)

    def function(logits: Any, labels: Any) -> Any:
        logs = jax.nn.log_softmax(logits.astype(jnp.float32))
        picked = jnp.take_along_axis(logs, labels[:, None], axis=1)[:, 0]
        return -jnp.mean((1 - smoothing) * picked + smoothing * logs.mean(-1))

    return drawn(function, normal(rows, classes, dtype=dtype), integers(rows, high=classes))


@kind("losses", gradient=True)
def regression_loss(draw: Draw) -> Drawn:
    dtype = draw.float_type()
    shape = draw.shape(draw.pick(1, 2, 3))
    error = draw.pick(
        jnp.square,
        jnp.abs,
        lambda d: jnp.where(jnp.abs(d) < 1, 0.5 * d * d, jnp.abs(d) - 0.5),
        lambda d: jnp.logaddexp(d, -d),
    )
    return drawn(lambda x, y: jnp.mean(error(x - y)), normal(*shape, dtype=dtype), normal(*shape, dtype=dtype))


@kind("losses", gradient=True, batch=False)
def contrastive_loss(draw: Draw) -> Drawn:
    rows, features = draw.sizes(draw.work(100, 3e5), 2, least=4)
    rows = min(rows, 1500)

    def unit(x: Any) -> Any:
        return x / (jnp.linalg.norm(x, axis=-1, keepdims=True) + 1e-6)

    def function(x: Any, y: Any) -> Any:
        scores = unit(x) @ unit(y).T / 0.1
        return -0.5 * (
            jnp.mean(jnp.diagonal(jax.nn.log_softmax(scores, 0)))
            + jnp.mean(jnp.diagonal(jax.nn.log_softmax(scores, 1)))
        )

    return drawn(function, normal(rows, features), normal(rows, features))


@kind("losses", gradient=True)
def binary_loss(draw: Draw) -> Drawn:
    shape = draw.shape(2, 2e6)
    focus = draw.pick(0.0, 2.0)

    def function(logits: Any, targets: Any) -> Any:
        share = jax.nn.sigmoid(logits)
        loss = jnp.maximum(logits, 0) - logits * targets + jnp.log1p(jnp.exp(-jnp.abs(logits)))
        miss = jnp.where(targets > 0, 1 - share, share)
        return jnp.sum(loss * miss**focus, axis=-1)

    return drawn(function, normal(*shape), booleans(*shape, share=0.2))


@kind("losses", gradient=True)
def divergence(draw: Draw) -> Drawn:
    rows, classes = draw.shape(2, 5e6)

    def function(logits: Any, shares: Any) -> Any:
        return jnp.sum(shares * (jnp.log(shares + 1e-9) - jax.nn.log_softmax(logits)), axis=-1)

    return drawn(function, normal(rows, classes), stochastic(rows, classes))


@kind("losses", gradient=True)
def triplet_loss(draw: Draw) -> Drawn:
    rows, features = draw.shape(2, 3e6)

    def function(x: Any, near: Any, far: Any) -> Any:
        gap = jnp.sum(jnp.square(x - near), -1) - jnp.sum(jnp.square(x - far), -1)
        return jnp.mean(jnp.maximum(gap + 0.5, 0))

    return drawn(function, *(normal(rows, features) for _ in range(3)))


@kind("losses", gradient=True)
def variational_loss(draw: Draw) -> Drawn:
    """Of an autoencoder: reparametrized numbers, a divergence and an error."""
    rows, features = draw.shape(2, 3e6)

    def function(mean: Any, scale: Any, noise: Any, target: Any) -> Any:
        sampled = mean + jnp.exp(0.5 * scale) * noise
        divergence = -0.5 * jnp.sum(1 + scale - mean**2 - jnp.exp(scale), axis=-1)
        return jnp.mean(jnp.sum(jnp.square(sampled - target), -1) + 0.1 * divergence)

    shape = (rows, features)
    return drawn(function, normal(*shape), normal(*shape, scale=0.3), normal(*shape), uniform(*shape))
