"""ONNX Runtime's attention operators (``com.microsoft``), as its optimizer and its exporter of language models write
them: with weights, with heads apart, with groups of heads, and rotations of pairs."""

from __future__ import annotations

import math
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.element_types import ElementType
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.contrib import MICROSOFT, spread_row
from hloforge.importers.onnx.operators.contrib_quantized import centered, parameter
from hloforge.importers.onnx.operators.normalization import softmax
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.roundings import rounds_once, sums_in, widened
from hloforge.importers.tensors import broadcast_to, cast, expand, fill, matmul, numbers, pieces, take, window


def _heads(x: Value, count: int) -> Value:
    """[batch, length, heads * size] as [batch, heads, length, size]; what has four dimensions is it already."""
    if x.rank == 4:
        return x
    batch, length, width = x.dims
    return ops.transpose(ops.reshape(x, [batch, length, count, width // count]), [0, 2, 1, 3])


def _joined(x: Value) -> Value:
    batch, heads, length, size = x.dims
    return ops.reshape(ops.transpose(x, [0, 2, 1, 3]), [batch, length, heads * size])


def _attention(
    query: Value,
    key: Value,
    value: Value,
    addend: Value | None,
    scale: float,
    softcap: float = 0.0,
    sinks: Value | None = None,
) -> Value:
    """``softmax(query @ key.T * scale + addend) @ value`` of [batch, heads, length, size], joined; in f32.

    Args:
        sinks: a score for each head of a key that is not there and has a value of zeros.
    """
    row = query.element_type
    scores = _by_groups(cast(query, "f32"), ops.transpose(cast(key, "f32"), [0, 1, 3, 2])) * scale
    if softcap:
        scores = ops.tanh(scores / softcap) * softcap
    if addend is not None:
        scores = scores + broadcast_to(cast(addend, "f32"), scores.dims)
    keys = scores.dims[3]
    if sinks is not None:
        column = broadcast_to(ops.reshape(cast(sinks, "f32"), [1, query.dims[1], 1, 1]), [*scores.dims[:3], 1])
        scores = ops.concat_in_dim([scores, column], 3)
    return cast(_joined(_by_groups(window(softmax(scores, [3]), 3, 0, keys), cast(value, "f32"))), row)


def _by_groups(x: Value, shared: Value) -> Value:
    """``x @ shared`` of [batch, heads, length, n] and [batch, groups, n, m], of which each is for several heads.

    The heads of a group are rows of one product if each has one row, so that keys and values are read once.
    """
    batch, heads, length, depth = x.dims
    groups, size = shared.dims[1], shared.dims[3]
    if heads == groups:
        return matmul(x, shared)
    if length > 1:
        return matmul(x, _repeated(shared, heads // groups))
    rows = matmul(ops.reshape(x, [batch, groups, heads // groups, depth]), shared)
    return ops.reshape(rows, [batch, heads, length, size])


def _where(kept: Value, penalty: float) -> Value:
    """0 where something is kept, elsewhere a penalty."""
    zero = full(cast(kept, "f32"), 0.0)
    return ops.select(kept, zero, full(zero, penalty))


def _padding(mask: Value, batch: int, total: int, penalty: float) -> Value:
    """Of a mask of keys: [batch] lengths, [2 * batch] ends and starts, [3 * batch + 2] lengths and what packed rows
    need besides, [batch, keys] of ones and zeros, or with the queries or heads in between.
    """
    if mask.rank == 1:
        place = numbers([batch, total], 1)
        ends, *others = (
            broadcast_to(ops.reshape(cast(window(mask, 0, first, first + batch), "s32"), [batch, 1]), [batch, total])
            for first in range(0, mask.dims[0] - batch + 1, batch)
        )
        kept = place < ends
        if len(others) == 1:
            kept = kept & (place >= others[0])
        mask = cast(kept, "s32")
    kept = cast(mask, "s32").ne(0) if mask.rank != 2 else cast(mask, "s32") > 0
    return expand(_where(kept, penalty), {2: [1, 2], 3: [1], 4: []}[mask.rank])


def _causal(queries: int, keys: int, penalty: float) -> Value:
    """The last query sees all keys, each one before it one less."""
    shape = [1, 1, queries, keys]
    return _where(numbers(shape, 3) <= numbers(shape, 2) + (keys - queries), penalty)


def _all(parts: list[Value | None]) -> Value | None:
    found: Value | None = None
    for part in parts:
        if part is not None and found is not None:
            dims = [max(pair) for pair in zip(found.dims, part.dims, strict=True)]
            found = broadcast_to(found, dims) + broadcast_to(part, dims)
        else:
            found = found if part is None else cast(part, "f32")
    return found


@operator("Attention", domain=MICROSOFT)
def attention_with_weights(node: Node) -> Any:
    """Inputs: the rows, the weights of query, key and value beside each other, a bias, a mask, past keys and values, an
    addend to the scores. Outputs: the result, and past and present keys and values."""
    rows = node.value(0)
    projected = matmul(rows, node.value(1), sums_in(rows))
    if node.has(2):
        projected = projected + broadcast_to(cast(node.value(2), projected.element_type), projected.dims)
    return _self_attention(node, projected, row=rows.element_type, mask=3, past=4, addend=5)


@operator("QAttention", domain=MICROSOFT)
def quantized_attention(node: Node) -> Any:
    """The same of 8-bit rows and weights: their products are exact, and the rest is computed in f32."""
    sums = cast(matmul(centered(node, 0, 6), centered(node, 1, 7)), "f32")
    projected = sums * (parameter(node, 3, sums, -1) * parameter(node, 4, sums, -1))
    projected = projected + broadcast_to(cast(node.value(2), "f32"), projected.dims)
    return _self_attention(node, projected, row=node.row(3), mask=5, past=8)


def _self_attention(
    node: Node, projected: Value, *, row: ElementType, mask: int, past: int, addend: int | None = None
) -> Any:
    """Attention of the projections of one array to queries, keys and values, beside each other, not rounded yet.

    Args:
        row: of the results.
        mask, past, addend: numbers of inputs.
    """
    heads = int(node.attribute("num_heads"))
    if node.attribute("do_rotary", 0):
        raise UnsupportedError(f"{node.name} with do_rotary is not imported")
    sizes = [int(size) for size in node.attribute("qkv_hidden_sizes") or [projected.dims[2] // 3] * 3]
    query, key, value = (_heads(part, heads) for part in pieces(projected, 2, sizes))
    present = None
    if node.has(past):
        states = cast(node.value(past), key.element_type)
        old = [ops.reshape(window(states, 0, n, n + 1), node.dims(past)[1:]) for n in range(2)]
        key, value = ops.concat_in_dim([old[0], key], 2), ops.concat_in_dim([old[1], value], 2)
    if node.wants(1):
        present = cast(ops.concat_in_dim([expand(key, [0]), expand(value, [0])], 0), row)
    penalty = float(node.attribute("mask_filter_value", -10000.0))
    queries, keys = query.dims[2], key.dims[2]
    kept = _padding(node.value(mask), query.dims[0], keys, penalty) if node.has(mask) else None
    causal = _causal(queries, keys, _LEAST) if node.attribute("unidirectional", 0) else None
    addends = _all([kept, causal, node.value(addend) if addend is not None and node.has(addend) else None])
    scale = float(node.attribute("scale", 0.0)) or 1 / math.sqrt(query.dims[3])
    return Outputs([cast(_attention(query, key, value, addends, scale), row), present])


# What ONNX Runtime gives scores that causality forbids: the least f32.
_LEAST = -3.4028234663852886e38


@operator("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(node: Node) -> Any:
    """Query, key and value as rows, as heads, or (key and value) packed; with a bias, a mask of keys, an addend to the
    scores, and past keys and values."""
    heads = int(node.attribute("num_heads"))
    query, key, value = _unpacked(node)
    bias = node.value(3) if node.has(3) else None
    if bias is not None:
        sizes = [heads * part.dims[3] if part.rank == 4 else part.dims[2] for part in (query, key, value)]
        parts = pieces(bias, 0, sizes)
        query, key, value = (
            widened(x) + broadcast_to(widened(part), x.dims) if x.rank == 3 else x
            for x, part in zip((query, key, value), parts, strict=True)
        )
    query, key, value = (_heads(part, heads) for part in (query, key, value))
    if node.has(6):
        key, value = (
            ops.concat_in_dim([cast(node.value(number), new.element_type), new], 2)
            for number, new in ((6, key), (7, value))
        )
    queries, keys = query.dims[2], key.dims[2]
    penalty = float(node.attribute("mask_filter_value", -10000.0))
    mask = _padding(node.value(4), query.dims[0], keys, penalty) if node.has(4) else None
    causal = _causal(queries, keys, _LEAST) if node.attribute("unidirectional", 0) else None
    addend = _all([mask, causal, node.value(5) if node.has(5) else None])
    scale = float(node.attribute("scale", 0.0)) or 1 / math.sqrt(query.dims[3])
    results = [_attention(query, key, value, addend, scale), key, value]
    return Outputs([cast(result, node.row(0)) for result in results])


@operator("DecoderMaskedMultiHeadAttention", domain=MICROSOFT)
def decoder_attention(node: Node) -> Any:
    """One row a sequence: to the keys and values of the encoder, or to past ones and its own, which come behind them or
    at a place of a buffer that is as large as it will be."""
    heads, row = int(node.attribute("num_heads")), node.row(0)
    query, key, value = _row_of_decoder(node, heads)
    kept: Value | None = None
    if node.attribute("past_present_share_buffer", 0):
        at = ops.reshape(cast(node.value(7), "s32"), [])
        zero, dims = fill([], 0, "s32"), node.dims(5)
        key, value = (
            ops.dynamic_update_slice(node.value(number), new, [zero, zero, at, zero])
            for number, new in ((5, key), (6, value))
        )
        place = numbers([1, 1, 1, dims[2]], 3)
        kept = _where(place <= broadcast_to(at, place.dims), _LEAST)
    elif node.has(5):
        key, value = (ops.concat_in_dim([node.value(n), new], 2) for n, new in ((5, key), (6, value)))
    keys = key.dims[2]
    penalty = float(node.attribute("mask_filter_value", -10000.0))
    if node.has(3) and node.dims(3)[-1] != keys:
        raise UnsupportedError(f"a mask of {node.dims(3)[-1]} keys beside {keys} is not imported")
    mask = _padding(node.value(3), query.dims[0], keys, penalty) if node.has(3) else None
    addend = _all([mask, kept, node.value(4) if node.has(4) else None])
    scale = float(node.attribute("scale", 0.0)) or 1 / math.sqrt(query.dims[3])
    return Outputs([cast(result, row) for result in (_attention(query, key, value, addend, scale), key, value)])


def _row_of_decoder(node: Node, heads: int) -> tuple[Value, Value, Value]:
    """Query, key and value of one row, of packed ones too, with their bias."""
    if not node.has(1):
        width = node.dims(0)[2] // 3
        query, key, value = pieces(node.value(0), 2, [width] * 3)
    else:
        query, key, value = (node.value(number) for number in range(3))
    if node.has(10):
        sizes = [heads * part.dims[3] if part.rank == 4 else part.dims[2] for part in (query, key, value)]
        query, key, value = (
            x + spread_row(part, x) if x.rank == 3 else x
            for x, part in zip((query, key, value), pieces(node.value(10), 0, sizes), strict=True)
        )
    return _heads(query, heads), _heads(key, heads), _heads(value, heads)


def _unpacked(node: Node) -> tuple[Value, Value, Value]:
    """Query, key and value, of packed ones too: heads of [query, key, value], or of [key, value]."""
    query = node.value(0)
    if query.rank == 5:
        batch, length, heads, _, size = query.dims
        parts = [ops.reshape(window(query, 3, n, n + 1), [batch, length, heads * size]) for n in range(3)]
        return parts[0], parts[1], parts[2]
    key = node.value(1)
    if key.rank == 5:
        batch, length, heads, _, size = key.dims
        parts = [ops.reshape(window(key, 3, n, n + 1), [batch, length, heads * size]) for n in range(2)]
        return query, parts[0], parts[1]
    return query, key, node.value(2)


@operator("RotaryEmbedding", domain=MICROSOFT)
@rounds_once
def rotary_embedding(node: Node) -> Value:
    x = node.value(0)
    cosines, sines = node.value(2), node.value(3)
    size = int(node.attribute("rotary_embedding_dim", 0))
    heads = int(node.attribute("num_heads", 0))
    if node.attribute("is_packed_batching", 0):
        raise UnsupportedError("RotaryEmbedding of packed batches is not imported")
    if x.rank == 3 and not heads:
        heads = x.dims[2] // (cosines.dims[1] * 2)
    parted = _heads(x, heads)
    batch, _, length, _ = parted.dims
    places = cast(node.value(1), "s32")
    if places.dims != (batch, length):
        # One number: the position of the first row.
        places = broadcast_to(ops.reshape(places, []), [batch, length]) + numbers([batch, length], 1)
    interleaved = bool(node.attribute("interleaved", 0))
    node.attribute("scale")  # ONNX Runtime does not multiply by it
    rotated = _rotated(parted, places, cosines, sines, size, interleaved)
    return rotated if x.rank == 4 else _joined(rotated)


@operator("MRotaryEmbedding", domain=MICROSOFT)
@rounds_once
def rotary_embedding_of_images(node: Node) -> Value:
    """Angles by three positions of each row (time, height, width), of which each says some columns of the tables."""
    x, places = node.value(0), cast(node.value(1), "s32")
    heads, size = int(node.attribute("num_heads", 0)), int(node.attribute("rotary_embedding_dim", 0))
    if node.attribute("is_packed_batching", 0):
        raise UnsupportedError("MRotaryEmbedding of packed batches is not imported")
    if x.rank == 3 and not heads:
        heads = x.dims[2] // (node.dims(2)[1] * 2)
    parted = _heads(x, heads)
    half = (size or parted.dims[3]) // 2
    sections = [int(each) for each in node.attribute("mrope_section")]
    column = numbers([1, 1, half], 2)
    if node.attribute("mrope_layout", 0):
        is_width, is_height = (ops.rem(column, 3).eq(rest) & (column < sections[rest] * 3) for rest in (2, 1))
    else:
        is_width = column >= sections[0] + sections[1]
        is_height = (column >= sections[0]) & (column < sections[0] + sections[1])
    tables = []
    for table in (window(node.value(2), 1, 0, half), window(node.value(3), 1, 0, half)):
        time, height, width = (
            take(table, ops.reshape(window(places, 0, axis, axis + 1), places.dims[1:]), 0) for axis in range(3)
        )
        with_height = ops.select(broadcast_to(is_height, time.dims), height, time)
        tables.append(ops.select(broadcast_to(is_width, time.dims), width, with_height))
    node.attribute("scale")  # ONNX Runtime does not multiply by it
    rotated = _turned(parted, tables[0], tables[1], bool(node.attribute("interleaved", 0)))
    return rotated if x.rank == 4 else _joined(rotated)


def _rotated(x: Value, places: Value, cosines: Value, sines: Value, size: int, interleaved: bool) -> Value:
    """Pairs of numbers turned by the angles of their places: neighbours if ``interleaved``, else from two halves.

    Args:
        x: [batch, heads, length, head size], of which the first ``size`` numbers are turned (0: all).
        places: [batch, length], rows of the tables.
    """
    half = (size or x.dims[3]) // 2
    cosine, sine = (take(window(table, 1, 0, half), places, 0) for table in (cosines, sines))
    return _turned(x, cosine, sine, interleaved)


def _turned(x: Value, cosines: Value, sines: Value, interleaved: bool) -> Value:
    """The first numbers of each row, in pairs, by angles ``[batch, length, pairs]``."""
    batch, heads, length, _ = x.dims
    half = cosines.dims[2]
    width = 2 * half
    turned = window(x, 3, 0, width)
    cosine, sine = (broadcast_to(expand(each, [1]), [batch, heads, length, half]) for each in (cosines, sines))
    if interleaved:
        pairs = ops.reshape(turned, [batch, heads, length, half, 2])
        left, right = (ops.reshape(window(pairs, 4, n, n + 1), cosine.dims) for n in range(2))
    else:
        left, right = pieces(turned, 3, [half, half])
    first, second = left * cosine - right * sine, right * cosine + left * sine
    if interleaved:
        result = ops.reshape(ops.concat_in_dim([expand(first, [4]), expand(second, [4])], 4), turned.dims)
    else:
        result = ops.concat_in_dim([first, second], 3)
    return result if width == x.dims[3] else ops.concat_in_dim([result, window(x, 3, width, x.dims[3])], 3)


@operator("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(node: Node) -> Any:
    """Causal attention of a decoder: several heads of the query to one of the keys, whose past comes as a buffer of
    which each row of the batch says how much of it is filled (``seqlens_k``, one less than past and new together)."""
    heads, groups = int(node.attribute("num_heads")), int(node.attribute("kv_num_heads"))
    query, key, value = _packed_or_apart(node, heads, groups)
    batch, _, length, size = query.dims
    whole = max(int(node.integers(6)[0]), node.dims(3)[2] if node.has(3) else 0)
    ends = ops.reshape(cast(node.value(5), "s32"), [batch]) + 1
    past = ends - length
    if int(node.integers(6)[0]) == length:
        past = full(past, 0)  # the first rows, of which some may be padding after the end
    if node.attribute("do_rotary", 0):
        places = numbers([batch, length], 1) + ops.broadcast_in_dim(past, [batch, length], [0])
        if node.has(9):
            places = cast(node.value(9), "s32")
        turn = (places, node.value(7), node.value(8), 0, bool(node.attribute("rotary_interleaved", 0)))
        query, key = _rotated_by_tables(query, *turn), _rotated_by_tables(key, *turn)
    key, value = (
        _behind(new, node.value(number) if node.has(number) else None, past, whole)
        for number, new in ((3, key), (4, value))
    )
    shape = [batch, 1, length, whole]
    at = numbers(shape, 2) + ops.broadcast_in_dim(past, shape, [0])
    if not node.attribute("causal", 1):
        at = ops.broadcast_in_dim(past + (length - 1), shape, [0])
    kept = numbers(shape, 3) <= at
    reach = int(node.attribute("local_window_size", -1))
    if reach > 0:
        kept = ops.and_(kept, numbers(shape, 3) > at - reach)
    scale = float(node.attribute("scale", 0.0)) or 1 / math.sqrt(size)
    addend = _all([_where(kept, _LEAST), node.value(10) if node.has(10) else None])
    softcap = float(node.attribute("softcap", 0.0))
    sinks = node.value(11) if node.has(11) else None
    if int(node.attribute("smooth_softmax", 0)) > 0 and sinks is None:
        sinks = fill([heads], 0.0, "f32")
    return Outputs([_attention(query, key, value, addend, scale, softcap, sinks), key, value])


def _rotated_by_tables(x: Value, places: Value, cosines: Value, sines: Value, size: int, interleaved: bool) -> Value:
    tables = widened(cosines), widened(sines)
    return cast(_rotated(widened(x), places, *tables, size or 2 * cosines.dims[1], interleaved), x.element_type)


def _packed_or_apart(node: Node, heads: int, groups: int) -> tuple[Value, Value, Value]:
    query = node.value(0)
    if node.has(1):
        return _heads(query, heads), _heads(node.value(1), groups), _heads(node.value(2), groups)
    size = query.dims[2] // (heads + 2 * groups)
    parts = pieces(query, 2, [heads * size, groups * size, groups * size])
    return _heads(parts[0], heads), _heads(parts[1], groups), _heads(parts[2], groups)


def _behind(new: Value, old: Value | None, past: Value, whole: int) -> Value:
    """The first ``past`` rows of a buffer, then new ones; what lies after is the buffer's, or zero."""
    batch, heads, length, size = new.dims
    if old is None or old.dims[2] == 0:
        if whole == length:
            return new
        old = broadcast_to(full(window(new, 2, 0, 1), 0.0), [batch, heads, whole, size])
    elif old.dims[2] < whole:
        filler = full(broadcast_to(window(new, 2, 0, 1), [batch, heads, whole - old.dims[2], size]), 0.0)
        old = ops.concat_in_dim([old, filler], 2)
    place = numbers([batch, whole], 1)
    start = ops.broadcast_in_dim(past, place.dims, [0])
    is_new = ops.and_(place >= start, place < start + length)
    from_new = ops.clamp(full(place, 0), place - start, full(place, length - 1))
    row = numbers([batch, whole], 0) * length + from_new
    rows = ops.reshape(ops.transpose(new, [0, 2, 1, 3]), [batch * length, heads * size])
    moved = ops.transpose(ops.reshape(take(rows, row, 0), [batch, whole, heads, size]), [0, 2, 1, 3])
    return ops.select(ops.broadcast_in_dim(is_new, moved.dims, [0, 2]), moved, old)


def _repeated(x: Value, count: int) -> Value:
    batch, heads, length, size = x.dims
    shape = [batch, heads, count, length, size]
    return ops.reshape(ops.broadcast_in_dim(x, shape, [0, 1, 3, 4]), [batch, heads * count, length, size])
