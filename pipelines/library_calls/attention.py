"""Attention of libraries, softmax(scale · q kᵀ + bias) v, and its gradient.

Queries are ``[b, s, h, d]``, keys ``[b, t, g, d]``, values ``[b, t, g, e]``; each of the g heads of keys serves h / g
heads of queries. Those are rows of one matrix here, ``[b, g, h / g · s, d]``, so that no key is repeated and the
scores ``[b, g, rows, t]`` have the form that ``codegen/fused_rows.py`` finds.

The statistics are the logarithms of the sums of exponentials, f32 ``[b, h, s]``: the gradient finds the weights again
without a second softmax. It has to use those that it is given, because a ring of devices, each with a part of the
keys, gives the statistics and the result of all parts. Rows that see no key have -inf and a result of zeros.

Source: Dao et al., FlashAttention, 2022; cuDNN "Scaled Dot Product Attention"; TransformerEngine ``fused_attn.h``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.idioms import zeros
from hloforge.dialect.ops.dot import DotDimensionNumbers
from hloforge.dialect.values import Value

# What a score that is not seen is taken for: its exponential is 0, and no row makes NaN of it as of -inf.
_UNSEEN = -1e30


@dataclass(frozen=True)
class Sight:
    """Which keys each query sees: those of its group whose place is at most so far from its own.

    Attributes:
        rows, columns: s32 ``[b, s]`` and ``[b, t]``: the places of queries and keys.
        row_groups, column_groups: the same of their groups, none for one group of all.
        before, after: how far before and after its own place a query sees, None for any distance.
    """

    rows: Value
    columns: Value
    row_groups: Value | None = None
    column_groups: Value | None = None
    before: int | None = None
    after: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether each query sees each key."""
        return self.row_groups is None and self.before is None and self.after is None

    def mask(self, repeats: int) -> Value:
        """pred ``[b, repeats · s, t]``: what each row sees, where all queries are repeated."""
        (batch, queries), keys = self.rows.dims, self.columns.dims[1]
        dims = [batch, repeats * queries, keys]

        def of_rows(value: Value) -> Value:
            repeated = ops.broadcast_in_dim(value, [batch, repeats, queries], [0, 2])
            return ops.broadcast_in_dim(ops.reshape(repeated, dims[:2]), dims, [0, 1])

        def of_columns(value: Value) -> Value:
            return ops.broadcast_in_dim(value, dims, [0, 2])

        distance = of_columns(self.columns) - of_rows(self.rows)
        seen = [] if self.before is None else [distance >= full(distance, -self.before)]
        seen += [] if self.after is None else [distance <= full(distance, self.after)]
        if self.row_groups is not None and self.column_groups is not None:
            seen.append(ops.eq(of_rows(self.row_groups), of_columns(self.column_groups)))
        found = seen[0]
        for one in seen[1:]:
            found = found & one
        return found


