"""Matrix products as programs that XLA optimized for GPUs and CPUs call them.

``__cublas$gemm`` and ``__cublas$lt$matmul`` compute ``f(alpha · a b + beta · c + bias)``, ``__onednn$matmul`` what its
list of fused operations says. Source: XLA ``gemm_rewriter.cc``, ``backend_configs.proto``,
``onednn_matmul_rewriter.cc``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.element_types import Kind, element_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.idioms import zeros
from hloforge.dialect.ops.dot import DotDimensionNumbers
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.activations import activated
from hloforge.pipelines.library_calls.narrowing import largest_size, narrowed
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target

_EPILOGUES = {
    "DEFAULT": "",
    "RELU": "relu",
    "GELU": "gelu_tanh",
    "SILU": "silu",
    "GELU_AUX": "gelu_tanh",
}
_BIAS, _AUXILIARY = "BIAS", "_AUX"


@custom_call_target("__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8")
def gemm(call: CustomCall) -> list[Value]:
    """a, b, c if beta is not 0, scales of 8-bit floats, a bias -> the product, what its gradient needs, a workspace."""
    config = call.configuration("gemm_backend_config")
    with_bias, name = _epilogue(call, str(config.get("epilogue", "DEFAULT")))
    result, is_scaled = call.shapes[0], call.target.endswith("$f8")
    row = element_type(result.element)
    if row.bits < 16 and not (is_scaled and row.is_float):
        raise UnsupportedError(f"@{call.target} with a result of {result.element}: its scale and range are not known")
    lhs, rhs, *others = call.operands
    wide = wide_type(result)
    product = ops.dot_general(lhs, rhs, _numbers(config), preferred_element_type=wide)
    scale, beta = _alpha(config), float(config.get("beta", 0))
    added = others.pop(0) if beta else None
    arrays = [one for one in others if one.rank]
    bias = others.pop(others.index(arrays[-1])) if with_bias and arrays else None
    if is_scaled:
        product = _scaled(call, product, others)
    elif others:
        raise UnsupportedError(f"@{call.target} has {len(others)} operands more than its configuration tells")
    if scale != 1:
        product = product * constant(scale, wide)
    if added is not None:
        product = product + ops.convert_element_type(added, wide) * constant(beta, wide)
    if bias is not None:
        spread = ops.convert_element_type(bias, wide)
        product = product + ops.broadcast_in_dim(spread, product.dims, [product.rank - 1])
    value = activated(product, name)
    found = [_in_8_bits(call, value, others) if row.bits < 16 else ops.convert_element_type(value, row)]
    if name and str(config["epilogue"]).endswith(_AUXILIARY):
        found.append(ops.convert_element_type(product, call.shapes[1].element))
    if config.get("damax_output"):
        found.append(ops.convert_element_type(largest_size(value), call.shapes[len(found)].element))
    return [*found, *workspace(call.shapes[len(found) :])]


def _in_8_bits(call: CustomCall, value: Value, scales: Sequence[Value]) -> Value:
    """The result times its own scale, which is the last one, cut to what its type holds."""
    if len(scales) < 3:
        raise UnsupportedError(f"@{call.target} with a result of {call.shapes[0].element} and no scale of it")
    return narrowed(value, call.shapes[0].element, ops.convert_element_type(scales[-1], value.element_type))


def _epilogue(call: CustomCall, text: str) -> tuple[bool, str]:
    """Whether there is a bias, and the function of the sums."""
    with_bias = text.startswith(_BIAS)
    rest = text.removeprefix(_BIAS).removeprefix("_") or "DEFAULT"
    if rest not in _EPILOGUES:
        raise UnsupportedError(f"@{call.target} has the epilogue {text}, which hloforge does not know")
    return with_bias, _EPILOGUES[rest]


def _numbers(config: dict[str, Any]) -> DotDimensionNumbers:
    numbers = config.get("dot_dimension_numbers", {})
    names = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")
    return DotDimensionNumbers(*([int(d) for d in numbers.get(f"{name}_dimensions", ())] for name in names))


def _alpha(config: dict[str, Any]) -> complex | float:
    imaginary = float(config.get("alpha_imag", 0))
    real = float(config.get("alpha_real", 1))
    return complex(real, imaginary) if imaginary else real


def wide_type(shape: Shape) -> Any:
    """The type of the sums: f32 for 16-bit floats."""
    element = element_type(shape.element)
    return element_type("f32") if element.kind is Kind.FLOAT and element.bits < 32 else element


def _scaled(call: CustomCall, product: Value, scales: Sequence[Value]) -> Value:
    """The product by the scales of its factors; what follows them scales a result of 8 bits."""
    if len(scales) < 2 or any(scale.rank for scale in scales[:2]):
        raise UnsupportedError(f"@{call.target} without a number that scales each factor")
    for scale in scales[:2]:
        spread = ops.broadcast(ops.convert_element_type(scale, product.element_type), product.dims)
        product = product * spread
    return product


def workspace(shapes: Sequence[Shape]) -> list[Value]:
    """What a library wrote for itself: nobody reads it."""
    return [zeros(element_type(shape.element), shape.dimensions) for shape in shapes]


_FUSED = {
    "RELU": "relu",
    "GELU_TANH": "gelu_tanh",
    "GELU_ERF": "gelu_erf",
    "TANH": "tanh",
    "SIGMOID": "sigmoid",
    "SWISH": "silu",
    "ELU": "elu",
    "RELU6": "relu6",
}


@custom_call_target("__onednn$matmul")
def onednn_matmul(call: CustomCall) -> list[Value]:
    """a ``[..., m, k]``, b ``[..., k, n]`` (or turned), arrays of fused operations -> the product of matrices."""
    config = call.configuration("onednn_matmul_config")
    if config.get("optimization_config", {}).get("weights_prepacked"):
        raise UnsupportedError(f"@{call.target} of weights in oneDNN's own order")
    lhs, rhs, *others = call.operands
    result = call.shapes[0]
    wide = wide_type(result)
    rank = lhs.rank
    columns, rows = rank - 1, rank - 2
    contracted = [rows if config.get("transpose_a") else columns], [columns if config.get("transpose_b") else rows]
    batch = list(range(rank - 2))
    value = ops.dot_general(lhs, rhs, DotDimensionNumbers(*contracted, batch, batch), preferred_element_type=wide)
    value = fused(call, config.get("fusions", {}), value, others, value.rank - 1)
    value = ops.reshape(ops.convert_element_type(value, result.element), result.dimensions)
    return [value, *workspace(call.shapes[1:])]


def fused(call: CustomCall, fusions: dict[str, Any], value: Value, others: list[Value], feature: int) -> Value:
    """What oneDNN computes of a result at once.

    Args:
        fusions: the operations in their order.
        others: their arrays, all of which must be read.
        feature: the dimension of the result that a bias is along.
    """
    factors = [float(number) for number in fusions.get("alpha", ())]
    for name in fusions.get("ops", ()):
        if name in ("BIAS", "BINARY_ADD", "SUM") and others:
            value = value + _spread(others.pop(0), value, feature)
        elif name == "LINEAR":
            # Programs had the bits of one factor before they had a list of them.
            factor = factors.pop(0) if factors else _float(fusions.get("alpha_typecast", 0))
            value = value * constant(factor, value.element_type)
        elif name in _FUSED:
            if name == "ELU" and factors and factors.pop(0) != 1:
                raise UnsupportedError(f"@{call.target} fuses ELU with another factor than 1")
            value = activated(value, _FUSED[name])
        else:
            raise UnsupportedError(f"@{call.target} fuses {name}, which hloforge does not know")
    if others:
        raise UnsupportedError(f"@{call.target} has {len(others)} operands more than its configuration tells")
    return value


def _spread(value: Value, like: Value, feature: int) -> Value:
    """A bias along the features of an array, or an array at the end of its dimensions, in its type."""
    converted = ops.convert_element_type(value, like.element_type)
    if value.rank == 1:
        return ops.broadcast_in_dim(converted, like.dims, [feature])
    first = like.rank - value.rank
    kept = [d for d, size in enumerate(value.dims) if size == like.dims[first + d]]
    squeezed = ops.reshape(converted, [value.dims[d] for d in kept])
    return ops.broadcast_in_dim(squeezed, like.dims, [first + d for d in kept])


def _float(bits: Any) -> float:
    """A float whose bits the configuration has as an integer."""
    return float(np.array(int(bits), np.int32).view(np.float32))
