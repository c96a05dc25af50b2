"""cuDNN's fused attention as JAX and XLA call it, ``__cudnn$fmha...``.

Operands: q, k, v, for the gradient the statistics and the gradient of the output, [bias], for the gradient the
output, [lengths of queries and keys], [offsets of both], [tables of pages]. The results have their heads before their
queries. Source: JAX ``jax/_src/cudnn/fused_attention_stablehlo.py``; XLA ``backend_configs.proto``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.idioms import take_rows, within
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.attention import (
    Attention,
    Segments,
    Sight,
    attention,
    bands,
    gradients,
    within_lengths,
)
from hloforge.pipelines.library_calls.library_products import workspace
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target

# Whether sequences are padded, and whether they are causal.
_MASKS = {
    "NO_MASK": (False, False),
    "PADDING": (True, False),
    "CAUSAL": (False, True),
    "PADDING_CAUSAL": (True, True),
}
# The groups of padding among queries and among keys, which never meet.
_PADDED_QUERY, _PADDED_KEY = -1, -2


@dataclass(frozen=True)
class _Configuration:
    """What a call's configuration says.

    Attributes:
        call: the call.
        entries: the configuration.
        heads_first: whether q, k and v are ``[b, h, s, d]``, and not ``[b, s, h, d]``.
    """

    call: CustomCall
    entries: dict[str, Any]
    heads_first: bool

    @staticmethod
    def of(call: CustomCall, numbers: str) -> _Configuration:
        """Read a configuration, of which the dimension numbers of a product with q or dO on its left tell the order."""
        entries = call.configuration("cudnn_fmha_backend_config")
        rate = float(entries.get("dropout_rate", 0))
        if rate:
            raise UnsupportedError(
                f"@{call.target} drops weights with probability {rate}: which ones cuDNN draws is not documented",
                hint="export the model with a dropout of 0, or for inference",
            )
        batch = entries.get(numbers, {}).get("lhs_batch_dimensions", [])
        if [int(d) for d in batch] not in ([0, 1], [0, 2]):
            raise UnsupportedError(f"@{call.target} has no {numbers} that tell the order of its dimensions")
        return _Configuration(call, entries, int(batch[1]) == 1)

    def by_tokens(self, value: Value) -> Value:
        """q, k, v, the output or its gradient as ``[b, s, h, d]``."""
        return ops.transpose(value, [0, 2, 1, 3]) if self.heads_first else value

    def attention(self, arrays: Sequence[Value], bias: Value | None, others: list[Value]) -> Attention:
        """The attention of the call; takes what it reads from the other operands, of which none may be left."""
        queries, keys, values = map(self.by_tokens, arrays)
        mask = self.entries.get("mask_type") or ("CAUSAL" if self.entries.get("is_causal_mask") else "NO_MASK")
        if mask not in _MASKS:
            raise UnsupportedError(f"@{self.call.target} has the mask {mask}, which hloforge does not know")
        is_padded, is_causal = _MASKS[mask]
        segments, is_paged = int(self.entries.get("max_seg_per_batch", 1)) > 1, self.entries.get("is_paged_attention")
        lengths = _taken(self.call, others, 2) if is_padded or segments or is_paged else []
        offsets = _taken(self.call, others, 2) if segments else []
        if is_paged:
            keys, values = map(_paged, (keys, values), _taken(self.call, others, 2))
        if others:
            raise UnsupportedError(f"@{self.call.target} has {len(others)} operands more than its configuration tells")
        window = int(self.entries.get("sliding_window_length") or 0)
        distances = window - 1 if window else None, 0 if is_causal else None
        scale = float(self.entries.get("fmha_scale", 1))
        sight = self._sight(queries, keys, lengths, offsets, distances)
        return Attention(queries, keys, values, scale, sight, bias)

    def _sight(
        self,
        queries: Value,
        keys: Value,
        lengths: Sequence[Value],
        offsets: Sequence[Value],
        distances: tuple[int | None, int | None],
    ) -> Sight:
        batch, count, heads, depth = queries.dims
        others = keys.dims[1]
        rows, columns = bands(batch, count, others)
        if not lengths:
            return Sight(rows, columns, None, None, *distances)
        flat = [ops.reshape(length, [prod(length.dims)]) for length in lengths]
        if not offsets:
            groups = [
                within_lengths(length, places, outside)
                for length, places, outside in zip(flat, (rows, columns), (_PADDED_QUERY, _PADDED_KEY), strict=True)
            ]
            return Sight(rows, columns, groups[0], groups[1], *distances)
        if keys.dims[2] != heads:
            raise UnsupportedError(f"@{self.call.target} has several sequences in a row, and shares its heads of keys")
        of_queries, of_keys = (
            # Offsets count elements.
            Segments(
                ops.reshape(starts, [prod(starts.dims)])[: length.dims[0]] / (heads * depth), length, (batch, size)
            )
            for starts, length, size in zip(offsets, flat, (count, others), strict=True)
        )
        groups = [of_queries.groups(_PADDED_QUERY), of_keys.groups(_PADDED_KEY)]
        return Sight(of_queries.places(), of_keys.places(), groups[0], groups[1], *distances)


def _taken(call: CustomCall, others: list[Value], count: int) -> list[Value]:
    """The next operands, taken from the list."""
    if len(others) < count:
        raise UnsupportedError(f"@{call.target} has fewer operands than its configuration tells")
    found = others[:count]
    del others[:count]
    return found


def _paged(blocks: Value, table: Value) -> Value:
    """Blocks ``[p, n, g, d]`` in the order of tables ``[b, 1, m, 1]``: ``[b, m · n, g, d]``."""
    batch, _, count, _ = table.dims
    numbers = ops.reshape(table, [batch * count])
    rows = take_rows(blocks, within(numbers, blocks.dims[0]))
    return ops.reshape(rows, [batch, count * blocks.dims[1], *blocks.dims[2:]])


@custom_call_target("__cudnn$fmhaSoftmax", "__cudnn$fmhaSoftmaxDropout")
def plain(call: CustomCall) -> list[Value]:
    """The attention, perhaps its statistics, a workspace."""
    return _forward(call, 0)


@custom_call_target("__cudnn$fmhaScaleBiasSoftmax", "__cudnn$fmhaScaleBiasSoftmaxDropout")
def biased(call: CustomCall) -> list[Value]:
    """The same with a bias."""
    return _forward(call, 1)


@custom_call_target("__cudnn$fmhaSoftmaxBackward", "__cudnn$fmhaSoftmaxDropoutBackward")
def plain_gradients(call: CustomCall) -> list[Value]:
    """The gradients of q, k and v, a workspace."""
    return _backward(call, 0)


@custom_call_target("__cudnn$fmhaScaleBiasSoftmaxBackward", "__cudnn$fmhaScaleBiasSoftmaxDropoutBackward")
def biased_gradients(call: CustomCall) -> list[Value]:
    """The gradients of q, k and v, perhaps of the bias, a workspace."""
    return _backward(call, 1)


def _forward(call: CustomCall, biases: int) -> list[Value]:
    read = _Configuration.of(call, "bmm1_dot_dimension_numbers")
    others = list(call.operands[3:])
    bias = _taken(call, others, biases)
    result, statistics = attention(read.attention(call.operands[:3], bias[0] if bias else None, others))
    shapes = call.shapes
    found = [_by_heads(result, shapes[0])]
    if len(shapes) > 2:
        found.append(_as_statistics(statistics, shapes[1]))
    return [*found, *workspace(shapes[len(found) :])]


def _backward(call: CustomCall, biases: int) -> list[Value]:
    read = _Configuration.of(call, "bmm2_grad_gemm2_dot_dimension_numbers")
    others = list(call.operands[3:])
    statistics, gradient = _taken(call, others, 2)
    bias = _taken(call, others, biases)
    (result,) = _taken(call, others, 1)
    attended = read.attention(call.operands[:3], bias[0] if bias else None, others)
    batch, count, heads, _ = attended.queries.dims
    logs = ops.reshape(statistics, [prod(statistics.dims) // (heads * count), heads, count])[:batch]
    found = gradients(attended, logs, read.by_tokens(result), read.by_tokens(gradient))
    shapes = call.shapes
    results = [_by_heads(v, s) for v, s in zip((found.queries, found.keys, found.values), shapes, strict=False)]
    if found.bias is not None and len(shapes) > 4:
        results.append(found.bias)
    return [*results, *workspace(shapes[len(results) :])]


def _by_heads(value: Value, shape: Shape) -> Value:
    """``[b, s, h, d]`` as ``[b, h, s, d]``, which a result is unless its sizes say otherwise."""
    batch, tokens, heads, depth = value.dims
    has_heads_first = shape.dimensions == (batch, heads, tokens, depth)
    return ops.transpose(value, [0, 2, 1, 3]) if has_heads_first else ops.reshape(value, shape.dimensions)


def _as_statistics(statistics: Value, shape: Shape) -> Value:
    """``[b, h, s]``, followed by zeros where there is room for those of each sequence."""
    more = prod(shape.dimensions) // prod(statistics.dims[1:]) - statistics.dims[0]
    padded = ops.pad(statistics, 0.0, [(0, more, 0), (0, 0, 0), (0, 0, 0)])
    return ops.reshape(padded, shape.dimensions)
