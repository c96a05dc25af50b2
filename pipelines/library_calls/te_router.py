"""The choice of experts as TransformerEngine's JAX functions call it: scores, the best of them, their loss.

Scores are sigmoids of logits, their softmax, or square roots of their softplus. A bias shifts the choice and not what
is passed on. Where experts are in groups, the best groups are chosen by the sums of their best scores first. Of equal
scores the one of the lower number is chosen.

Source: TransformerEngine ``fused_router.h``, ``common/fused_router``, ``jax/csrc/extensions/router.cpp``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.idioms import for_loop, zeros
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target
from hloforge.pipelines.library_calls.te_quantize import wide

_SIGMOID, _SOFTMAX, _ROOT_OF_SOFTPLUS = range(3)
# Added to sums that are divided by.
_SMALL = 1e-20
_BYTES, _BITS = range(2)


@dataclass(frozen=True)
class _Router:
    """A call's settings.

    Attributes:
        call: the call.
        count: how many experts are chosen.
        kind: which function the scores are.
        is_softmax_first: whether the softmax is of all logits, and not of those that are chosen.
        factor: of what is passed on.
        is_for_loss: whether the scores are those of the loss: of all experts, without bias, groups and factor.
    """

    call: CustomCall
    count: int
    kind: int
    is_softmax_first: bool
    factor: float
    is_for_loss: bool

    @staticmethod
    def of(call: CustomCall) -> _Router:
        """Read a call."""
        kind = int(call.setting("score_function"))
        if kind not in (_SIGMOID, _SOFTMAX, _ROOT_OF_SOFTPLUS):
            raise UnsupportedError(f"@{call.target} has the score function {kind}; known are 0, 1 and 2")
        is_for_loss = bool(call.setting("compute_aux_scores", 0))
        is_first = bool(call.setting("use_pre_softmax", 0)) or is_for_loss
        factor = 1.0 if is_for_loss else float(call.setting("scaling_factor", 1.0))
        call.setting("scaling_factor", 1.0)
        return _Router(call, int(call.setting("topk")), kind, is_first, factor, is_for_loss)

    def results(self, logits: Value, bias: Value | None) -> tuple[Value, Value, Value]:
        """What is passed on, which experts are chosen, and what the gradient needs, of f32 ``[t, e]``."""
        scores, kept = self._scores(logits)
        if self.is_for_loss:
            if self.kind != _SOFTMAX:
                scores = scores / _spread(_sum(scores) + _SMALL, scores)
            return scores, chosen(scores, self.count), kept
        shifted = scores
        if bias is not None and self.kind != _SOFTMAX:
            shifted = scores + ops.broadcast_in_dim(wide(bias), scores.dims, [1])
        is_chosen = self._chosen(shifted)
        found = ops.select(is_chosen, scores, full(scores, 0))
        if self.kind != _SOFTMAX and self.count > 1:
            found = found / _spread(_sum(found) + _SMALL, found)
        if self.kind == _SOFTMAX and not self.is_softmax_first:
            low = full(logits, float("-inf"))
            found = _softmax(ops.select(is_chosen, logits, low))
            kept = ops.select(is_chosen, found, low)
        return found * self.factor, is_chosen, kept

    def gradient(self, is_chosen: Value, kept: Value, given: Value) -> Value:
        """The gradient of the logits, f32 ``[t, e]``."""
        zero = full(given, 0)
        given = given * self.factor
        if self.kind == _SOFTMAX:
            if not self.is_for_loss:
                given = ops.select(is_chosen, given, zero)
            weights = kept if self.is_softmax_first else ops.select(is_chosen, kept, zero)
            return weights * (given - _spread(_sum(given * weights), given))
        scores = kept if self.kind == _SIGMOID else _root_of_softplus(kept)
        if self.is_for_loss or self.count > 1:
            counted = scores if self.is_for_loss else ops.select(is_chosen, scores, zero)
            total = _sum(counted) + _SMALL
            given = (given - _spread(_sum(given * counted) / total, given)) / _spread(total, given)
        if not self.is_for_loss:
            given = ops.select(is_chosen, given, zero)
        slope = scores * (1.0 - scores) if self.kind == _SIGMOID else ops.logistic(kept) / (scores * 2.0)
        return given * slope

    def _scores(self, logits: Value) -> tuple[Value, Value]:
        """The scores, and what the gradient needs."""
        if self.kind == _SIGMOID:
            scores = ops.logistic(logits)
            return scores, scores
        if self.kind == _ROOT_OF_SOFTPLUS:
            return _root_of_softplus(logits), logits
        if not self.is_softmax_first:
            return logits, logits
        scores = _softmax(logits)
        return scores, scores

    def _chosen(self, scores: Value) -> Value:
        groups, best = (int(self.call.setting(name, -1)) for name in ("num_groups", "group_topk"))
        if best <= 0:
            return chosen(scores, self.count)
        tokens, experts = scores.dims
        if groups <= 0 or experts % groups or self.count < best:
            raise UnsupportedError(f"@{self.call.target} chooses {best} of {groups} groups of {experts} experts")
        each = ops.reshape(scores, [tokens * groups, experts // groups])
        sums = _sum(ops.select(chosen(each, self.count // best), each, full(each, 0)))
        of_groups = chosen(ops.reshape(sums, [tokens, groups]), best)
        is_open = ops.broadcast_in_dim(of_groups, [tokens, groups, experts // groups], [0, 1])
        is_open = ops.reshape(is_open, scores.dims)
        return chosen(ops.select(is_open, scores, full(scores, float("-inf"))), self.count)


def chosen(scores: Value, count: int) -> Value:
    """pred ``[t, e]``: the largest ones of each row, of equal ones the first."""
    numbers = ops.iota("s32", scores.dims, 1)
    none = full(numbers, scores.dims[1])

    def turn(_: Value, found: Value) -> list[Value]:
        rest = ops.select(found, full(scores, float("-inf")), scores)
        largest = ops.reduce(rest, constant(float("-inf"), "f32"), ops.max, [1])
        is_largest = ops.logical_and(ops.eq(rest, _spread(largest, rest)), ops.logical_not(found))
        first = ops.reduce(ops.select(is_largest, numbers, none), constant(scores.dims[1], "s32"), ops.min, [1])
        return [ops.logical_or(found, ops.eq(numbers, _spread(first, numbers)))]

    return for_loop(count, [zeros("pred", scores.dims)], turn)[0]


def _root_of_softplus(x: Value) -> Value:
    twenty = full(x, 20)
    return ops.sqrt(ops.select(x > twenty, x, ops.log1p(ops.exp(ops.min(x, twenty)))))


def _softmax(x: Value) -> Value:
    powers = ops.exp(x - _spread(ops.reduce(x, constant(float("-inf"), "f32"), ops.max, [1]), x))
    return powers / _spread(_sum(powers), powers)


def _sum(x: Value) -> Value:
    return ops.reduce(x, constant(0, "f32"), ops.add, [x.rank - 1])


def _spread(rows: Value, like: Value) -> Value:
    return ops.broadcast_in_dim(rows, like.dims, [0])


def _matrix(value: Value) -> Value:
    return ops.reshape(value, [prod(value.dims[:-1]), value.dims[-1]])


def _as(value: Value, shape: Shape) -> Value:
    return ops.reshape(ops.convert_element_type(value, shape.element), shape.dimensions)


def _packed(is_chosen: Value) -> Value:
    """u8 ``[t, e / 8]``: a bit for each expert, the first one the lowest."""
    tokens, experts = is_chosen.dims
    count = -(-experts // 8)
    bits = ops.pad(
        ops.convert_element_type(is_chosen, "s32"), constant(0, "s32"), [(0, 0, 0), (0, count * 8 - experts, 0)]
    )
    parted = ops.reshape(bits, [tokens, count, 8])
    places = ops.shift_left(parted, ops.iota("s32", parted.dims, 2))
    return ops.convert_element_type(ops.reduce(places, constant(0, "s32"), ops.add, [2]), "u8")


def _unpacked(packed: Value, experts: int) -> Value:
    tokens, count = packed.dims
    dims = tokens, count, 8
    spread = ops.broadcast_in_dim(ops.convert_element_type(packed, "s32"), dims, [0, 1])
    bits = ops.shift_right_logical(spread, ops.iota("s32", dims, 2)) & full(spread, 1)
    flat = ops.reshape(bits, [tokens, count * 8])[:, :experts]
    return ops.ne(flat, full(flat, 0))


def _is_packed(call: CustomCall) -> bool:
    form = int(call.setting("routing_map_format", _BYTES))
    if form not in (_BYTES, _BITS):
        raise UnsupportedError(f"@{call.target} has the format {form} of its map; known are 0, bytes, and 1, bits")
    return form == _BITS


@custom_call_target("te_fused_topk_with_score_function_forward_ffi")
def forward(call: CustomCall) -> list[Value]:
    """Logits ``[..., e]``, a bias or nothing -> what is passed on, which are chosen, what the gradient needs."""
    logits, bias = call.operands
    for name in ("num_groups", "group_topk"):
        call.setting(name, -1)
    read = _Router.of(call)
    found, is_chosen, kept = read.results(wide(_matrix(logits)), bias if prod(bias.dims) else None)
    shapes = call.shapes
    marks = _packed(is_chosen) if _is_packed(call) else is_chosen
    return [_as(found, shapes[0]), _as(marks, shapes[1]), _as(kept, shapes[2])]


@custom_call_target("te_fused_topk_with_score_function_backward_ffi")
def backward(call: CustomCall) -> list[Value]:
    """Which are chosen, what the gradient needs, the gradient of what is passed on -> that of the logits."""
    marks, kept, given = (_matrix(value) for value in call.operands)
    read, is_packed = _Router.of(call), _is_packed(call)
    is_chosen = _unpacked(marks, kept.dims[1]) if is_packed else ops.ne(marks, zeros(marks.element_type, marks.dims))
    (shape,) = call.shapes
    return [_as(read.gradient(is_chosen, wide(kept), wide(given)), shape)]


@custom_call_target("te_fused_moe_aux_loss_forward_ffi")
def loss(call: CustomCall) -> list[Value]:
    """Scores ``[t, e]``, tokens of each expert -> their loss, and f32 ``[2]``: its factor and itself."""
    scores, tokens = call.operands
    count, experts = scores.dims
    factor = float(call.setting("coeff")) * experts / (int(call.setting("topk")) * count * count)
    by_experts = ops.reduce(wide(scores), constant(0, "f32"), ops.add, [0])
    found = _sum(by_experts * wide(ops.reshape(tokens, [experts]))) * factor
    shapes = call.shapes
    row = element_type(shapes[1].element)
    pair = ops.concat_in_dim([ops.reshape(constant(factor, row), [1]), ops.reshape(found, [1])], 0)
    return [_as(found, shapes[0]), _as(pair[: prod(shapes[1].dimensions)], shapes[1])]


@custom_call_target("te_fused_moe_aux_loss_backward_ffi")
def loss_gradient(call: CustomCall) -> list[Value]:
    """The factor of the loss, tokens of each expert, the gradient of the loss -> that of the scores."""
    call.setting("num_tokens", 0)
    factor, tokens, given = call.operands
    (shape,) = call.shapes
    scale = ops.reshape(factor, [prod(factor.dims)])[0] * ops.reshape(wide(given), [])
    columns = wide(ops.reshape(tokens, [shape.dimensions[1]]))
    found = columns * ops.broadcast(scale, columns.dims)
    return [_as(ops.broadcast_in_dim(found, shape.dimensions, [1]), shape)]
