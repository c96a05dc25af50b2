"""ONNX Runtime's operators (``com.microsoft``) of gates and norms around linear attention, as exporters of language
models with recurrent layers write them."""

from __future__ import annotations

from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.contrib import MICROSOFT, spread_row
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once, widened
from hloforge.importers.tensors import broadcast_to, cast, mean


def _normalized(x: Value, epsilon: float) -> Value:
    """Rows divided by the roots of their mean squares."""
    squares = mean(x * x, [x.rank - 1], True)
    return x * broadcast_to(ops.rsqrt(squares + epsilon), x.dims)


@operator("GatedRMSNorm", domain=MICROSOFT)
@rounds_once
def gated_rms_norm(node: Node) -> Value:
    """Groups of as many numbers as there are scales, normalized, times a function of the gate."""
    x, scale, gate = node.value(0), node.value(1), node.value(2)
    (size,) = scale.dims
    groups = ops.reshape(x, [*x.dims[:-1], x.dims[-1] // size, size])
    found = _normalized(groups, float(node.attribute("epsilon", 1e-5)))
    found = ops.reshape(found * spread_row(scale, found), x.dims)
    open_ = ops.logistic(gate)
    match str(node.attribute("activation", "silu")):
        case "silu" | "swish":
            return found * gate * open_
        case "sigmoid":
            return found * open_
        case other:
            raise UnsupportedError(f"the activation {other!r} is not imported")


@operator("BranchwiseRMSNorm", domain=MICROSOFT)
@rounds_once
def branchwise_rms_norm(node: Node) -> Value:
    """Branches, which are the last dimension but one or pieces of the last one, normalized on their own."""
    x, branches = node.value(0), int(node.attribute("num_branches", 0))
    parts = ops.reshape(x, [*x.dims[:-1], branches, x.dims[-1] // branches]) if branches else x
    found = _normalized(parts, float(node.attribute("epsilon", 1e-5)))
    if node.has(1):
        scale, shape = node.value(1), parts.dims[-2:]
        if scale.dims == (shape[0] * shape[1],) and scale.dims != shape[1:]:
            scale = ops.reshape(scale, shape)
        found = found * spread_row(scale, found)
    return ops.reshape(found, x.dims)


@operator("LinearAttentionGate", domain=MICROSOFT)
def linear_attention_gate(node: Node) -> Any:
    """How much of its state a head of ``LinearAttention`` keeps, and how much of a row it takes."""
    row = node.row()
    x = widened(node.value(0))
    x = x + spread_row(node.value(1), x)
    softplus = ops.max(x, 0.0) + ops.log1p(ops.exp(-ops.abs(x)))
    decay = cast(softplus * spread_row(node.value(2), softplus), row)
    return Outputs([decay, ops.logistic(node.value(3)) if node.has(3) else None])


@operator("GatedAdd", domain=MICROSOFT)
def gated_add(node: Node) -> Value:
    """The product is rounded before it is added."""
    y = node.value(1)
    return node.value(0) + y * broadcast_to(node.value(2), y.dims)


@operator("ScaledSiLU", domain=MICROSOFT)
def scaled_silu(node: Node) -> Value:
    """Each step is rounded."""
    x = node.value(0)
    if node.has(1):
        scaled = x * broadcast_to(cast(node.value(1), x.element_type), x.dims)
    else:
        scaled = x * float(node.attribute("alpha", 1.0))
    return scaled * ops.logistic(scaled)
