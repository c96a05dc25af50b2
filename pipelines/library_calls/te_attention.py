"""Fused attention of TransformerEngine's JAX functions.

Operands: q, k, v, bias, [softmax offset], then forward seed and backward statistics, state, output and its gradient;
cumulated lengths of queries and keys, offsets of both, and four arrays that nobody reads. The softmax offset came with
release 2.9; the kinds of operands tell whether it is there. Arrays that a layout does not use are empty.

Source: TransformerEngine ``jax/cpp_extensions/attention.py``, ``jax/csrc/extensions/attention.cpp``, ``fused_attn.h``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from hloforge.dialect import ops
from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.idioms import zeros
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

# NVTE_QKV_Layout: how many arrays q, k and v are packed in, and whether rows of the batch hold several sequences.
_LAYOUTS = {5: (1, False), 7: (2, False), 9: (3, False), 10: (1, True), 12: (2, True), 14: (3, True)}
# NVTE_Mask_Type: whether sequences are padded, causal, and aligned at their ends.
_MASKS = {
    0: (False, False, False),
    1: (True, False, False),
    2: (False, True, False),
    3: (True, True, False),
    4: (False, True, True),
    5: (True, True, True),
}
_NO_BIAS, _PRE_SCALE_BIAS, _POST_SCALE_BIAS = 0, 1, 2
# What the shapes say as well, or what concerns speed alone.
_UNREAD = (
    *("input_batch", "bias_batch", "bias_heads", "q_max_seqlen", "kv_max_seqlen", "attn_heads", "num_gqa_groups"),
    *("head_dim", "qk_head_dim", "v_head_dim", "max_segments_per_seq", "deterministic", "softmax_type"),
)
# The groups of padding among queries and among keys, which never meet.
_PADDED_QUERY, _PADDED_KEY = -1, -2


@dataclass(frozen=True)
class _Call:
    """A call's configuration.

    Attributes:
        call: the call.
        packed: how many arrays hold q, k and v.
        segments: whether a row of the batch holds several sequences.
        offset: the softmax offset, if there is one.
        more: the operands after it.
    """

    call: CustomCall
    packed: int
    segments: bool
    offset: Value | None
    more: tuple[Value, ...]

    @staticmethod
    def of(call: CustomCall, state: int) -> _Call:
        """Read a call whose random state is the operand ``state``, or the next one if there is a softmax offset."""
        for name in _UNREAD:
            call.setting(name, 0)
        layout, rate = int(call.setting("qkv_layout")), call.setting("dropout_probability", 0.0)
        if layout not in _LAYOUTS:
            raise UnsupportedError(f"@{call.target} has the layout {layout} of q, k and v; known are {[*_LAYOUTS]}")
        if call.setting("is_training", False) and rate:
            raise UnsupportedError(
                f"@{call.target} drops weights with probability {rate}: which ones cuDNN draws is not documented",
                hint="export the model with a dropout of 0, or for inference",
            )
        packed, segments = _LAYOUTS[layout]
        has_offset = call.operands[state].element_type.name != "u32"
        offset = call.operands[4] if has_offset and call.operands[4].rank == 4 else None
        return _Call(call, packed, segments, offset, call.operands[4 + has_offset :])

    def attention(self, lengths: tuple[Value, ...]) -> Attention:
        """The attention of the call.

        Args:
            lengths: cumulated lengths of queries and keys, and offsets of both.
        """
        queries, keys, values = self._arrays()
        kind, bias = int(self.call.setting("bias_type")), self.call.operands[3]
        if kind not in (_NO_BIAS, _PRE_SCALE_BIAS, _POST_SCALE_BIAS):
            raise UnsupportedError(f"@{self.call.target} has the bias type {kind} (ALiBi is 3); known are 0, 1 and 2")
        heads = queries.dims[2]
        return Attention(
            *(queries, keys, values, float(self.call.setting("scaling_factor"))),
            self._sight(queries, keys, lengths),
            None if kind == _NO_BIAS else ops.reshape(bias, [prod(bias.dims[:-3]), *bias.dims[-3:]]),
            kind == _PRE_SCALE_BIAS,
            None if self.offset is None else ops.reshape(self.offset, [heads]),
        )

    def _arrays(self) -> list[Value]:
        """q, k and v, each with one dimension of the batch."""
        arrays = list(self.call.operands[: self.packed])
        if self.packed == 3:
            return [one_batch(value) for value in arrays]
        *alone, packed = arrays
        split = [packed[..., number, :, :] for number in range(packed.dims[-3])]
        return [one_batch(value) for value in (*alone, *split)]

    def _sight(self, queries: Value, keys: Value, lengths: tuple[Value, ...]) -> Sight:
        """Which keys a query sees."""
        mask = int(self.call.setting("mask_type"))
        if mask not in _MASKS:
            raise UnsupportedError(f"@{self.call.target} has the mask type {mask}; known are {[*_MASKS]}")
        is_padded, is_causal, from_end = _MASKS[mask]
        from_end = bool(self.call.setting("bottom_right_diagonal", from_end))
        before, after = (int(self.call.setting(f"window_size_{side}", -1)) for side in ("left", "right"))
        distances = None if before < 0 else before, 0 if is_causal else None if after < 0 else after
        (batch, count), (_, others) = queries.dims[:2], keys.dims[:2]
        used = [_lengths(cumulated) for cumulated in lengths[:2]]
        if self.segments:
            of_queries, of_keys = (
                Segments(_first(starts, length.dims[0]), length, (batch, size))
                for starts, length, size in zip(lengths[2:4], used, (count, others), strict=True)
            )
            rows = of_queries.places()
            if from_end:
                rows = rows + of_queries.each(used[1] - used[0], 0)
            groups = of_queries.groups(_PADDED_QUERY), of_keys.groups(_PADDED_KEY)
            return Sight(rows, of_keys.places(), *groups, *distances)
        rows, columns = bands(batch, count, others)
        if not is_padded:
            return Sight(rows + (others - count) if from_end else rows, columns, None, None, *distances)
        if any(length.dims != (batch,) for length in used):
            raise UnsupportedError(f"@{self.call.target} has cumulated lengths of another number of sequences")
        padding = zip(used, (rows, columns), (_PADDED_QUERY, _PADDED_KEY), strict=True)
        first, second = (within_lengths(*one) for one in padding)
        if from_end:
            rows = rows + ops.broadcast_in_dim(used[1] - used[0], rows.dims, [0])
        return Sight(rows, columns, first, second, *distances)

    def statistics_as_heads(self, statistics: Value, heads: int) -> Value:
        """The statistics as f32 ``[b, h, s]``."""
        *_, first, second, last = statistics.dims
        flat = ops.reshape(statistics, [prod(statistics.dims[:-3]), first, second, last])[..., 0]
        return ops.transpose(flat, [0, 2, 1]) if self._has_statistics_by_token(statistics.dims, heads) else flat

    def statistics_as_result(self, statistics: Value, shape: Shape) -> Value:
        """The statistics, f32 ``[b, h, s]``, in the form of a result: by heads or by tokens, perhaps repeated."""
        *lead, first, second, last = shape.dimensions
        if self._has_statistics_by_token(shape.dimensions, statistics.dims[1]):
            statistics = ops.transpose(statistics, [0, 2, 1])
        spread = ops.reshape(statistics, [*lead, first, second])
        dims = [*lead, first, second, last]
        return ops.broadcast_in_dim(spread, dims, range(len(dims) - 1))

    def _has_statistics_by_token(self, dims: tuple[int, ...], heads: int) -> bool:
        """With cuDNN 9.6 and later sequences in segments have ``[..., s, h, 1]``, all others ``[..., h, s, n]``."""
        tokens = self._arrays_tokens()
        return self.segments and dims[-3:-1] == (tokens, heads) and (tokens != heads or dims[-1] == 1)

    def _arrays_tokens(self) -> int:
        return self.call.operands[0].dims[-4 if self.packed == 1 else -3]


def one_batch(value: Value) -> Value:
    """``[..., s, h, d]`` with one dimension before these."""
    return ops.reshape(value, [prod(value.dims[:-3]), *value.dims[-3:]])


def _lengths(cumulated: Value) -> Value:
    """s32 ``[n]``: the lengths of sequences by their sums, s32 ``[n + 1]``."""
    return cumulated[1:] - cumulated[:-1]


def _first(values: Value, count: int) -> Value:
    return ops.reshape(values, [prod(values.dims)])[:count]


@custom_call_target("te_fused_attn_forward_ffi")
def forward(call: CustomCall) -> list[Value]:
    """The attention, its statistics, the random state, a workspace."""
    read = _Call.of(call, 4)
    seed, *lengths = read.more
    result, statistics = attention(read.attention(tuple(lengths)))
    shapes = call.shapes
    return [
        ops.reshape(result, shapes[0].dimensions),
        read.statistics_as_result(statistics, shapes[1]),
        _state(seed, shapes[2]),
        *workspace(shapes[3:]),
    ]


def _state(seed: Value, shape: Shape) -> Value:
    """The seed of 64 bits, and how many numbers were drawn, which only dropout counts."""
    first = _first(seed, 2)
    more = zeros(first.element_type, [prod(shape.dimensions) - 2])
    return ops.reshape(ops.concat_in_dim([first, more], 0), shape.dimensions)


@custom_call_target("te_fused_attn_backward_ffi")
def backward(call: CustomCall) -> list[Value]:
    """The gradients of q, k, v, the bias and, if there is one, the softmax offset, and a workspace."""
    read = _Call.of(call, 5)
    statistics, _, result, gradient, *lengths = read.more
    attended = read.attention(tuple(lengths))
    found = gradients(
        attended,
        read.statistics_as_heads(statistics, attended.queries.dims[2]),
        one_batch(result),
        one_batch(gradient),
    )
    arrays = _packed([found.queries, found.keys, found.values], read.packed)
    has_offset = len(call.operands) - len(read.more) == 5
    others = [found.bias, found.sinks] if has_offset else [found.bias]
    shapes = call.shapes
    results = [
        zeros(element_type(shape.element), shape.dimensions) if value is None else _as(value, shape)
        for value, shape in zip((*arrays, *others), shapes, strict=False)
    ]
    return [*results, *workspace(shapes[len(results) :])]


def _packed(gradients_of: list[Value], packed: int) -> list[Value | None]:
    """The gradients in as many arrays as the call has, and nothing in the others' places."""
    alone, together = gradients_of[: packed - 1], gradients_of[packed - 1 :]
    stacked = ops.concat_in_dim([ops.reshape(v, [*v.dims[:2], 1, *v.dims[2:]]) for v in together], 2)
    return [*alone, stacked, *[None] * (3 - packed)]


def _as(value: Value, shape: Shape) -> Value:
    return ops.reshape(ops.convert_element_type(value, shape.element), shape.dimensions)
