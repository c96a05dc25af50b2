"""Batch normalization: while a model is trained, when it is used, and its gradient.

Source: XLA "BatchNormTraining", "BatchNormInference", "BatchNormGrad"; Ioffe and Szegedy, "Batch Normalization", 2015.
"""

from __future__ import annotations

from typing import Any

from hloforge.dialect.emission import emit, emit_all, i64
from hloforge.dialect.errors import OperationError
from hloforge.dialect.mlir import ir
from hloforge.dialect.op import FLOAT, op
from hloforge.dialect.rules import compatible_sizes, dimension, same_dimensions, same_element_type
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import TupleValue, Value


@op("BatchNormTraining", emits="stablehlo.batch_norm_training", on=FLOAT)
def batch_norm_training(operand: Value, scale: Value, offset: Value, epsilon: float, feature_index: int) -> TupleValue:
    """Normalize each feature of a batch by its own mean and variance: to ``offset`` and ``scale``.

    Args:
        operand: ``[..., f, ...]``; its other dimensions are the batch and places in it.
        scale: ``[f]``, the deviation of each feature in the result.
        offset: ``[f]``, the mean of each feature in the result.
        epsilon: added to variances, so that none is zero.
        feature_index: the dimension of features; negative numbers count from the last.

    Returns:
        ``(output, batch_mean, batch_var)``: of the operand's shape, ``[f]`` and ``[f]``. The variance is that of the
        batch itself, divided by its number of elements.

    Raises:
        OperationError: there is no such dimension, element types differ, or ``scale`` or ``offset`` is no vector of as
            many elements as there are features.

    Example:
        >>> x = constant([[1.0, 10.0], [3.0, 30.0]], "f32")
        >>> batch_norm_training(x, constant([1.0, 2.0], "f32"), constant([0.0, 5.0], "f32"), 0.0, 1)
        [[-1.  3.]
         [ 1.  7.]]
        [ 2. 20.]
        [  1. 100.]
    """
    feature = _feature(operand, feature_index, scale=scale, offset=offset)
    shapes = [operand.shape, *[_vector(operand, feature)] * 2]
    name = "stablehlo.batch_norm_training"
    return TupleValue(emit_all(name, [operand, scale, offset], shapes, **_attributes(epsilon, feature)))


@op("BatchNormInference", emits="stablehlo.batch_norm_inference", on=FLOAT)
def batch_norm_inference(
    operand: Value,
    scale: Value,
    offset: Value,
    mean: Value,
    variance: Value,
    epsilon: float,
    feature_index: int,
) -> Value:
    """Normalize each feature by a given mean and variance, such as those of all that a model was trained with.

    Args:
        operand, scale, offset, epsilon, feature_index: as of ``batch_norm_training``.
        mean: ``[f]``.
        variance: ``[f]``.

    Returns:
        ``scale * (operand - mean) / sqrt(variance + epsilon) + offset``, of the operand's shape.

    Raises:
        OperationError: as of ``batch_norm_training``.

    Example:
        >>> x = constant([[1.0, 10.0], [3.0, 30.0]], "f32")
        >>> one, zero = constant([1.0, 1.0], "f32"), constant([0.0, 0.0], "f32")
        >>> batch_norm_inference(x, one, zero, constant([1.0, 20.0], "f32"), constant([4.0, 25.0], "f32"), 0.0, 1)
        [[ 0. -2.]
         [ 1.  2.]]
    """
    feature = _feature(operand, feature_index, scale=scale, offset=offset, mean=mean, variance=variance)
    operands = [operand, scale, offset, mean, variance]
    return emit("stablehlo.batch_norm_inference", operands, operand.shape, **_attributes(epsilon, feature))


@op("BatchNormGrad", emits="stablehlo.batch_norm_grad", on=FLOAT)
def batch_norm_grad(
    operand: Value,
    scale: Value,
    mean: Value,
    variance: Value,
    grad_output: Value,
    epsilon: float,
    feature_index: int,
) -> TupleValue:
    """The gradients of ``batch_norm_training``.

    Args:
        operand, scale, epsilon, feature_index: what ``batch_norm_training`` was given.
        mean, variance: ``[f]``, what it returned.
        grad_output: the gradient of its first result, of the operand's shape.

    Returns:
        ``(grad_operand, grad_scale, grad_offset)``: of the operand's shape, ``[f]`` and ``[f]``.

    Raises:
        OperationError: as of ``batch_norm_training``, or the gradient does not have the operand's shape.

    Example:
        >>> x = constant([[1.0], [3.0], [5.0]], "f32")
        >>> one, mean, variance = constant([1.0], "f32"), constant([3.0], "f32"), constant([4.0], "f32")
        >>> batch_norm_grad(x, one, mean, variance, constant([[0.0], [3.0], [0.0]], "f32"), 0.0, 1)
        [[-0.5]
         [ 1. ]
         [-0.5]]
        [0.]
        [3.]
    """
    feature = _feature(operand, feature_index, scale=scale, mean=mean, variance=variance)
    same_element_type(operand, grad_output)
    same_dimensions(operand, grad_output)
    operands = [operand, scale, mean, variance, grad_output]
    shapes = [operand.shape, *[_vector(operand, feature)] * 2]
    return TupleValue(emit_all("stablehlo.batch_norm_grad", operands, shapes, **_attributes(epsilon, feature)))


def _feature(operand: Value, feature_index: int, **vectors: Value) -> int:
    """The dimension of features, after all operands of one number a feature are seen to be such."""
    feature = dimension(feature_index, operand.rank, "feature_index")
    same_element_type(operand, *vectors.values())
    expected = _vector(operand, feature)
    for name, vector in vectors.items():
        if not compatible_sizes(vector.shape, expected):
            raise OperationError(
                f"{name} must have one element for each of the {operand.dims[feature]} features in dimension "
                f"{feature} of {operand.shape}, not the shape {vector.shape}"
            )
    return feature


def _vector(operand: Value, feature: int) -> Shape:
    shape = operand.shape
    return Shape(operand.element_type, (shape.dimensions[feature],), (shape.dynamic[feature],))


def _attributes(epsilon: float, feature: int) -> dict[str, Any]:
    return {"epsilon": ir.FloatAttr.get(ir.F32Type.get(), epsilon), "feature_index": i64(feature)}
