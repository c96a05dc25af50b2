"""``decompose-batch-norm``: batch normalization in its three forms as reductions and arithmetic.

Before::

    %y = "stablehlo.batch_norm_inference"(%x, %scale, %offset, %mean, %variance) {epsilon, feature_index = 1}

After::

    %y = (%x - %mean) * (rsqrt(%variance + epsilon) * %scale) + %offset      (vectors broadcast along dimension 1)

Those of bf16 are computed in f32, and rounded at the end: XLA's CPU client normalizes the floats of these operations
whole.

Source: XLA "BatchNormTraining", "BatchNormInference", "BatchNormGrad"; Ioffe & Szegedy 2015 for the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

_TRAINING, _INFERENCE, _GRAD = (f"stablehlo.batch_norm_{form}" for form in ("training", "inference", "grad"))


@dataclass(frozen=True)
class _Feature:
    """The array being normalized and its feature dimension."""

    x: Value
    dimension: int
    epsilon: float

    @classmethod
    def of(cls, op: Any) -> _Feature:
        attributes = op.attributes
        return cls(Value(op.operands[0]), attributes["feature_index"].value, attributes["epsilon"].value)

    @property
    def count(self) -> int:
        """Elements of one feature."""
        return prod(size for d, size in enumerate(self.x.dims) if d != self.dimension)

    def spread(self, vector: Value) -> Value:
        """A per-feature vector, broadcast to the array."""
        dims = ir.DenseI64ArrayAttr.get([self.dimension])
        return emit("stablehlo.broadcast_in_dim", [vector], self.x.type, broadcast_dimensions=dims)

    def mean(self, values: Value) -> Value:
        """The mean of each feature: ``[features]``."""
        others = [d for d in range(self.x.rank) if d != self.dimension]
        total = ops.reduce(values, 0.0, lambda a, b: a + b, others)
        return total / self.count

    def reciprocal_deviation(self, variance: Value) -> Value:
        shifted = variance + full(variance, self.epsilon)
        return emit("stablehlo.rsqrt", [shifted], shifted.type)


@pattern(_TRAINING, _INFERENCE, _GRAD)
def in_f32(op: ir.Operation) -> Replacement:
    """The same operation of f32, between conversions."""
    if not isinstance(op.results[0].type.element_type, ir.BF16Type):
        return NoMatch("not of bf16")
    operands = [ops.convert_element_type(Value(operand), "f32").ir for operand in op.operands]
    types = [ir.RankedTensorType.get(result.type.shape, ir.F32Type.get()) for result in op.results]
    attributes = {name: op.attributes[name] for name in op.attributes}
    wide = ir.Operation.create(op.name, results=types, operands=operands, attributes=attributes)
    return [ops.convert_element_type(Value(result), "bf16") for result in wide.results]


@pattern(_INFERENCE)
def inference(op: ir.Operation) -> Replacement:
    """y = scale * (x - mean) / sqrt(variance + epsilon) + offset."""
    feature = _Feature.of(op)
    if not feature.x.shape.is_static:
        return NoMatch("dynamic size")
    scale, offset, mean, variance = map(Value, list(op.operands)[1:])
    return _normalize(feature, scale, offset, mean, variance)


@pattern(_TRAINING)
def training(op: ir.Operation) -> Replacement:
    """(y, mean, variance) with the batch's own statistics; the variance is the biased one, as in XLA."""
    feature = _Feature.of(op)
    if not feature.x.shape.is_static:
        return NoMatch("dynamic size")
    scale, offset = map(Value, list(op.operands)[1:])
    mean = feature.mean(feature.x)
    centred = feature.x - feature.spread(mean)
    variance = feature.mean(centred * centred)
    return [_normalize(feature, scale, offset, _another(mean), variance), mean, variance]


def _another(vector: Value) -> Value:
    """The same vector, which the compiler does not know to be the same.

    IREE writes a difference that a reduction and an elementwise chain share to memory, another pass over the array.
    With a vector of its own each makes the difference for itself.
    """
    return emit("stablehlo.optimization_barrier", [vector], vector.type)


def _normalize(feature: _Feature, scale: Value, offset: Value, mean: Value, variance: Value) -> Value:
    centred = feature.x - feature.spread(mean)
    factor = feature.reciprocal_deviation(variance) * scale
    return centred * feature.spread(factor) + feature.spread(offset)


@pattern(_GRAD)
def gradient(op: ir.Operation) -> Replacement:
    """(grad_operand, grad_scale, grad_offset) from the output's gradient and the batch's mean and variance."""
    feature = _Feature.of(op)
    if not feature.x.shape.is_static:
        return NoMatch("dynamic size")
    scale, mean, variance, grad = map(Value, list(op.operands)[1:])
    reciprocal = feature.reciprocal_deviation(variance)
    mean_grad = feature.mean(grad)
    mean_product = feature.mean(grad * ((feature.x - feature.spread(mean)) * feature.spread(reciprocal)))
    normalized = (feature.x - feature.spread(_another(mean))) * feature.spread(reciprocal)
    inner = grad - feature.spread(mean_grad) - normalized * feature.spread(mean_product)
    grad_operand = feature.spread(scale * reciprocal) * inner
    return [grad_operand, mean_product * feature.count, mean_grad * feature.count]


@register
@dataclass(frozen=True)
class DecomposeBatchNorm(PatternPass):
    """Replace the three batch normalization operations; static shapes only."""

    name: ClassVar[str] = "decompose-batch-norm"
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.WIDE_SUMS})
    patterns: ClassVar[tuple[Pattern, ...]] = (*in_f32, *inference, *training, *gradient)
