"""Training programs of JAX's frameworks that know nothing of hloforge: ``python -m tests.jax.training FILE NAME...``.

They write losses and last gradients into the file. The optimizers are such that rounding stays rounding.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import jax.numpy as jnp
import numpy as np

_STEPS = 3


def linen() -> Any:
    """A convolutional network of Flax with state, dropout and a TrainState."""
    import flax.linen as nn
    import optax
    from flax.training import train_state

    class Network(nn.Module):
        @nn.compact
        def __call__(self, x: Any, is_training: bool) -> Any:
            x = nn.relu(nn.BatchNorm(use_running_average=not is_training)(nn.Conv(8, (3, 3))(x)))
            x = nn.max_pool(x, (2, 2), (2, 2)).reshape(len(x), -1)
            return nn.Dense(5)(nn.Dropout(0.3, deterministic=not is_training)(x))

    class State(train_state.TrainState):
        statistics: Any

    random = np.random.default_rng(0)
    x, labels = random.normal(size=(16, 8, 8, 3)).astype(np.float32), random.integers(0, 5, 16)
    network = Network()
    variables = network.init(jax.random.key(0), x, False)
    state = State.create(
        apply_fn=network.apply,
        params=variables["params"],
        tx=optax.sgd(0.1, momentum=0.9),
        statistics=variables["batch_stats"],
    )

    @jax.jit
    def step(state: Any, key: Any) -> Any:
        def loss(parameters: Any) -> Any:
            given = {"params": parameters, "batch_stats": state.statistics}
            logits, updated = state.apply_fn(given, x, True, mutable=["batch_stats"], rngs={"dropout": key})
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), updated

        (value, updated), gradients = jax.value_and_grad(loss, has_aux=True)(state.params)
        state = state.apply_gradients(grads=gradients).replace(statistics=updated["batch_stats"])
        return state, value, gradients

    losses = []
    for turn in range(_STEPS):
        state, value, gradients = step(state, jax.random.fold_in(jax.random.key(3), turn))
        losses.append(value)
    return losses, gradients


def nnx() -> Any:
    """An attention block of Flax's nnx, whose modules and optimizer change in place."""
    import optax
    from flax import nnx as flax_nnx

    class Block(flax_nnx.Module):
        def __init__(self, rngs: Any) -> None:
            self.enter = flax_nnx.Linear(6, 16, rngs=rngs)
            self.norm = flax_nnx.LayerNorm(16, rngs=rngs)
            self.attention = flax_nnx.MultiHeadAttention(
                num_heads=2, in_features=16, qkv_features=16, decode=False, rngs=rngs
            )
            self.leave = flax_nnx.Linear(16, 2, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            x = jax.nn.gelu(self.norm(self.enter(x)))
            return self.leave(x + self.attention(x))

    block = Block(flax_nnx.Rngs(0))
    optimizer = flax_nnx.Optimizer(block, optax.sgd(0.05), wrt=flax_nnx.Param)
    x = jax.random.normal(jax.random.key(1), (4, 7, 6))

    @flax_nnx.jit
    def step(block: Any, optimizer: Any) -> Any:
        value, gradients = flax_nnx.value_and_grad(lambda block: ((block(x) - 1) ** 2).mean())(block)
        optimizer.update(block, gradients)
        return value, gradients

    steps = [step(block, optimizer) for _ in range(_STEPS)]
    return [value for value, _ in steps], steps[-1][1]


def equinox() -> Any:
    """A perceptron of Equinox, whose modules are pytrees with functions in them."""
    import equinox as eqx
    import optax

    model = eqx.nn.MLP(4, 1, 16, 2, key=jax.random.key(0))
    optimizer = optax.sgd(0.05)
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    x = jax.random.normal(jax.random.key(1), (32, 4))

    @eqx.filter_jit
    def step(model: Any, state: Any) -> Any:
        def loss(model: Any) -> Any:
            return ((jax.vmap(model)(x) - x.sum(1, keepdims=True)) ** 2).mean()

        value, gradients = eqx.filter_value_and_grad(loss)(model)
        changes, state = optimizer.update(gradients, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, changes), state, value, gradients

    losses = []
    for _ in range(_STEPS):
        model, state, value, gradients = step(model, state)
        losses.append(value)
    return losses, eqx.filter(gradients, eqx.is_array)


def haiku() -> Any:
    """An LSTM of Haiku, its gradients clipped by Optax."""
    import haiku as hk
    import optax

    def network(x: Any) -> Any:
        core = hk.LSTM(8)
        return hk.Linear(2)(hk.dynamic_unroll(core, x, core.initial_state(3))[0])

    model, x = hk.without_apply_rng(hk.transform(network)), jax.random.normal(jax.random.key(0), (6, 3, 4))
    parameters = model.init(jax.random.key(1), x)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1))
    state = optimizer.init(parameters)

    @jax.jit
    def step(parameters: Any, state: Any) -> Any:
        value, gradients = jax.value_and_grad(lambda p: ((model.apply(p, x) - 1) ** 2).mean())(parameters)
        changes, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, changes), state, value, gradients

    losses = []
    for _ in range(_STEPS):
        parameters, state, value, gradients = step(parameters, state)
        losses.append(value)
    return losses, gradients


def keras() -> Any:
    """An LSTM of Keras by ``model.fit`` with Adam, validation and prediction."""
    import keras as keras_3

    keras_3.utils.set_random_seed(1)
    layers = keras_3.layers
    model = keras_3.Sequential(
        [
            layers.Input((6,)),
            layers.Embedding(20, 8),
            layers.LSTM(8),
            layers.Dropout(0.1),
            layers.Dense(2, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    x = np.random.default_rng(0).integers(0, 20, (64, 6))
    y = (x[:, 0] > 10).astype(int)
    history = model.fit(x, y, epochs=2, batch_size=16, verbose=0, shuffle=False, validation_split=0.25)
    return history.history["loss"], history.history["val_loss"], model.predict(x, verbose=0)


PROGRAMS: dict[str, Callable[[], Any]] = {f.__name__: f for f in (linen, nnx, equinox, haiku, keras)}


def main() -> None:
    found = {}
    for name in sys.argv[2:]:
        for number, leaf in enumerate(jax.tree.leaves(PROGRAMS[name]())):
            found[f"{name}{number}"] = np.asarray(jnp.asarray(leaf))
    np.savez(sys.argv[1], **found)


if __name__ == "__main__":
    main()
