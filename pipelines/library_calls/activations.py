"""Activations that libraries fuse into a product or convolution.

Source: cuBLASLt ``cublasLtEpilogue_t``, cuDNN ``cudnnActivationMode_t``, oneDNN "eltwise".
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.values import Value


def _number(value: Value, number: float) -> Value:
    return ops.broadcast(constant(number, value.element_type), value.dims)


def _relu(x: Value) -> Value:
    return ops.max(x, _number(x, 0))


def _relu6(x: Value) -> Value:
    return ops.min(_relu(x), _number(x, 6))


def _elu(x: Value) -> Value:
    return ops.select(ops.gt(x, _number(x, 0)), x, ops.expm1(x))


def _gelu_tanh(x: Value) -> Value:
    inner = (x + x * x * x * 0.044715) * sqrt(2 / pi)
    return x * 0.5 * (ops.tanh(inner) + 1.0)


def _gelu_erf(x: Value) -> Value:
    return x * 0.5 * (ops.erf(x * sqrt(0.5)) + 1.0)


def _silu(x: Value) -> Value:
    return x * ops.logistic(x)


_FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "": lambda x: x,
    "relu": _relu,
    "relu6": _relu6,
    "elu": _elu,
    "gelu_tanh": _gelu_tanh,
    "gelu_erf": _gelu_erf,
    "silu": _silu,
    "sigmoid": ops.logistic,
    "tanh": ops.tanh,
}


def activated(value: Value, name: str) -> Value:
    """One of the functions above; none for an empty name."""
    return _FUNCTIONS[name](value)