@dataclass(frozen=True)
class Attention:
    """What the scores are.

    Attributes:
        queries, keys, values: the arrays.
        scale: the factor of the products.
        sight: which keys a query sees.
        bias: ``[b or 1, h or 1, s or 1, t or 1]``, added to the scores.
        scales_bias: whether it is added before they are scaled.
        sinks: f32 ``[h]``: one more score of each row, whose value is zero.
    """

    queries: Value
    keys: Value
    values: Value
    scale: float
    sight: Sight
    bias: Value | None = None
    scales_bias: bool = False
    sinks: Value | None = None

    @property
    def wide(self) -> ElementType:
        """The type of the sums."""
        return element_type("f64" if self.queries.element_type.name == "f64" else "f32")

    @property
    def repeats(self) -> int:
        """Heads of queries for each head of keys."""
        return int(self.queries.dims[2] // self.keys.dims[2])

    def as_rows(self, value: Value) -> Value:
        """``[b, s, h, d]`` as ``[b, g, rows, d]``."""
        batch, queries, heads, depth = value.dims
        parted = ops.reshape(value, [batch, queries, heads // self.repeats, self.repeats, depth])
        moved = ops.transpose(parted, [0, 2, 3, 1, 4])
        return ops.reshape(moved, [batch, heads // self.repeats, self.repeats * queries, depth])

    def as_heads(self, rows: Value) -> Value:
        """``[b, g, rows, ...]`` as ``[b, h, s, ...]``."""
        batch, groups, count, *rest = rows.dims
        return ops.reshape(rows, [batch, groups * self.repeats, count // self.repeats, *rest])

    def from_heads(self, value: Value) -> Value:
        """``[b, h, s, ...]`` as ``[b, g, rows, ...]``."""
        batch, heads, queries, *rest = value.dims
        return ops.reshape(value, [batch, heads // self.repeats, self.repeats * queries, *rest])

    def mask(self) -> Value | None:
        """pred ``[b, rows, t]``: which keys each row sees; None for all."""
        return None if self.sight.is_whole else self.sight.mask(self.repeats)

    def scores(self, mask: Value | None) -> Value:
        """``[b, g, rows, t]``, scaled, of which those that are not seen are very low."""
        numbers = DotDimensionNumbers([3], [3], [0, 1], [0, 2])
        scores = ops.dot_general(self.as_rows(self.queries), self.keys, numbers, preferred_element_type=self.wide)
        bias = None if self.bias is None else self._spread_bias(self.bias)
        if bias is not None and self.scales_bias:
            scores, bias = scores + bias, None
        if self.scale != 1:
            scores = scores * full(scores, self.scale)
        if bias is not None:
            scores = scores + bias
        if mask is None:
            return scores
        return ops.select(ops.broadcast_in_dim(mask, scores.dims, [0, 2, 3]), scores, full(scores, _UNSEEN))

    def sink_rows(self, dims: tuple[int, ...]) -> Value:
        """The sinks as ``[b, g, rows]``."""
        batch, groups, rows = dims
        heads = [batch, groups, self.repeats, rows // self.repeats]
        sinks = ops.reshape(ops.convert_element_type(self._sinks, self.wide), [groups, self.repeats])
        return ops.reshape(ops.broadcast_in_dim(sinks, heads, [1, 2]), dims)

    @property
    def _sinks(self) -> Value:
        assert self.sinks is not None
        return self.sinks

    def _spread_bias(self, bias: Value) -> Value:
        (batch, queries, heads, _), keys = self.queries.dims, self.keys.dims[1]
        kept = [d for d, size in enumerate(bias.dims) if size > 1]
        squeezed = ops.reshape(ops.convert_element_type(bias, self.wide), [bias.dims[d] for d in kept])
        return self.from_heads(ops.broadcast_in_dim(squeezed, [batch, heads, queries, keys], kept))


def attention(call: Attention) -> tuple[Value, Value]:
    """The result ``[b, s, h, e]`` and the statistics, f32 ``[b, h, s]``."""
    mask = call.mask()
    scores = call.scores(mask)
    sums_of = [0, 1, 2]
    greatest = _reduced(scores, ops.max, float("-inf"), [3])
    if call.sinks is not None:
        sinks = call.sink_rows(greatest.dims)
        greatest = ops.max(greatest, sinks)
    powers = ops.exp(scores - ops.broadcast_in_dim(greatest, scores.dims, sums_of))
    sums = _reduced(powers, ops.add, 0, [3])
    if call.sinks is not None:
        sums = sums + ops.exp(sinks - greatest)
    weights = powers / ops.broadcast_in_dim(sums, scores.dims, sums_of)
    values = ops.transpose(ops.convert_element_type(call.values, call.wide), [0, 2, 1, 3])
    rows = ops.dot_general(weights, values, DotDimensionNumbers([3], [2], [0, 1], [0, 1]))
    statistics = greatest + ops.log(sums)
    if mask is not None:
        sees = ops.reduce(mask, constant(False, "pred"), ops.logical_or, [2])
        rows = _where(ops.broadcast_in_dim(sees, rows.dims, [0, 2]), rows, 0)
        statistics = _where(ops.broadcast_in_dim(sees, statistics.dims, [0, 2]), statistics, float("-inf"))
    result = ops.convert_element_type(_by_query(call, rows), call.queries.element_type)
    return result, ops.convert_element_type(call.as_heads(statistics), "f32")


@dataclass(frozen=True)
class Gradients:
    """The gradients of queries, keys, values, bias and sinks, in the types of what they are of."""

    queries: Value
    keys: Value
    values: Value
    bias: Value | None
    sinks: Value | None


def gradients(call: Attention, statistics: Value, result: Value, gradient: Value) -> Gradients:
    """The gradients by that of the result.

    Args:
        statistics: f32 ``[b, h, s]``, as ``attention`` gives them.
        result, gradient: ``[b, s, h, e]``.
    """
    wide = call.wide
    mask = call.mask()
    scores = call.scores(mask)
    logs = call.from_heads(ops.convert_element_type(statistics, wide))
    weights = ops.exp(scores - ops.broadcast_in_dim(logs, scores.dims, [0, 1, 2]))
    if mask is not None:
        # Of rows without keys the statistics are -inf.
        weights = _where(ops.broadcast_in_dim(mask, scores.dims, [0, 2, 3]), weights, 0)
    given, found = (call.as_rows(ops.convert_element_type(value, wide)) for value in (gradient, result))
    values = ops.convert_element_type(call.values, wide)
    by_weights = ops.dot_general(given, values, DotDimensionNumbers([3], [3], [0, 1], [0, 2]))
    inner = _reduced(given * found, ops.add, 0, [3])
    by_scores = weights * (by_weights - ops.broadcast_in_dim(inner, scores.dims, [0, 1, 2]))
    scaled = by_scores if call.scale == 1 else by_scores * full(by_scores, call.scale)
    # [b, g, rows, t] with keys [b, t, g, d]; with rows [b, g, rows, d].
    by_keys, by_rows = DotDimensionNumbers([3], [1], [0, 1], [0, 2]), DotDimensionNumbers([2], [2], [0, 1], [0, 1])
    of_queries = ops.dot_general(scaled, ops.convert_element_type(call.keys, wide), by_keys)
    of_keys = ops.dot_general(scaled, call.as_rows(ops.convert_element_type(call.queries, wide)), by_rows)
    of_values = ops.dot_general(weights, given, by_rows)
    by_bias = call.as_heads(scaled if call.scales_bias else by_scores)
    return Gradients(
        ops.convert_element_type(_by_query(call, of_queries), call.queries.element_type),
        ops.convert_element_type(ops.transpose(of_keys, [0, 2, 1, 3]), call.keys.element_type),
        ops.convert_element_type(ops.transpose(of_values, [0, 2, 1, 3]), call.values.element_type),
        None if call.bias is None else _summed_to(call.bias, by_bias),
        None if call.sinks is None else _of_sinks(call, mask, logs, inner),
    )


def _of_sinks(call: Attention, mask: Value | None, logs: Value, inner: Value) -> Value:
    """Minus the sum of what the sinks' weights take from the rows, f32 ``[h]``."""
    taken = ops.exp(call.sink_rows(logs.dims) - logs) * inner
    if mask is not None:
        sees = ops.reduce(mask, constant(False, "pred"), ops.logical_or, [2])
        taken = _where(ops.broadcast_in_dim(sees, taken.dims, [0, 2]), taken, 0)
    return -_reduced(call.as_heads(taken), ops.add, 0, [0, 2])


def _by_query(call: Attention, rows: Value) -> Value:
    """``[b, g, rows, d]`` as ``[b, s, h, d]``."""
    return ops.transpose(call.as_heads(rows), [0, 2, 1, 3])


def _summed_to(like: Value, value: Value) -> Value:
    """A value ``[b, h, s, t]`` summed along the dimensions that ``like`` has once, in its type."""
    summed = [d for d in range(value.rank) if like.dims[d] == 1 and value.dims[d] > 1]
    total = _reduced(value, ops.add, 0, summed) if summed else value
    return ops.convert_element_type(ops.reshape(total, like.dims), like.element_type)


def _reduced(value: Value, computation: Callable[[Value, Value], Value], first: float, dimensions: list[int]) -> Value:
    return ops.reduce(value, constant(first, value.element_type), computation, dimensions)


def _where(condition: Value, value: Value, otherwise: float) -> Value:
    return ops.select(condition, value, full(value, otherwise))


def bands(batch: int, queries: int, keys: int) -> tuple[Value, Value]:
    """The places of queries and keys that are counted from the first, s32 ``[b, s]`` and ``[b, t]``."""
    return ops.iota("s32", (batch, queries), 1), ops.iota("s32", (batch, keys), 1)


def within_lengths(lengths: Value, places: Value, outside: int) -> Value:
    """The group 0 for the first places of each sequence, ``outside`` for padding.

    Args:
        lengths: s32 ``[b]``.
        places: s32 ``[b, n]``, counted from the first.
    """
    is_inside = places < ops.broadcast_in_dim(lengths, places.dims, [0])
    return ops.select(is_inside, zeros("s32", places.dims), full(places, outside))


@dataclass(frozen=True)
class Segments:
    """Several sequences in each row of a batch.

    Attributes:
        starts, lengths: s32 ``[n]``: each sequence's first token, counted through the whole batch, and its tokens.
        tokens: the sizes ``[b, s]`` of the batch.
    """

    starts: Value
    lengths: Value
    tokens: tuple[int, int]

    def each(self, of_segments: Value, otherwise: int) -> Value:
        """s32 ``[b, s]``: a number of the segment of each token, and another one of padding."""
        inside, dims = self._inside()
        found = ops.select(inside, ops.broadcast_in_dim(of_segments, dims, [1]), zeros("s32", dims))
        total = _reduced(found, ops.add, 0, [1])
        is_token = ops.reduce(inside, constant(False, "pred"), ops.logical_or, [1])
        return ops.reshape(_where(is_token, total, otherwise), self.tokens)

    def places(self) -> Value:
        """s32 ``[b, s]``: the places of tokens in their segments."""
        number = ops.reshape(ops.iota("s32", (prod(self.tokens),), 0), self.tokens)
        return number - self.each(self.starts, 0)

    def groups(self, outside: int) -> Value:
        """s32 ``[b, s]``: the numbers of segments, ``outside`` for padding."""
        return self.each(ops.iota("s32", self.starts.dims, 0), outside)

    def _inside(self) -> tuple[Value, tuple[int, int]]:
        """pred ``[b · s, n]``: which segment each token is in."""
        dims = prod(self.tokens), self.starts.dims[0]
        number = ops.iota("s32", dims, 0)
        starts = ops.broadcast_in_dim(self.starts, dims, [1])
        ends = starts + ops.broadcast_in_dim(self.lengths, dims, [1])
        return (number >= starts) & (number < ends), dims
