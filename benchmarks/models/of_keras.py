"""Models of Keras, imported by ``hloforge.tensorflow``; TensorFlow runs the models themselves, as graphs."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from benchmarks.cases import Array, Case

# Gives a model and the array of a call.
Make = Callable[[], tuple[Any, Array]]


def of_keras(name: str, make: Make) -> Case:
    """A case of a model: its argument and its variables are the program's parameters."""

    @cache
    def traced() -> tuple[Any, Any]:
        """The model as a function of TensorFlow, and the argument of a call."""
        import keras
        import tensorflow as tf

        keras.utils.set_random_seed(0)
        model, argument = make()
        return tf.function(lambda x: model(x, training=False)), tf.constant(argument)

    @cache
    def tracer() -> Any:
        from hloforge.tensorflow.compiled import tracer_of

        function, argument = traced()
        made = tracer_of(function, [argument])
        return made, made.program()

    def source() -> str:
        return str(tracer()[1].text())

    def own(_: list[Array]) -> list[Array]:
        return [np.array(traced()[1]), *(np.array(capture.value()) for capture in tracer()[0].captures)]

    def run() -> list[Array]:
        function, argument = traced()
        return [np.asarray(function(argument))]

    return Case(name, "models", source=source, tensorflow=run, needs=_needs, adapt=own)


def _needs() -> str:
    return "" if importlib.util.find_spec("tensorflow") else "needs tensorflow (the extra `tensorflow`)"


def _normal(*dims: int) -> Array:
    return np.random.default_rng(0).standard_normal(dims).astype(np.float32)


def _cnn() -> tuple[Any, Array]:
    from keras import Sequential, layers as k

    block = [
        layer
        for features in (32, 64, 128)
        for layer in (k.Conv2D(features, 3, padding="same", use_bias=False), k.BatchNormalization(), k.ReLU())
    ]
    head = [k.GlobalAveragePooling2D(), k.Dense(10, activation="softmax")]
    return Sequential([k.Input((32, 32, 3)), *block[:6], k.MaxPooling2D(), *block[6:], *head]), _normal(4, 32, 32, 3)


def _lstm() -> tuple[Any, Array]:
    from keras import Sequential, layers as k

    layers = [k.LSTM(128, return_sequences=True), k.LSTM(64), k.Dense(10)]
    return Sequential([k.Input((64, 32)), *layers]), _normal(8, 64, 32)


CASES: tuple[Case, ...] = (
    of_keras("CNN with batch norms of Keras 4×32×32×3", _cnn),
    of_keras("two LSTMs of Keras 8×64×32", _lstm),
)
