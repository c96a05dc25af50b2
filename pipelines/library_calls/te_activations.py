"""Activations and their gradients as TransformerEngine's JAX functions call them, with what they are rounded to.

An input is ``[..., 1, n]``, or ``[..., 2, n]`` of gated ones: what is activated, and a factor.
Source: TransformerEngine ``activation.h``, ``common/util/math.h``, ``jax/csrc/extensions/activation.cpp``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.library_products import workspace
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target
from hloforge.pipelines.library_calls.te_quantize import Quantizing, column_sums, of_release_2_0, wide

# NVTE_Activation_Type: the function, and whether there is a factor.
_KINDS = (
    ("gelu", False),
    ("gelu", True),
    ("sigmoid", True),
    ("silu", False),
    ("silu", True),
    ("relu", False),
    ("relu", True),
    ("qgelu", False),
    ("qgelu", True),
    ("srelu", False),
    ("srelu", True),
    ("clamped", True),
)
_CLAMPED = len(_KINDS) - 1
_ROOT = 0.7978845608028654
_CUBE = 0.044715
_QUICK = 1.702


def _gelu(x: Value) -> tuple[Value, Value]:
    turn = ops.tanh((x + x * x * x * _CUBE) * _ROOT)
    slope = (1.0 - turn * turn) * (x * x * (3 * _CUBE) + 1.0) * _ROOT
    return x * 0.5 * (turn + 1.0), (turn + 1.0) * 0.5 + x * 0.5 * slope


def _sigmoid(x: Value) -> tuple[Value, Value]:
    found = ops.logistic(x)
    return found, found * (1.0 - found)


def _swish(x: Value, alpha: float) -> tuple[Value, Value]:
    found, slope = _sigmoid(x * alpha)
    return x * found, found + x * slope * alpha


def _relu(x: Value) -> tuple[Value, Value]:
    zero = full(x, 0)
    return ops.max(x, zero), ops.select(x > zero, full(x, 1), zero)


def _squared_relu(x: Value) -> tuple[Value, Value]:
    positive = ops.max(x, full(x, 0))
    return positive * positive, positive * 2.0


# Each function with its derivative.
_FUNCTIONS: dict[str, Callable[[Value], tuple[Value, Value]]] = {
    "gelu": _gelu,
    "sigmoid": _sigmoid,
    "silu": lambda x: _swish(x, 1),
    "relu": _relu,
    "qgelu": lambda x: _swish(x, _QUICK),
    "srelu": _squared_relu,
}


@dataclass(frozen=True)
class _Activation:
    """An activation.

    Attributes:
        function: from numbers to their activations and the derivatives.
        is_gated: whether there is a factor.
        limit: where activated numbers and factors are cut; None for nowhere.
        offset: added to factors after that.
    """

    function: Callable[[Value], tuple[Value, Value]]
    is_gated: bool
    limit: float | None = None
    offset: float = 0.0

    @staticmethod
    def of(call: CustomCall) -> _Activation:
        """Read a call's activation."""
        number = int(call.setting("act_enum"))
        parameters: dict[str, Any] = call.setting("act_params", {"clamped_swiglu": {}})
        if not 0 <= number < len(_KINDS):
            raise UnsupportedError(f"@{call.target} has the activation {number}; known are 0 to {len(_KINDS) - 1}")
        name, is_gated = _KINDS[number]
        if number != _CLAMPED:
            return _Activation(_FUNCTIONS[name], is_gated)
        clamped = parameters.get("clamped_swiglu", {})
        alpha = float(clamped.get("alpha", _QUICK))
        # The first releases that had it added 1 always.
        offset = float(clamped.get("glu_linear_offset", 1.0))
        return _Activation(lambda x: _swish(x, alpha), is_gated, float(clamped.get("limit", 7.0)), offset)

    def value(self, x: Value) -> Value:
        """f32 ``[..., 1 or 2, n]`` -> ``[..., n]``."""
        first = x[..., 0, :]
        found, _ = self.function(first if self.limit is None else ops.min(first, full(first, self.limit)))
        return found * self._factor(x[..., 1, :])[0] if self.is_gated else found

    def gradient(self, x: Value, given: Value) -> Value:
        """The gradient of f32 ``[..., 1 or 2, n]`` by that of ``[..., n]``."""
        first = x[..., 0, :]
        found, slope = self.function(first if self.limit is None else ops.min(first, full(first, self.limit)))
        if self.limit is not None:
            slope = ops.select(first <= full(first, self.limit), slope, full(slope, 0))
        parts = [given * slope]
        if self.is_gated:
            factor, passes = self._factor(x[..., 1, :])
            parts = [parts[0] * factor, given * found]
            if passes is not None:
                parts[1] = ops.select(passes, parts[1], full(parts[1], 0))
        spread = [ops.reshape(part, [*part.dims[:-1], 1, part.dims[-1]]) for part in parts]
        return ops.concat_in_dim(spread, x.rank - 2) if self.is_gated else spread[0]

    def _factor(self, second: Value) -> tuple[Value, Value | None]:
        """The factor, and where it depends on its number; None for everywhere."""
        if self.limit is None:
            return second, None
        low, high = full(second, -self.limit), full(second, self.limit)
        cut = ops.clamp(low, second, high)
        return cut + full(cut, self.offset), (second >= low) & (second <= high)


