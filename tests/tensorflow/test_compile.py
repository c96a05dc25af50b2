"""hloforge.tensorflow.compile against TensorFlow: structures, variables, sizes, element types, models and errors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import hloforge  # noqa: E402
import hloforge.tensorflow  # noqa: E402
from hloforge.dialect.errors import ArgumentError, ImporterError, UnsupportedError  # noqa: E402

X = np.random.RandomState(3).rand(2, 3).astype(np.float32)


def test_structures_element_types_and_variables() -> None:
    matrix = tf.Variable(np.ones((3, 4), np.float32), name="matrix")
    factor = tf.Variable(2.0, name="factor")
    offset = tf.constant(np.arange(3, dtype=np.float32))

    @tf.function
    def function(x: Any, *, k: Any, add: int = 1) -> Any:
        y = x["a"] @ matrix * factor + add
        matrix.assign_add(tf.ones((3, 4)))
        return {
            "y": y,
            "sum": (tf.reduce_sum(k), None),
            "offset": y[0, :3] + offset,
            "matrix": matrix,
            "types": [tf.cast(y, tf.bfloat16), y > 3, tf.complex(y, y), tf.constant(3, tf.int64)],
        }

    k = np.arange(5.0)
    compiled = hloforge.tensorflow.compile(function, [{"a": X}], {"k": tf.TensorSpec([5], tf.float64), "add": 7})
    assert compiled.variables[:2] == ("matrix", "factor")
    got = compiled({"a": X}, k=k, add=7)
    assert matrix.numpy().tolist() == np.full((3, 4), 2).tolist()
    matrix.assign(tf.ones((3, 4)))
    expected = function({"a": tf.constant(X)}, k=tf.constant(k), add=7)
    tf.nest.assert_same_structure(expected, got)
    for one, other in zip(tf.nest.flatten(got), tf.nest.flatten(expected), strict=True):
        if other is not None:
            assert one.dtype == other.dtype
            np.testing.assert_allclose(tf.cast(one, tf.complex128), tf.cast(other, tf.complex128), 1e-6)
    # Parameters are read anew in each call.
    factor.assign(0.0)
    assert float(tf.reduce_sum(compiled({"a": X}, k=k, add=7)["y"])) == 56.0
    with pytest.raises(ArgumentError, match="expected f64"):
        compiled({"a": X}, k=k.astype(np.float32), add=7)
    with pytest.raises(ArgumentError, match="structure"):
        compiled([X], k=k, add=7)
    with pytest.raises(ArgumentError, match="compiled for 7"):
        compiled({"a": X}, k=k, add=8)


def test_sizes_that_a_call_brings() -> None:
    counter = tf.Variable(0, name="counter", dtype=tf.int64)

    class Scale(tf.Module):  # type: ignore[misc]
        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])  # type: ignore[untyped-decorator]
        def __call__(self, x: Any) -> Any:
            counter.assign_add(1)
            return x * tf.cast(counter, tf.float32)

    compiled = hloforge.tensorflow.compile(Scale())
    np.testing.assert_array_equal(compiled(X), X)
    large = np.ones((4096, 3), np.float32)
    np.testing.assert_array_equal(compiled(large), large * 2)
    assert counter.numpy() == 2
    # Elements that decide sizes make a form of their own.
    reshape = hloforge.tensorflow.compile(lambda x, sizes: tf.reshape(x, sizes), [X, tf.TensorSpec([2], tf.int32)])
    assert reshape(X, np.array([3, 2], np.int32)).shape == (3, 2)
    assert reshape(X, np.array([6, 1], np.int32)).shape == (6, 1)


def test_models_of_keras_and_saved_ones(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2, name="dense")])
    expected = model(X)
    model.save(tmp_path / "model.keras")
    model.export(tmp_path / "saved", verbose=False)
    frozen = hloforge.tensorflow.compile(model, freeze=True, shapes={"inputs": (2, 3)})
    assert frozen.variables == ()
    np.testing.assert_allclose(frozen(X), expected, 1e-5)
    for source in (tmp_path / "model.keras", tmp_path / "saved"):
        program = hloforge.tensorflow.read(source)
        assert [p.name.rsplit("/", 2)[-2:] for p in program.signature.parameters[1:]] == [
            ["dense", "kernel"],
            ["dense", "bias"],
        ]
    (result,) = hloforge.tensorflow.compile(tmp_path / "saved")(**{program.signature.parameters[0].name: X}).values()
    np.testing.assert_allclose(result, expected, 1e-5)
    with pytest.raises(ArgumentError, match="no signature 'other'"):
        hloforge.tensorflow.compile(tmp_path / "saved", signature="other")
    with pytest.raises(ImporterError, match="no SavedModel"):
        hloforge.tensorflow.compile(tmp_path)


def test_errors_name_the_operation_and_the_users_line() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        return tf.linalg.det(y)

    with pytest.raises(UnsupportedError, match="MatrixDeterminant") as caught:
        hloforge.tensorflow.compile(function, [tf.TensorSpec([3, 3], tf.float32)])
    location = caught.value.location
    assert location is not None
    assert location.file == __file__
    assert "linalg.det" in Path(__file__).read_text().splitlines()[location.line - 1]
    program = hloforge.tensorflow.read(lambda x: tf.sin(x), [X])
    assert f'"{__file__}":' in program.text(locations=True)
    with pytest.raises(ArgumentError, match="does not say what it is called with"):
        hloforge.tensorflow.compile(function)
    with pytest.raises(UnsupportedError, match="tensor of string"):
        hloforge.tensorflow.compile(function, [tf.constant("text")])


def test_what_xla_would_get_wrong_or_does_not_have_is_refused(tmp_path: Path) -> None:
    def grows(x: Any) -> Any:
        rows = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        return rows.write(0, x).write(1, x * 2).stack()

    with pytest.raises(UnsupportedError, match="dynamic_size") as caught:
        hloforge.tensorflow.read(grows, [X])
    assert caught.value.location is not None and caught.value.location.file == __file__
    with pytest.raises(UnsupportedError, match="returns strings"):
        hloforge.tensorflow.read(tf.strings.as_string, [X])
    module = tf.Module()
    module.double = tf.function(lambda x: {"y": x * 2}, input_signature=[tf.TensorSpec([None, 3])])
    tf.saved_model.save(module, str(tmp_path), signatures=module.double)
    with pytest.raises(ArgumentError, match="by name"):
        hloforge.tensorflow.compile(tmp_path, [X])


@pytest.mark.slow
def test_a_stack_of_lstms_trains() -> None:
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(0)
    layers = keras.layers
    cells = [layers.LSTM(5, return_sequences=True), layers.LSTM(3)]
    model = keras.Sequential([layers.Input((6, 4)), *cells, layers.Dense(1)])
    x, y = np.random.RandomState(3).rand(2, 6, 4).astype(np.float32), np.ones((2, 1), np.float32)

    @tf.function  # type: ignore[untyped-decorator]
    def gradients(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        return loss, tape.gradient(loss, model.trainable_variables)

    compiled = hloforge.tensorflow.compile(gradients, [x, y], cache=False)
    got, expected = (tf.nest.flatten(function(x, y)) for function in (compiled, gradients))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-6)

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any, y: Any) -> Any:
        loss, found = gradients(x, y)
        for variable, gradient in zip(model.trainable_variables, found, strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    start = [variable.numpy() for variable in model.variables]
    expected = [float(step(x, y)) for _ in range(5)]
    for variable, value in zip(model.variables, start, strict=True):
        variable.assign(value)
    train = hloforge.tensorflow.compile(step, [x, y])
    np.testing.assert_allclose([float(train(x, y)) for _ in range(5)], expected, 1e-4)


@pytest.mark.slow
def test_a_u_net_with_transposed_convolutions_and_its_gradients() -> None:
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(0)
    layers = keras.layers
    image = layers.Input((16, 16, 3))
    fine = layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same", activation="relu")(image))
    coarse = layers.Conv2D(16, 3, 2, padding="same", activation="relu")(fine)
    up = layers.Conv2DTranspose(8, 3, 2, padding="same", activation="relu")(coarse)
    joined = layers.Concatenate()([fine, up, layers.UpSampling2D(interpolation="bilinear")(coarse)])
    model = keras.Model(image, layers.Conv2D(2, 1)(joined))
    x = np.random.RandomState(3).rand(2, 16, 16, 3).astype(np.float32)

    @tf.function  # type: ignore[untyped-decorator]
    def gradients(x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = model(x, training=True)
            loss = tf.reduce_mean(y**2)
        return y, tape.gradient(loss, model.trainable_variables)

    start = [variable.numpy() for variable in model.variables]
    expected = [each.numpy() for each in tf.nest.flatten(gradients(x))]
    moved = [variable.numpy() for variable in model.non_trainable_variables]
    for variable, value in zip(model.variables, start, strict=True):
        variable.assign(value)
    got = tf.nest.flatten(hloforge.tensorflow.compile(gradients, [x])(x))
    # The statistics of the batch norm are assigned as well.
    got += [variable.numpy() for variable in model.non_trainable_variables]
    for one, other in zip(got, [*expected, *moved], strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-6)
