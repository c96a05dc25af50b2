"""Operators of classic machine learning: scaling, linear models, trees, counts of n-grams.

Source: ONNX, domain ``ai.onnx.ml``; "TfIdfVectorizer".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.values import Value
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.tensors import (
    Array,
    broadcast_to,
    cast,
    expand,
    greatest,
    least,
    lift,
    matmul,
    mean,
    numbers,
    take,
    total,
    window,
)

_ML = "ai.onnx.ml"


@operator("Binarizer", domain=_ML)
def binarize(node: Node) -> Value:
    x = node.value(0)
    return cast(x > full(x, node.attribute("threshold", 0.0)), x.element_type)


@operator("Scaler", domain=_ML)
def scale(node: Node) -> Value:
    x = cast(node.value(0), "f32")
    offset, factor = (
        lift(np.asarray(node.attribute(name, value), np.float32))
        for name, value in (("offset", [0.0]), ("scale", [1.0]))
    )
    return (x - broadcast_to(offset, x.dims)) * broadcast_to(factor, x.dims)


@operator("Normalizer", domain=_ML)
def normalize(node: Node) -> Value:
    """Each row divided by its greatest element, or by its sum or norm."""
    x = cast(node.value(0), "f32")
    axes = [x.rank - 1]
    norm = node.attribute("norm", "MAX")
    if norm == "MAX":
        length = greatest(ops.abs(x), axes, True)
    else:
        length = total(ops.abs(x), axes, True) if norm == "L1" else ops.sqrt(total(x * x, axes, True))
    return x / broadcast_to(length, x.dims)


@operator("LinearRegressor", domain=_ML)
def linear_model(node: Node) -> Value:
    x = cast(node.value(0), "f32")
    targets = int(node.attribute("targets", 1))
    weights = np.asarray(node.attribute("coefficients"), np.float32).reshape(targets, -1)
    result = matmul(x, lift(np.ascontiguousarray(weights.T)))
    if node.attribute("intercepts"):
        result = result + broadcast_to(lift(np.asarray(node.attribute("intercepts"), np.float32)), result.dims)
    return _transformed(result, node.attribute("post_transform", "NONE"))


def _transformed(x: Value, name: Any) -> Value:
    from hloforge.importers.onnx.operators.normalization import softmax

    if name in ("NONE", 0):
        return x
    if name in ("SOFTMAX", 1):
        return softmax(x, [x.rank - 1])
    if name in ("LOGISTIC", 2):
        return ops.logistic(x)
    raise UnsupportedError(f"post_transform {name} is not imported")


@operator("TreeEnsemble", domain=_ML, since=5)
def trees(node: Node) -> Value:
    """All rows descend all trees a level at a time; what is a leaf stays."""
    x = node.value(0)
    ensemble = _Ensemble(node)
    rows, count = x.dims[0], len(ensemble.roots)
    place = broadcast_to(lift(ensemble.roots.astype(np.int32)), [rows, count])
    for _ in range(ensemble.depth()):
        features = take(lift(ensemble.features), place, 0)
        vectors = ops.concat_in_dim([expand(numbers([rows, count], 0), [2]), expand(features, [2])], 2)
        given = ops.gather(x, vectors, ops.GatherDimensionNumbers([], [0, 1], [0, 1], 2), [1, 1])
        ways = [take(lift(table), place, 0) for table in (ensemble.yes, ensemble.no)]
        place = ops.select(_decided(ensemble, given, place, x), *ways)
    leaves = place - len(node.attribute("nodes_modes"))
    weights = take(lift(np.asarray(node.attribute("leaf_weights"))), leaves, 0)
    targets = take(lift(np.asarray(node.attribute("leaf_targetids"), np.int32)), leaves, 0)
    return _transformed(_aggregated(node, weights, targets), int(node.attribute("post_transform", 0)))


class _Ensemble:
    """Tables over nodes and after them leaves; a leaf leads to itself."""

    def __init__(self, node: Node) -> None:
        self.modes = np.asarray(node.attribute("nodes_modes")).astype(np.int32)
        size, leaves = len(self.modes), len(node.attribute("leaf_weights"))
        itself = np.arange(size, size + leaves, dtype=np.int32)

        def table(name: str) -> Array:
            ids = np.asarray(node.attribute(f"nodes_{name}nodeids"), np.int32)
            ends = np.asarray(node.attribute(f"nodes_{name}leafs"), np.int32)
            return np.concatenate([ids + size * ends, itself])

        def behind(values: Any, dtype: Any) -> Array:
            return np.concatenate([np.asarray(values).astype(dtype), np.zeros(leaves, dtype)])

        self.yes, self.no = table("true"), table("false")
        self.features = behind(node.attribute("nodes_featureids"), np.int32)
        self.splits = behind(node.attribute("nodes_splits"), node.row(0).dtype)
        missing = node.attribute("nodes_missing_value_tracks_true") or [0] * size
        self.missing = behind(missing, np.bool_)
        self.modes = behind(self.modes, np.int32)
        self.roots = np.asarray(node.attribute("tree_roots"))
        self.members = self._members(node, size + leaves)

    def _members(self, node: Node, count: int) -> Array | None:
        """What the nodes of mode 6 test membership of, ``[nodes, most]``; NaN is a member of nothing."""
        given = node.attribute("membership_values")
        if given is None:
            return None
        sets: list[list[float]] = [[]]
        for value in np.asarray(given):
            if np.isnan(value):
                sets.append([])
            else:
                sets[-1].append(float(value))
        table = np.full((count, max(map(len, sets))), np.nan, node.row(0).dtype)
        for number, members in zip(np.flatnonzero(self.modes == 6), sets, strict=False):
            table[number, : len(members)] = members
        return table

    def depth(self) -> int:
        """The iterations after which every row has come to a leaf. Raises UnsupportedError for trees that loop."""
        place, size = set(self.roots.tolist()), int(self.modes.size - (self.yes == np.arange(self.yes.size)).sum())
        for turn in range(size + 1):
            place = {int(table[n]) for n in place if n < size for table in (self.yes, self.no)}
            if not place:
                return turn
        raise UnsupportedError("the nodes of a tree form a cycle")


def _decided(ensemble: _Ensemble, given: Value, place: Value, x: Value) -> Value:
    """Whether rows take the true branch at the positions where they are."""
    split = take(lift(ensemble.splits), place, 0)
    mode = take(lift(ensemble.modes), place, 0)
    compare = [ops.le, ops.lt, ops.ge, ops.gt, ops.eq, ops.ne]
    result = full(mode, False, "pred")
    for number in sorted(set(ensemble.modes.tolist())):
        if number == 6 and ensemble.members is not None:
            members = take(lift(ensemble.members), place, 0)
            hit = greatest(members.eq(broadcast_to(expand(given, [2]), members.dims)), [2])
        else:
            hit = compare[number](given, split)
        result = ops.select(mode.eq(number), hit, result)
    return result | (given.ne(given) & take(lift(ensemble.missing), place, 0))


def _aggregated(node: Node, weights: Value, targets: Value) -> Value:
    """``[rows, trees]`` of weights to ``[rows, targets]``, by ``aggregate_function``."""
    rows, count = weights.dims
    dims = [rows, count, int(node.attribute("n_targets", 1))]
    mine = broadcast_to(expand(targets, [2]), dims).eq(numbers(dims, 2))
    spread = broadcast_to(expand(weights, [2]), dims)
    kind = int(node.attribute("aggregate_function", 1))
    if kind in (0, 1):
        masked = ops.select(mine, spread, full(spread, 0))
        return mean(masked, [1]) if kind == 0 else total(masked, [1])
    if kind == 2:
        return least(ops.select(mine, spread, full(spread, float("inf"))), [1])
    return greatest(ops.select(mine, spread, full(spread, float("-inf"))), [1])


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