@custom_call_target("te_act_lu_ffi")
def activate(call: CustomCall) -> list[Value]:
    """x, and since release 2.3 scale, [greatest] -> the activations, or the five results of quantizing them."""
    x, *state = call.operands
    value = _Activation.of(call).value(wide(x))
    if not state:
        (shape,) = call.shapes
        return [ops.reshape(ops.convert_element_type(value, shape.element), shape.dimensions)]
    return Quantizing.of(call, value.rank - 1, state[0], state[1] if len(state) > 1 else None).results(value)


@custom_call_target("te_act_lu_fp8_ffi")
def activate_narrow(call: CustomCall) -> list[Value]:
    """x, greatest, scale, its inverse -> the activations, the greatest size."""
    value = _Activation.of(call).value(wide(call.operands[0]))
    return of_release_2_0(call, value, call.operands[1:], value.rank - 1, "r")


@custom_call_target("te_dact_lu_ffi")
def gradient(call: CustomCall) -> list[Value]:
    """The gradient of the activations, x -> the gradient of x."""
    (shape,) = call.shapes
    found = _gradient(call)
    return [ops.reshape(ops.convert_element_type(found, shape.element), shape.dimensions)]


@custom_call_target("te_dact_lu_dbias_cast_transpose_ffi")
def gradient_and_sum(call: CustomCall) -> list[Value]:
    """The gradient, x, greatest, scale, its inverse -> by rows, by columns, sums, the greatest size, a workspace."""
    value = _gradient(call)
    return of_release_2_0(call, value, call.operands[2:], value.rank - 2, "rcs")


@custom_call_target("te_dgated_act_lu_cast_transpose_ffi")
def gated_gradient(call: CustomCall) -> list[Value]:
    """The same without sums."""
    value = _gradient(call)
    return of_release_2_0(call, value, call.operands[2:], value.rank - 2, "rc")


@custom_call_target("te_dact_dbias_quantize_ffi")
def quantized_gradient(call: CustomCall) -> list[Value]:
    """The gradient, x, scale, [greatest] -> the five results of quantizing the gradient of x, its sums, a workspace."""
    value, state = _gradient(call), call.operands[2:]
    axis = value.rank - 2
    results = Quantizing.of(call, axis, state[0], state[1] if len(state) > 1 else None).results(value)
    shapes = call.shapes[5:]
    if call.setting("is_dbias", False):
        results.append(column_sums(value, axis, shapes[0]))
        shapes = shapes[1:]
    return [*results, *workspace(shapes)]


def _gradient(call: CustomCall) -> Value:
    given, x = (wide(value) for value in call.operands[:2])
    return _Activation.of(call).gradient(x, ops.reshape(given, [*x.dims[:-2], x.dims[-1]]))
