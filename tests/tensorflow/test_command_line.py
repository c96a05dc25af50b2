"""SavedModels and ``.keras`` files as the command line reads them: in a child process, with constants for variables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import hloforge
from hloforge.dialect.errors import ImporterError, OptionError
from hloforge.tools.main import cli

tf = pytest.importorskip("tensorflow")


@pytest.mark.slow
def test_models_are_programs_of_their_inputs_alone(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])
    x = np.random.RandomState(1).rand(4, 3).astype(np.float32)
    model.save(tmp_path / "model.keras")
    program = hloforge.read(tmp_path / "model.keras")
    assert str(program.signature) == "(inputs: f32[?,3]) -> f32[?,2]"
    compiled = hloforge.compile(program, shapes={"inputs": (4, 3)}, cache=False)
    np.testing.assert_allclose(compiled.load()(x), model(x), 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("as_mapping", [False, True], ids=["a list", "a mapping"])
def test_several_inputs_of_keras_have_their_names(tmp_path: Path, as_mapping: bool) -> None:
    keras = pytest.importorskip("keras")
    right, left = keras.Input((3,), name="right"), keras.Input((4,), name="left")
    joined = keras.layers.Dense(2)(keras.layers.Concatenate()([left, right]))
    inputs = {"right": right, "left": left} if as_mapping else [right, left]
    model = keras.Model(inputs, {"scores": joined, "best": keras.ops.argmax(joined, -1)})
    model.save(tmp_path / "model.keras")
    program = hloforge.read(tmp_path / "model.keras")
    names = [parameter.name for parameter in program.signature.parameters]
    assert names == (["left", "right"] if as_mapping else ["right", "left"])
    assert program.signature.result_names == ("best", "scores")
    random = np.random.RandomState(1)
    given = {"left": random.rand(5, 4).astype(np.float32), "right": random.rand(5, 3).astype(np.float32)}
    compiled = hloforge.compile(program, shapes={name: given[name].shape for name in names}, cache=False)
    _, scores = compiled.load()(*(given[name] for name in names))
    expected = model(given if as_mapping else [given["right"], given["left"]])["scores"]
    np.testing.assert_allclose(scores, expected, 1e-5, 1e-6)


@pytest.mark.slow
def test_a_signature_is_chosen_by_name(tmp_path: Path) -> None:
    class Model(tf.Module):  # type: ignore[misc]
        @tf.function(input_signature=[tf.TensorSpec([3], tf.float32, name="x")])  # type: ignore[untyped-decorator]
        def double(self, x: Any) -> Any:
            return {"y": x * 2}

        @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, name="z")])  # type: ignore[untyped-decorator]
        def negate(self, z: Any) -> Any:
            return {"y": -z}

    model, folder = Model(), str(tmp_path / "model")
    tf.saved_model.save(model, folder, signatures={"double": model.double, "negate": model.negate})
    run = CliRunner().invoke
    shown = run(cli, ["inspect", folder, "--signature", "negate", "--json"])
    assert shown.exit_code == 0, shown.output
    facts = json.loads(shown.output)
    assert facts["name"] == "negate"
    assert [entry["name"] for entry in facts["parameters"]] == ["z"]
    done = run(cli, ["run", folder, "--signature", "double", "--input=3xf32=1 2 -3"])
    assert done.exit_code == 0, done.output
    assert "2 4 -6" in done.output
    for options in ([], ["--signature", "decode"]):
        refused = run(cli, ["inspect", folder, *options])
        assert refused.exit_code == 1
        assert "double, negate" in refused.output


@pytest.mark.slow
@pytest.mark.parametrize("batch", [4, None])
def test_variables_that_a_signature_assigns_are_arguments_and_results(tmp_path: Path, batch: int | None) -> None:
    class Model(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            self.weights = tf.Variable(tf.ones([3, 1]), name="weights")
            self.steps = tf.Variable(0, name="steps")
            self.scale = tf.Variable(0.1, name="scale")

        @tf.function(  # type: ignore[untyped-decorator]
            input_signature=[tf.TensorSpec([batch, 3], tf.float32, name="x")]
        )
        def step(self, x: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ self.weights) ** 2)
            self.weights.assign_sub(self.scale * tape.gradient(loss, self.weights))
            self.steps.assign_add(1)
            return {"loss": loss, "all": {"twice": 2 * loss}}["loss"], loss * 2

    model, folder = Model(), str(tmp_path / "model")
    tf.saved_model.save(model, folder, signatures={"step": model.step.get_concrete_function()})
    program = hloforge.read(folder, signature="step")
    parameters = {p.name: p.shape.without_layout() for p in program.signature.parameters}
    assert list(parameters) == ["x", "weights", "steps"], program.signature  # not what is only read
    sizes = {"shapes": {"x": (4, 3)}} if batch is None else {}
    session = hloforge.compile(program, cache=False, **sizes).load()
    names = session.signature.result_names
    assert names == ("output_0", "output_1", "weights", "steps")
    x = np.random.RandomState(1).rand(4, 3).astype(np.float32)
    state: dict[str, Any] = {"weights": model.weights.numpy(), "steps": model.steps.numpy()}
    for _ in range(3):
        results = dict(zip(names, session(x, **state), strict=True))
        loss, _ = model.step(tf.constant(x))
        np.testing.assert_allclose(results["output_0"], loss, 1e-5)
        state = {name: results[name] for name in state}
    np.testing.assert_allclose(state["weights"], model.weights, 1e-5)
    assert state["steps"] == 3


def test_what_has_no_signatures_says_so(tmp_path: Path) -> None:
    (tmp_path / "one.mlir").write_text(
        "func.func @main() -> tensor<f32> { %c = stablehlo.constant dense<1.0> : tensor<f32> return %c : tensor<f32> }"
    )
    with pytest.raises(OptionError, match="SavedModels have signatures"):
        hloforge.read(tmp_path / "one.mlir", signature="serving_default")


@pytest.mark.slow
def test_a_damaged_model_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"\x0anothing")
    with pytest.raises(ImporterError, match="cannot load"):
        hloforge.read(tmp_path)
