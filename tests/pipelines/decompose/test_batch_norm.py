"""decompose-batch-norm against the StableHLO interpreter and a float64 derivation."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.decompose.batch_norm import DecomposeBatchNorm
from hloforge.pipelines.framework.manager import PassManager
from tests.engines import interpret

TRAINING = """
func.func @main(%x: tensor<2x3x4xf64>, %s: tensor<3xf64>, %o: tensor<3xf64>)
    -> (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>) {
  %0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) {epsilon = 1.0e-3 : f32, feature_index = 1 : i64}
    : (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>
}"""

INFERENCE = """
func.func @main(%x: tensor<2x3x4xf64>, %s: tensor<3xf64>, %o: tensor<3xf64>, %m: tensor<3xf64>, %v: tensor<3xf64>)
    -> tensor<2x3x4xf64> {
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) {epsilon = 1.0e-3 : f32, feature_index = 1 : i64}
    : (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}"""

GRAD = """
func.func @main(%x: tensor<2x3x4xf64>, %s: tensor<3xf64>, %m: tensor<3xf64>, %v: tensor<3xf64>, %g: tensor<2x3x4xf64>)
    -> (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>) {
  %0:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %g) {epsilon = 1.0e-3 : f32, feature_index = 1 : i64}
    : (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<2x3x4xf64>)
    -> (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>)
  return %0#0, %0#1, %0#2 : tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>
}"""

EPSILON = float(np.float32(1e-3))
AXES = (0, 2)


def lowered(text: str) -> object:
    module = parse_module(text)
    PassManager([DecomposeBatchNorm()]).run(module)
    assert "batch_norm" not in str(module)
    return module


def per_feature(vector: np.ndarray) -> np.ndarray:
    return vector[None, :, None]


@pytest.fixture
def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.normal(size=(2, 3, 4)), random.normal(size=3), random.normal(size=3)


def normalize(x: np.ndarray, scale: np.ndarray, offset: np.ndarray, mean: np.ndarray, var: np.ndarray) -> np.ndarray:
    return per_feature(scale) * (x - per_feature(mean)) / np.sqrt(per_feature(var) + EPSILON) + per_feature(offset)


def test_training_gives_output_mean_and_biased_variance(arrays: tuple[np.ndarray, ...]) -> None:
    x, scale, offset = arrays
    output, mean, variance = interpret(lowered(TRAINING), x, scale, offset)
    np.testing.assert_allclose(mean, x.mean(AXES), rtol=1e-12)
    np.testing.assert_allclose(variance, x.var(AXES), rtol=1e-12)
    np.testing.assert_allclose(output, normalize(x, scale, offset, x.mean(AXES), x.var(AXES)), rtol=1e-11)


def test_inference_uses_the_given_statistics(arrays: tuple[np.ndarray, ...]) -> None:
    x, scale, offset = arrays
    mean, variance = np.array([0.5, -1.0, 0.0]), np.array([1.0, 0.25, 0.0])
    (output,) = interpret(lowered(INFERENCE), x, scale, offset, mean, variance)
    np.testing.assert_allclose(output, normalize(x, scale, offset, mean, variance), rtol=1e-11)


@pytest.mark.parametrize(("text", "kinds"), [(TRAINING, "xff"), (INFERENCE, "xffff"), (GRAD, "xfffx")])
def test_bf16_is_rounded_at_the_end_alone(text: str, kinds: str) -> None:
    """Rounded inside, the variance of numbers around 3 is off by 4 %, as IREE's programs for GPUs were."""
    random = np.random.default_rng(5)
    shapes = {"x": (2, 3, 4), "f": (3,)}
    drawn = [(3 + np.abs(random.normal(size=shapes[kind]))).astype(ml_dtypes.bfloat16) for kind in kinds]
    exact = interpret(lowered(text), *(array.astype(np.float64) for array in drawn))
    for found, wanted in zip(interpret(lowered(text.replace("f64", "bf16")), *drawn), exact, strict=True):
        near = 1e-6 * np.abs(wanted).max()
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=2**-8, atol=near)


def test_gradient_equals_finite_differences(arrays: tuple[np.ndarray, ...]) -> None:
    x, scale, offset = arrays
    cotangent = np.random.default_rng(1).normal(size=x.shape)

    def loss(x: np.ndarray, scale: np.ndarray, offset: np.ndarray) -> float:
        return float((normalize(x, scale, offset, x.mean(AXES), x.var(AXES)) * cotangent).sum())

    def numeric(position: int) -> np.ndarray:
        point = [x, scale, offset]
        gradient = np.zeros_like(point[position])
        for index in np.ndindex(gradient.shape):
            step = np.zeros_like(gradient)
            step[index] = 1e-6
            high, low = (
                loss(*(p + sign * step if i == position else p for i, p in enumerate(point))) for sign in (1, -1)
            )
            gradient[index] = (high - low) / 2e-6
        return gradient

    results = interpret(lowered(GRAD), x, scale, x.mean(AXES), x.var(AXES), cotangent)
    for position, result in enumerate(results):
        np.testing.assert_allclose(result, numeric(position), rtol=1e-5, atol=1e-7)


def test_a_dynamic_size_is_left_for_the_audit() -> None:
    module = parse_module(INFERENCE.replace("tensor<2x3x4", "tensor<?x3x4"))
    PassManager([DecomposeBatchNorm()]).run(module)
    assert "batch_norm_inference" in str(module)
