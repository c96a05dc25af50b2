"""Softmax of scaled scores, and its gradient, as TransformerEngine's JAX functions call it.

Source: TransformerEngine ``jax/csrc/extensions/softmax.cpp``, ``common/fused_softmax``.
"""

from __future__ import annotations

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.element_types import element_type
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target

# What the kernels replace a score by that a mask hides. A row whose greatest score it is becomes zeros.
_HIDDEN = -10000.0


@custom_call_target("te_scaled_softmax_forward_ffi")
def forward(call: CustomCall) -> list[Value]:
    """Scores ``[..., h, s, t]`` -> softmax of the scaled ones along the last dimension."""
    return [_cast(_softmax(_scaled(call)), call)]


@custom_call_target("te_scaled_masked_softmax_forward_ffi")
def masked(call: CustomCall) -> list[Value]:
    """Scores, u8 ``[1 or b, 1, s, t]`` with 1 where a score is hidden -> the same of the others."""
    mask = call.operands[1]
    scores = _scaled(call)
    *lead, heads, queries, keys = scores.dims
    hidden = ops.eq(mask, full(mask, True if mask.element_type.name == "pred" else 1))
    batch = [size for size in mask.dims[:-3] if size > 1]
    squeezed = ops.reshape(hidden, [*batch, queries, keys])
    last = len(lead) + 1
    kept = [*range(len(lead) if batch else 0), last, last + 1]
    if batch:
        squeezed = ops.reshape(squeezed, [*lead, queries, keys])
    spread = ops.broadcast_in_dim(squeezed, [*lead, heads, queries, keys], kept)
    scores = ops.select(spread, full(scores, _HIDDEN), scores)
    greatest = _spread(_reduced(scores, largest=True), scores)
    is_hidden = ops.eq(greatest, full(scores, _HIDDEN))
    return [_cast(ops.select(is_hidden, full(scores, 0), _softmax(scores)), call)]


@custom_call_target("te_scaled_upper_triang_masked_softmax_forward_ffi")
def causal(call: CustomCall) -> list[Value]:
    """Scores ``[..., s, s]`` -> the same of those on and below the diagonal, zeros above it."""
    scores = _scaled(call)
    is_seen = ops.iota("s32", scores.dims, scores.rank - 2) >= ops.iota("s32", scores.dims, scores.rank - 1)
    return [_cast(_softmax(ops.select(is_seen, scores, full(scores, float("-inf")))), call)]


@custom_call_target(
    "te_scaled_softmax_backward_ffi",
    "te_scaled_masked_softmax_backward_ffi",
    "te_scaled_upper_triang_masked_softmax_backward_ffi",
)
def backward(call: CustomCall) -> list[Value]:
    """The gradient of the weights, the weights -> the gradient of the scores."""
    gradient, weights = map(_wide, call.operands)
    product = gradient * weights
    inner = _spread(_reduced(product, largest=False), product)
    found = (product - weights * inner) * full(product, float(call.setting("scale_factor")))
    return [_cast(found, call)]


def _scaled(call: CustomCall) -> Value:
    scores = _wide(call.operands[0])
    return scores * full(scores, float(call.setting("scale_factor")))


def _softmax(scores: Value) -> Value:
    powers = ops.exp(scores - _spread(_reduced(scores, largest=True), scores))
    return powers / _spread(_reduced(powers, largest=False), scores)


def _reduced(value: Value, *, largest: bool) -> Value:
    first = constant(float("-inf") if largest else 0, value.element_type)
    return ops.reduce(value, first, ops.max if largest else ops.add, [value.rank - 1])


def _spread(rows: Value, like: Value) -> Value:
    return ops.broadcast_in_dim(rows, like.dims, range(rows.rank))


def _wide(value: Value) -> Value:
    return ops.convert_element_type(value, element_type("f32"))


def _cast(value: Value, call: CustomCall) -> Value:
    return ops.convert_element_type(value, call.shapes[0].element)
