"""Counts of n-grams. Source: ONNX, "TfIdfVectorizer"."""

from __future__ import annotations

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.tensors import Array, broadcast_to, cast, expand, lift, matmul, total, window


@operator("TfIdfVectorizer")
def count_ngrams(node: Node) -> Value:
    """How often each n-gram of a pool of integers occurs in each row, neighbours up to some steps apart."""
    pool = node.attribute("pool_int64s")
    if pool is None:
        raise UnsupportedError("a pool of strings is no array of XLA", hint="number the tokens outside of the model")
    x = node.value(0)
    lines = expand(x, [0]) if x.rank == 1 else x
    places = list(node.attribute("ngram_indexes"))
    starts = [*node.attribute("ngram_counts"), len(pool)]
    shortest, longest = int(node.attribute("min_gram_length")), int(node.attribute("max_gram_length"))
    counts = lift(np.zeros((lines.dims[0], max(places) + 1), np.float32))
    number = 0
    for length in range(1, len(starts)):
        grams = np.asarray(pool[starts[length - 1] : starts[length]], np.int64).reshape(-1, length)
        mine, number = places[number : number + len(grams)], number + len(grams)
        if not shortest <= length <= longest or not len(grams):
            continue
        target = np.zeros((len(grams), max(places) + 1), np.float32)
        target[np.arange(len(grams)), mine] = 1
        # Apart or not is the same for single tokens.
        steps = range(1, 2 if length == 1 else int(node.attribute("max_skip_count")) + 2)
        for step in steps:
            found = _found(lines, grams, step)
            if found is not None:
                counts = counts + matmul(found, lift(target))
    result = _weighted(node, counts, places)
    return ops.reshape(result, result.dims[1:]) if x.rank == 1 else result


def _found(lines: Value, grams: Array, step: int) -> Value | None:
    """``[rows, grams]``: how often each occurs in a row, its tokens ``step`` apart; None if rows are too short."""
    count, length = grams.shape
    places = lines.dims[1] - (length - 1) * step
    if places <= 0:
        return None
    dims = [lines.dims[0], places, count]
    equal: Value | None = None
    for token in range(length):
        part = cast(window(lines, 1, token * step, token * step + places), "s64")
        same = broadcast_to(expand(part, [2]), dims).eq(broadcast_to(lift(grams[:, token].copy()), dims))
        equal = same if equal is None else equal & same
    assert equal is not None
    return total(cast(equal, "f32"), [1])


def _weighted(node: Node, counts: Value, places: list[int]) -> Value:
    mode = node.attribute("mode")
    if mode == "TF":
        return counts
    weights = np.ones(counts.dims[1], np.float32)
    weights[places] = node.attribute("weights") or [1.0] * len(places)
    given = ops.min(counts, 1.0) if mode == "IDF" else counts
    return given * broadcast_to(lift(weights), counts.dims)
