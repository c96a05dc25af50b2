"""Keras applications on TensorFlow, and as integers for TFLite, by the names of their rows in docs/models.md."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

import hloforge
from benchmarks.pairs import Pair

# The sizes of images; weights are random.
APPLICATIONS = {"MobileNetV2": 128, "EfficientNetV2B0": 96, "ResNet50": 64, "DenseNet121": 64, "ConvNeXtTiny": 64}
QUANTIZED = {"MobileNetV2": 224, "MobileNetV3Small": 224, "ResNet50": 64}


def _application(name: str, size: int) -> tuple[Any, Any]:
    import keras

    keras.utils.set_random_seed(0)
    model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=100)
    return model, np.random.default_rng(0).uniform(-1, 1, (1, size, size, 3)).astype(np.float32)


def application(name: str) -> Pair:
    """A call of one image beside ``tf.function`` without and with ``jit_compile``; a thread for each processor."""
    import tensorflow as tf

    import hloforge.tensorflow

    model, images = _application(name, APPLICATIONS[name])
    begin = time.perf_counter()
    program = hloforge.tensorflow.compile(lambda x: model(x, training=False), [tf.TensorSpec(images.shape)])
    seconds = time.perf_counter() - begin
    given = tf.constant(images)
    plain = tf.function(lambda x: model(x, training=False))
    compiled = tf.function(lambda x: model(x, training=False), jit_compile=True)
    theirs = {"TensorFlow": lambda: [plain(given).numpy()], "TensorFlow, XLA": lambda: [compiled(given).numpy()]}
    return Pair(theirs, lambda: [program(given).numpy()], seconds)


def quantized(name: str) -> Pair:
    """An image of bytes through a model of bytes beside TFLite's interpreter, which runs XNNPACK."""
    import tensorflow as tf

    model, images = _application(name, QUANTIZED[name])
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: [[images * scale] for scale in (0.5, 1.0)]
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    data = converter.convert()
    given = np.round(images * 127).astype(np.int8)

    def interpreter(threads: int) -> Any:
        made = tf.lite.Interpreter(model_content=data, num_threads=threads)
        made.allocate_tensors()
        (taken,), (result,) = made.get_input_details(), made.get_output_details()

        def call() -> list[Any]:
            made.set_tensor(taken["index"], given)
            made.invoke()
            return [made.get_tensor(result["index"])]

        return call

    begin = time.perf_counter()
    program = hloforge.compile(data).load()
    program(given)  # a size that the file leaves open is compiled for the call
    seconds = time.perf_counter() - begin
    counts = sorted({1, os.cpu_count() or 1})
    theirs = {f"XNNPACK, {count} thread{'s' * (count > 1)}": interpreter(count) for count in counts}
    return Pair(theirs, lambda: [program(given)], seconds)
