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
    result = call.shapes[0]
    if element_type(result.element).bits < 16:
        raise UnsupportedError(f"@{call.target} with a result of {result.element}: its scale and range are not known")
    lhs, rhs, *others = call.operands
    wide = _wide(result)
    product = ops.dot_general(lhs, rhs, _numbers(config), preferred_element_type=wide)
    scale, beta = _alpha(config), float(config.get("beta", 0))
    added = others.pop(0) if beta else None
    bias = others.pop() if with_bias and others else None
    if call.target.endswith("$f8"):
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
    found = [ops.convert_element_type(activated(product, name), result.element)]
    if name and str(config["epilogue"]).endswith(_AUXILIARY):
        found.append(ops.convert_element_type(product, call.shapes[1].element))
    return [*found, *workspace(call.shapes[len(found) :])]


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


def _wide(shape: Shape) -> Any:
    """The type of the sums: f32 for 16-bit floats."""
    element = element_type(shape.element)
    return element_type("f32") if element.kind is Kind.FLOAT and element.bits < 32 else element


def _scaled(call: CustomCall, product: Value, scales: Sequence[Value]) -> Value:
    """The product by the scales of its factors; what follows them scales a result of 8 bits, which is refused."""
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
    wide = _wide(result)
    rank = lhs.rank
    columns, rows = rank - 1, rank - 2
    contracted = [rows if config.get("transpose_a") else columns], [columns if config.get("transpose_b") else rows]
    batch = list(range(rank - 2))
    value = ops.dot_general(lhs, rhs, DotDimensionNumbers(*contracted, batch, batch), preferred_element_type=wide)
    for fused in config.get("fusions", {}).get("ops", ()):
        if fused in ("BIAS", "BINARY_ADD", "SUM") and others:
            value = value + _spread(others.pop(0), value)
        elif fused == "LINEAR":
            value = value * constant(_float(config["fusions"].get("alpha_typecast", 0)), wide)
        elif fused in _FUSED:
            value = activated(value, _FUSED[fused])
        else:
            raise UnsupportedError(f"@{call.target} fuses {fused}, which hloforge does not know")
    if others:
        raise UnsupportedError(f"@{call.target} has {len(others)} operands more than its configuration tells")
    value = ops.reshape(ops.convert_element_type(value, result.element), result.dimensions)
    return [value, *workspace(call.shapes[1:])]


def _spread(value: Value, like: Value) -> Value:
    """A bias or array at the end of the dimensions of another one, in its type."""
    converted = ops.convert_element_type(value, like.element_type)
    first = like.rank - value.rank
    kept = [d for d, size in enumerate(value.dims) if size == like.dims[first + d]]
    squeezed = ops.reshape(converted, [value.dims[d] for d in kept])
    return ops.broadcast_in_dim(squeezed, like.dims, [first + d for d in kept])


def _float(bits: Any) -> float:
    """A float whose bits the configuration has as an integer."""
    return float(np.array(int(bits), np.int32).view(np.float32))
