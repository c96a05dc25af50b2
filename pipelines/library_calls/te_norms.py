"""Layer norm and RMS norm, and their gradients, as TransformerEngine's JAX functions call them.

They are of the last elements of x, as many as there are factors.

Source: TransformerEngine ``normalization.h``, ``jax/csrc/extensions/normalization.cpp``.
"""

from __future__ import annotations

from math import prod

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.library_products import workspace
from hloforge.pipelines.library_calls.narrowing import narrowed
from hloforge.pipelines.library_calls.norms import Norm
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target
from hloforge.pipelines.library_calls.te_quantize import Quantizing, observed, one_scale, wide

# NVTE_Norm_Type.
_KINDS = {0: True, 1: False}


def _norm(call: CustomCall, factors: Value, *, has_mean: bool) -> Norm:
    """The norm of a call, whose factors may be counted from 1."""
    call.setting("sm_margin", 0)
    flat = wide(ops.reshape(factors, [prod(factors.dims)]))
    return Norm(flat + 1.0 if call.setting("zero_centered_gamma", False) else flat, has_mean)


@custom_call_target("te_norm_forward_ffi")
def forward(call: CustomCall) -> list[Value]:
    """x, scale, [greatest], factors, shifts -> the five results of quantizing, means, inverses, a workspace."""
    x, scale, *greatest, factors, shifts = call.operands
    norm = _norm(call, factors, has_mean=_has_mean(call))
    epsilon = float(call.setting("epsilon"))
    found, means, inverses = norm.forward(norm.rows(x), shifts if norm.has_mean else None, epsilon)
    read = Quantizing.of(call, x.rank - 1, scale, greatest[0] if greatest else None)
    shapes = call.shapes
    if norm.has_mean:
        means = ops.reshape(means, shapes[5].dimensions)
    else:
        # Nobody reads the means of an RMS norm.
        means = workspace(shapes[5:6])[0]
    results = [*read.results(ops.reshape(found, x.dims)), means, ops.reshape(inverses, shapes[6].dimensions)]
    return [*results, *workspace(shapes[7:])]


@custom_call_target("te_norm_backward_ffi")
def backward(call: CustomCall) -> list[Value]:
    """The gradient of the result, x, means, inverses, factors -> of x, factors, shifts, a workspace."""
    given, x, means, inverses, factors = call.operands
    has_mean = _has_mean(call)
    return _backward(call, (given, x, means if has_mean else None, inverses, factors))


def _has_mean(call: CustomCall) -> bool:
    kind = int(call.setting("norm_type"))
    if kind not in _KINDS:
        raise UnsupportedError(f"@{call.target} has the norm {kind}; known are 0, a layer norm, and 1, an RMS norm")
    return _KINDS[kind]


@custom_call_target("te_layernorm_forward_ffi", "te_layernorm_forward_fp8_ffi")
def layer_norm(call: CustomCall) -> list[Value]:
    """x, factors, shifts, [greatest, scale, its inverse] -> the result, means, inverses, [greatest], a workspace."""
    x, factors, shifts, *state = call.operands
    return _forward(call, x, factors, shifts, state)


@custom_call_target("te_rmsnorm_forward_ffi", "te_rmsnorm_forward_fp8_ffi")
def rms_norm(call: CustomCall) -> list[Value]:
    """x, factors, [greatest, scale, its inverse] -> the result, inverses, [greatest], a workspace."""
    x, factors, *state = call.operands
    return _forward(call, x, factors, None, state)


def _forward(call: CustomCall, x: Value, factors: Value, shifts: Value | None, state: list[Value]) -> list[Value]:
    norm = _norm(call, factors, has_mean=shifts is not None)
    found, *others = norm.forward(norm.rows(x), shifts, float(call.setting("eps")))
    shapes = call.shapes
    kept = others if norm.has_mean else others[1:]
    results = [_as(value, shape) for value, shape in zip((found, *kept), shapes, strict=False)]
    if state:
        rows, greatest, scale = shapes[0], state[0], one_scale(state[1])
        # The greatest size stands after the means and inverses.
        results.append(observed(found, greatest, rows, shapes[len(results)]))
        results[0] = ops.reshape(narrowed(found, rows.element, scale), rows.dimensions)
    return [*results, *workspace(shapes[len(results) :])]


@custom_call_target("te_layernorm_backward_ffi")
def layer_norm_gradient(call: CustomCall) -> list[Value]:
    """The gradient of the result, x, means, inverses, factors -> of x, factors, shifts, a workspace."""
    call.setting("eps", 0.0)
    given, x, means, inverses, factors = call.operands
    return _backward(call, (given, x, means, inverses, factors))


@custom_call_target("te_rmsnorm_backward_ffi")
def rms_norm_gradient(call: CustomCall) -> list[Value]:
    """The gradient of the result, x, inverses, factors -> of x, factors, a workspace."""
    call.setting("eps", 0.0)
    given, x, inverses, factors = call.operands
    return _backward(call, (given, x, None, inverses, factors), shifts=False)


def _backward(
    call: CustomCall, operands: tuple[Value, Value, Value | None, Value, Value], *, shifts: bool = True
) -> list[Value]:
    given, x, means, inverses, factors = operands
    norm = _norm(call, factors, has_mean=means is not None)
    found = norm.backward(norm.rows(given), norm.rows(x), means, inverses)
    shapes = call.shapes
    kept = found if norm.has_mean else found[:2]
    results = [_as(value, shape) for value, shape in zip(kept, shapes, strict=False)]
    if shifts and not norm.has_mean:
        # An RMS norm has no shifts; the result of the newer call is there all the same.
        results += workspace(shapes[2:3])
    return [*results, *workspace(shapes[len(results) :])]


def _as(value: Value, shape: Shape) -> Value:
    return ops.reshape(ops.convert_element_type(value, shape.element), shape.dimensions)
