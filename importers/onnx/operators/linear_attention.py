"""``LinearAttention`` by chunks of rows: products of matrices within a chunk, one step of the state for each.

The operator's own function is a scan, which passes over all heads' states three times for each row. The rows of a
chunk read the state before it and each other's writes, whose weights are products of decays between two rows: a
triangle of queries by keys, and one of keys by keys, which is solved where a row writes what the state lacks. Decays
are multiplied, never divided, so that weights are as exact as the scan's, also where a decay is zero.

Source: Yang et al., "Gated Linear Attention Transformers", 4; "Gated Delta Networks", 3.3.
"""

from __future__ import annotations

import math
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import TupleValue, Value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.tensors import broadcast_to, cast, element_at, expand, fill, matmul, numbers, put, total, window

# Most rows of a chunk: what they have to do with each other grows with their square, and longer ones took 1.1 to 1.8
# of the time (32, 64; heads of 64 to 128).
_CHUNK = 16
# Rows whose decays by key are multiplied pair by pair; longer blocks are halved.
_PAIRS = 4
# Whether a rule has decays, and whether it writes what the state lacks.
_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}


@operator("LinearAttention", since=27)
def linear_attention(node: Node) -> Any:
    """All four rules of updates, in f32, of results that are rounded once.

    ``state = decay * state + key x beta (value - key @ (decay * state))``, which each query reads.
    """
    rule = str(node.attribute("update_rule", "gated_delta"))
    if rule not in _RULES:
        raise UnsupportedError(f"LinearAttention with update_rule={rule!r} is not imported")
    node.attribute("chunk_size")  # advice, which changes no result
    heads, groups = int(node.attribute("q_num_heads")), int(node.attribute("kv_num_heads"))
    batch, length, width = node.dims(0)
    size, row = width // heads, node.row()
    chunks = -(-length // _CHUNK)
    rows = -(-length // chunks)
    rows = -(-rows // _PAIRS) * _PAIRS if rows > _PAIRS else rows

    def chunked(number: int) -> Value:
        return _chunked(cast(node.value(number), "f32"), groups, chunks, rows)

    gated, corrected = _RULES[rule]
    query, key, value = _heads_of(chunked(0), heads // groups), chunked(1), chunked(2)
    query = query * (float(node.attribute("scale", 0.0)) or 1 / math.sqrt(size))
    decay = ops.exp(chunked(4)) if gated else None
    beta = None
    if corrected:
        beta = node.value(5)
        beta = _chunked(cast(broadcast_to(beta, [batch, length, groups]), "f32"), groups, chunks, rows)
    state = fill([batch, groups, size, value.dims[4]], 0.0, "f32")
    if node.has(3):
        state = cast(node.value(3), "f32")
    found, state = _attended(query, key, value, decay, beta, state)
    joined = ops.reshape(ops.transpose(found, [0, 2, 4, 1, 3, 5]), [batch, chunks * rows, heads * value.dims[4]])
    return Outputs([cast(window(joined, 1, 0, length), row), cast(state, node.row(3) if node.has(3) else row)])


def _chunked(x: Value, heads: int, chunks: int, rows: int) -> Value:
    """[batch, length, heads * size] as [batch, heads, chunks, rows, size], with zeros behind."""
    batch, length, width = x.dims
    padded = ops.pad(x, 0.0, [(0, 0, 0), (0, chunks * rows - length, 0), (0, 0, 0)]) if chunks * rows > length else x
    return ops.transpose(ops.reshape(padded, [batch, chunks, rows, heads, width // heads]), [0, 3, 1, 2, 4])


def _heads_of(query: Value, count: int) -> Value:
    """[batch, groups, chunks, rows, count * size] as [batch, groups, chunks, count, rows, size]."""
    *front, rows, width = query.dims
    return ops.transpose(ops.reshape(query, [*front, rows, count, width // count]), [0, 1, 2, 4, 3, 5])


def _attended(
    query: Value, key: Value, value: Value, decay: Value | None, beta: Value | None, state: Value
) -> tuple[Value, Value]:
    """What queries read, of the queries' shape, and the last state.

    Args:
        query: ``[batch, groups, chunks, heads of a group, rows, size]``; all others lack the heads.
        decay: of size 1 if all keys of a head have the same.
        state: ``[batch, groups, size, size of values]``.
    """
    batch, groups, chunks, heads, rows, size = query.dims
    flat = [batch, groups, chunks, heads * rows]
    read = ops.reshape(_weights(query, expand(key, [3]), _with_heads(decay)), [*flat, rows])
    asked, kept, left = ops.reshape(query, [*flat, size]), key, key
    keeps = None
    if decay is not None:
        before, after = _running(decay, False), _running(_moved_back(decay), True)
        asked = ops.reshape(query * broadcast_to(expand(before, [3]), query.dims), [*flat, size])
        kept, left = key * broadcast_to(before, key.dims), key * broadcast_to(after, key.dims)
        keeps = ops.reshape(window(before, 3, rows - 1, rows), [batch, groups, chunks, before.dims[4]])
    left = ops.transpose(left, [0, 1, 2, 4, 3])
    lacks = None
    if beta is not None:
        own = _weights(key, key, decay)
        lacks = own * broadcast_to(beta, own.dims)
        value = value * broadcast_to(beta, value.dims)
        asked = ops.concat_in_dim([kept * broadcast_to(beta, kept.dims), asked], 3)

    def step(chunk: Value, state: Value, found: Value) -> list[Value]:
        at = [element_at(x, 2, chunk) for x in (asked, read, value, left)]
        seen, written = matmul(at[0], state), at[2]
        if lacks is not None:
            written = written - window(seen, 2, 0, rows)
            written = ops.triangular_solve(element_at(lacks, 2, chunk), written, unit_diagonal=True)
            seen = window(seen, 2, rows, seen.dims[2])
        if keeps is not None:
            state = state * broadcast_to(expand(element_at(keeps, 2, chunk), [3]), state.dims)
        return [chunk + 1, state + matmul(at[3], written), put(found, seen + matmul(at[1], written), chunk)]

    found = fill([chunks, batch, groups, heads * rows, value.dims[4]], 0.0, "f32")
    first = fill([], 0, "s32")
    if chunks == 1:
        _, state, found = step(first, state, found)
    else:
        result = ops.while_(lambda chunk, *_: chunk < chunks, step, [first, state, found])
        assert isinstance(result, TupleValue)
        _, state, found = result.elements
    found = ops.reshape(ops.transpose(found, [1, 2, 0, 3, 4]), [batch, groups, chunks, heads, rows, value.dims[4]])
    return found, state


def _with_heads(decay: Value | None) -> Value | None:
    return None if decay is None else expand(decay, [3])


def _running(x: Value, backwards: bool) -> Value:
    """Products of each row and those before it, or after it."""
    axis = x.rank - 2
    rows = x.dims[axis]
    lengths = [rows if d == axis else 1 for d in range(x.rank)]
    around = (0, rows - 1) if backwards else (rows - 1, 0)
    return ops.reduce_window(x, 1.0, ops.mul, lengths, padding=[around if d == axis else (0, 0) for d in range(x.rank)])


def _moved_back(decay: Value) -> Value:
    """The decay of the next row; of the last one there is none."""
    return ops.pad(decay, 1.0, [(-1, 1, 0) if d == decay.rank - 2 else (0, 0, 0) for d in range(decay.rank)])


def _weights(x: Value, key: Value, decay: Value | None) -> Value:
    """``[..., rows, rows]``: rows by keys of their own and earlier rows, times the decays between; zero of later ones.

    Args:
        x: ``[..., heads, rows, size]``.
        key: likewise, of one head or as many; so is the decay.
    """
    if decay is not None and decay.dims[-1] > 1:
        return _by_halves(x, broadcast_to(key, x.dims), broadcast_to(decay, x.dims))
    rows = x.dims[-2]
    turned = ops.transpose(key, [*range(key.rank - 2), key.rank - 1, key.rank - 2])
    if key.dims == x.dims:
        found = matmul(x, turned)
    else:
        front, heads = x.dims[:-3], x.dims[-3]
        many = ops.reshape(x, [*front, heads * rows, x.dims[-1]])
        found = matmul(many, ops.reshape(turned, [*front, *turned.dims[-2:]]))
        found = ops.reshape(found, [*front, heads, rows, rows])
    if decay is not None:
        return found * broadcast_to(_between(decay), found.dims)
    return ops.select(numbers(found.dims, found.rank - 1) <= numbers(found.dims, found.rank - 2), found, 0.0)


def _between(decay: Value) -> Value:
    """``[..., rows, rows]`` of decays ``[..., rows, 1]``: the product of those after a column up to a row, else 0."""
    rows = decay.dims[-2]
    dims = [*decay.dims[:-1], rows]
    row, column = numbers(dims, len(dims) - 2), numbers(dims, len(dims) - 1)
    factors = ops.select(column < row, broadcast_to(decay, dims), 1.0)
    return ops.select(column <= row, _running(factors, False), 0.0)


def _by_halves(x: Value, key: Value, decay: Value) -> Value:
    """The weights of decays by key: the second half of the rows by the first one's keys is a product of the rows times
    the decays since the half and the keys times those until then; each half is made likewise."""
    *front, rows, size = x.dims
    if rows <= _PAIRS or rows % 2:
        return _by_pairs(x, key, decay)
    half, count = rows // 2, len(front)
    halves = [ops.reshape(each, [*front, 2, half, size]) for each in (x, key, decay)]
    (since, until) = (ops.reshape(window(halves[2], count, n, n + 1), [*front, half, size]) for n in (1, 0))
    later = ops.reshape(window(halves[0], count, 1, 2), since.dims) * _running(since, False)
    earlier = ops.reshape(window(halves[1], count, 0, 1), since.dims) * _running(_moved_back(until), True)
    across = matmul(later, ops.transpose(earlier, [*range(count), count + 1, count]))
    own = _by_halves(*halves)
    first, second = (ops.reshape(window(own, count, n, n + 1), across.dims) for n in (0, 1))
    upper = ops.pad(first, 0.0, [*[(0, 0, 0)] * (count + 1), (0, half, 0)])
    return ops.concat_in_dim([upper, ops.concat_in_dim([across, second], count + 1)], count)


def _by_pairs(x: Value, key: Value, decay: Value) -> Value:
    *front, rows, size = x.dims
    dims = [*front, rows, rows, size]
    row, column = numbers(dims, len(front)), numbers(dims, len(front) + 1)
    factors = ops.select(column < row, broadcast_to(expand(decay, [-2]), dims), 1.0)
    lengths = [rows if d == len(front) else 1 for d in range(len(dims))]
    padding = [(rows - 1, 0) if d == len(front) else (0, 0) for d in range(len(dims))]
    between = ops.reduce_window(factors, 1.0, ops.mul, lengths, padding=padding)
    terms = broadcast_to(expand(x, [-2]), dims) * broadcast_to(expand(key, [-3]), dims) * between
    return total(ops.select(column <= row, terms, 0.0), [len(dims) - 1])
