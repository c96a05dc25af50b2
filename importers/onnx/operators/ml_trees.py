"""Ensembles of decision trees (``ai.onnx.ml``): one walk of all rows through all trees, a level a step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.errors import ImporterError, UnsupportedError
from hloforge.dialect.values import Value, leaves
from hloforge.importers.onnx.forest import (
    Bounds,
    Forest,
    Nodes,
    forest_of,
    nodes_of_lists,
    nodes_of_tensors,
    packed_bits,
)
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.operators.ml_scores import ML, Labels, labels_of, post_transform, rows_of, transformed
from hloforge.importers.onnx.registry import operator
from hloforge.importers.tensors import Array, broadcast_to, cast, expand, fill, numbers, reduced, window

# Places of rows and trees that are walked at once: more would not stay in a cache.
_AT_ONCE = 1 << 20
# Levels that are written out; deeper trees are walked by a loop of so many levels a step.
_UNROLLED, _A_STEP = 16, 2


@dataclass
class Ensemble:
    """A forest with what its leaves say.

    Attributes:
        targets: how many numbers a row gets.
        leaf, target, weight: for each weight, of which leaf and target it is.
        combine: how the weights of several trees become one number: ``SUM``, ``AVERAGE``, ``MIN`` or ``MAX``.
    """

    forest: Forest
    targets: int
    leaf: Array
    target: Array
    weight: Array
    combine: str = "SUM"

    def of_trees(self) -> Array | None:
        """The one target of each tree, if each has one."""
        trees = len(self.forest.roots)
        if self.targets == 1:
            return np.zeros(trees, np.int64)
        if self.forest.trees is None:
            return None
        owner = self.forest.trees[self.leaf]
        asked = owner >= 0
        found = np.full(trees, -1, np.int64)
        found[owner[asked]] = self.target[asked]
        return None if (found[owner[asked]] != self.target[asked]).any() else np.maximum(found, 0)

    @property
    def nothing(self) -> float:
        """What a tree without a weight for a target adds to it."""
        return {"MIN": np.inf, "MAX": -np.inf}.get(self.combine, 0.0)

    def weights(self) -> Array:
        """The weights of each leaf for each target: ``(leaves, targets)``."""
        count = int(max(self.forest.leaves.max(), self.leaf.max(initial=0))) + 1
        summed = np.zeros((count, self.targets), self.weight.dtype)
        np.add.at(summed, (self.leaf, self.target), self.weight)
        if self.nothing:
            given = np.zeros(summed.shape, bool)
            given[self.leaf, self.target] = True
            summed[~given] = self.nothing
        return summed


def look_up(table: Array | Value, places: Value) -> Value:
    """The elements of a vector at these places, which are in it."""
    vector = constant(table) if isinstance(table, np.ndarray) else table
    dimensions = ops.GatherDimensionNumbers([], [0], [0], places.rank)
    return ops.gather(vector, ops.reshape(places, [*places.dims, 1]), dimensions, [1])


def _index(array: Array) -> Array:
    return np.ascontiguousarray(array, np.int32)


def scores(ensemble: Ensemble, x: Value) -> Value:
    """What the trees say of each row, in the element type of the weights.

    Args:
        x: rows of features, ``(rows, features)``, in the element type of the comparisons.
    """
    rows, trees = x.dims[0], len(ensemble.forest.roots)
    if ensemble.forest.columns.max(initial=0) >= x.dims[1]:
        raise ImporterError(
            f"a tree compares feature {int(ensemble.forest.columns.max())}, and a row has {x.dims[1]} features"
        )
    ranks = _ranks(ensemble.forest, x)
    at_once = max(_AT_ONCE // trees, 16)
    if rows <= 2 * at_once:
        return _walked(ensemble, ranks)
    count = -(-rows // at_once)
    row = ensemble.weight.dtype

    def step(number: Value, made: Value) -> tuple[Value, Value]:
        # The last part begins earlier, so that all are equally long.
        start = ops.min(number * at_once, rows - at_once)
        zero = fill([], 0, "s32")
        part = ops.dynamic_slice(ranks, [start, zero], [at_once, ranks.dims[1]])
        return number + 1, ops.dynamic_update_slice(made, _walked(ensemble, part), [start, zero])

    begin = [fill([], 0, "s32"), fill([rows, ensemble.targets], 0, row)]
    return leaves(ops.while_(lambda number, _: number < count, step, begin))[1]


def _ranks(forest: Forest, x: Value) -> Value:
    """How many thresholds of its column each number exceeds; ``(rows, columns)``, s32."""
    features = forest.columns
    if len(features) != x.dims[1] or (features != np.arange(len(features))).any():
        places = constant(_index(features).reshape(-1, 1))
        dimensions = ops.GatherDimensionNumbers([0], [1], [1], 1)
        x = ops.gather(x, places, dimensions, [x.dims[0], 1])
    rank = fill(x.dims, 1, "s32")
    for bounds, exceeds in ((forest.bounds, ops.gt), (forest.strict, ops.ge)):
        if bounds.longest:
            rank = rank + _searched(bounds, x, exceeds)
    if not x.element_type.is_float:
        return rank
    of_nan = np.where(forest.nan_high, forest.always, 0)
    return ops.select(x.ne(x), broadcast_to(constant(_index(of_nan)), x.dims), rank)


def _searched(bounds: Bounds, x: Value, exceeds: Callable[[Value, Value], Value]) -> Value:
    """Binary search in the numbers of each column."""
    starts, counts = (broadcast_to(constant(_index(each)), x.dims) for each in (bounds.starts, bounds.counts))
    table = constant(bounds.numbers)
    found = fill(x.dims, 0, "s32")
    step = 1 << bounds.longest.bit_length() - 1
    while step:
        asked = found + (step - 1)
        is_more = exceeds(x, look_up(table, ops.min(starts + asked, len(bounds.numbers) - 1))) & (asked < counts)
        found = found + cast(is_more, "s32") * step
        step //= 2
    return found


def _walked(ensemble: Ensemble, ranks: Value) -> Value:
    """What the trees say of some rows."""
    forest = ensemble.forest
    place = _complete(forest, ranks) if forest.complete else _following(forest, ranks)
    of_leaf = ensemble.weights()
    single = ensemble.of_trees()
    total = {"MIN": ops.min, "MAX": ops.max}.get(ensemble.combine, ops.add)
    if single is None:
        found = _rows_at(of_leaf[forest.leaves.reshape(-1)], place)
        summed = reduced(found, ensemble.nothing, total, [1])
    else:
        values = _of_one(forest, of_leaf, single)
        summed = _by_target(look_up(values, place), single, ensemble, total)
    if ensemble.combine == "AVERAGE":
        return summed / float(len(forest.roots))
    if ensemble.nothing:
        return ops.select(summed.eq(float(ensemble.nothing)), fill(summed.dims, 0, summed.element_type), summed)
    return summed


def _of_one(forest: Forest, of_leaf: Array, single: Array) -> Array:
    """The weight at each place, of the one target of its tree."""
    if forest.complete:
        found: Array = np.take_along_axis(of_leaf[forest.leaves], single.reshape(-1, 1, 1), 2)
        return found.reshape(-1)
    if of_leaf.shape[1] == 1 or forest.trees is None:
        first: Array = of_leaf[np.maximum(forest.leaves, 0), 0]
        return first
    owner = np.zeros(len(of_leaf), np.int64)
    owner[: len(forest.trees)] = np.maximum(forest.trees, 0)
    own: Array = of_leaf[np.arange(len(of_leaf)), single[owner]]
    return own[np.maximum(forest.leaves, 0)]


def _by_target(found: Value, single: Array, ensemble: Ensemble, total: Callable[..., Any]) -> Value:
    """Each target's trees combined, of ``(rows, trees)``."""
    if ensemble.targets == 1:
        return reduced(found, ensemble.nothing, total, [1], True)
    groups = [np.flatnonzero(single == number) for number in range(ensemble.targets)]
    sizes = {len(group) for group in groups}
    rows = found.dims[0]
    if len(sizes) == 1:
        size = sizes.pop()
        turned = np.arange(len(single)).reshape(size, -1).T
        blocks = np.arange(len(single)).reshape(-1, size)
        if (np.stack(groups) == turned).all():
            return reduced(ops.reshape(found, [rows, size, ensemble.targets]), ensemble.nothing, total, [1])
        if (np.stack(groups) == blocks).all():
            return reduced(ops.reshape(found, [rows, ensemble.targets, size]), ensemble.nothing, total, [2])
    parts = []
    for group in groups:
        if not len(group):
            parts.append(fill([rows, 1], ensemble.nothing, found.element_type))
            continue
        own = window(found, 1, int(group[0]), int(group[-1]) + 1, int(group[1] - group[0]) if len(group) > 1 else 1)
        if own.dims[1] != len(group):
            places = constant(_index(group).reshape(-1, 1))
            own = ops.gather(found, places, ops.GatherDimensionNumbers([0], [1], [1], 1), [rows, 1])
        parts.append(reduced(own, ensemble.nothing, total, [1], True))
    return ops.concat_in_dim(parts, 1)


def _rows_at(table: Array, place: Value) -> Value:
    dimensions = ops.GatherDimensionNumbers([place.rank], [0], [0], place.rank)
    return ops.gather(constant(table), ops.reshape(place, [*place.dims, 1]), dimensions, [1, table.shape[1]])


def _exceeds(forest: Forest, ranks: Value) -> Callable[[Value], Value]:
    """Whether a row's rank exceeds that of a node, as 0 or 1: a function of the numbers of nodes, ``(rows, trees)``."""
    rows, columns = ranks.dims
    flat = ops.reshape(ranks, [rows * columns])
    bits = packed_bits(forest)
    packed = None if bits is None else constant(_index(forest.column << bits | forest.rank))
    column, rank = constant(_index(forest.column)), constant(_index(forest.rank))

    def compared(node: Value) -> Value:
        first = numbers(node.dims, 0) * columns
        if packed is None or bits is None:
            return cast(look_up(flat, first + look_up(column, node)) > look_up(rank, node), "s32")
        found = look_up(packed, node)
        own = look_up(flat, first + ops.shift_right_logical(found, bits))
        return cast(own > ops.and_(found, (1 << bits) - 1), "s32")

    return compared


def _complete(forest: Forest, ranks: Value) -> Value:
    """The place among all leaves at which each row arrives in each tree; ``(rows, trees)``."""
    trees = len(forest.roots)
    dims = (ranks.dims[0], trees)
    exceeds = _exceeds(forest, ranks)
    first = numbers(dims, 1) * (1 << forest.depth)
    place = fill(dims, 1, "s32")
    for _ in range(forest.depth):
        place = 2 * place + exceeds(first + place)
    return place + (first - (1 << forest.depth))


def _following(forest: Forest, ranks: Value) -> Value:
    """The number of the leaf at which each row arrives in each tree; ``(rows, trees)``."""
    exceeds = _exceeds(forest, ranks)
    following = constant(_index(forest.following.reshape(-1)))

    def level(node: Value) -> Value:
        return look_up(following, 2 * node + exceeds(node))

    node = broadcast_to(expand(constant(_index(forest.roots)), [0]), (ranks.dims[0], len(forest.roots)))
    if forest.depth <= _UNROLLED:
        return functools.reduce(lambda at, _: level(at), range(forest.depth), node)
    steps = -(-forest.depth // _A_STEP)
    walked = ops.while_(
        lambda number, _: number < steps,
        lambda number, at: (number + 1, functools.reduce(lambda place, _: level(place), range(_A_STEP), at)),
        [fill([], 0, "s32"), node],
    )
    return leaves(walked)[1]


# Operators ----------------------------------------------------------------------------------------------------------


def _of_lists(node: Node, x: Value, weights: str, targets: int) -> tuple[Ensemble, Value]:
    rows, dtype = rows_of(x)
    nodes, leaf, target, weight = nodes_of_lists(node.attribute, dtype, weights)
    combine = str(node.attribute("aggregate_function", "SUM"))
    return _ensemble(nodes, leaf, target, weight, targets, combine), rows


def _ensemble(nodes: Nodes, leaf: Array, target: Array, weight: Array, targets: int, combine: str) -> Ensemble:
    if len(target) and (target.min() < 0 or target.max() >= targets):
        raise ImporterError(f"a leaf has a weight for target {int(target.max())}, and there are {targets}")
    if combine not in ("SUM", "AVERAGE", "MIN", "MAX"):
        raise UnsupportedError(f"the aggregate function {combine!r} is not imported")
    return Ensemble(forest_of(nodes), targets, leaf, target, weight, combine)


def _base(node: Node, dtype: Any) -> Array:
    given = node.attribute("base_values_as_tensor")
    given = node.attribute("base_values") if given is None else given
    return np.asarray([] if given is None else given).reshape(-1).astype(dtype)


@operator("TreeEnsembleRegressor", domain=ML)
def regressor(node: Node) -> Value:
    targets = int(node.attribute("n_targets", 1))
    ensemble, rows = _of_lists(node, node.value(0), "target", targets)
    summed = scores(ensemble, rows)
    base = _base(node, ensemble.weight.dtype)
    if len(base):
        summed = summed + broadcast_to(constant(base), summed.dims)
    return cast(transformed(summed, post_transform(node)), "f32")


@operator("TreeEnsemble", domain=ML)
def tree_ensemble(node: Node) -> Value:
    x = node.value(0)
    rows, dtype = rows_of(x)
    nodes, leaf, target, weight = nodes_of_tensors(node.attribute, dtype)
    combine = ("AVERAGE", "SUM", "MIN", "MAX")[int(node.attribute("aggregate_function", 1))]
    ensemble = _ensemble(nodes, leaf, target, weight, int(node.attribute("n_targets", 1)), combine)
    return cast(transformed(scores(ensemble, rows), post_transform(node)), x.element_type)


@operator("TreeEnsembleClassifier", domain=ML)
def classifier(node: Node) -> Any:
    """The class of each row and the scores of all classes.

    With two classes of which one has weights, the other's score is its counterpart, as in ONNX Runtime; the
    specification has no rule for it.
    """
    labels = labels_of(node, "classlabels_int64s")
    ensemble, rows = _of_lists(node, node.value(0), "class", len(labels))
    summed = scores(ensemble, rows)
    base = _base(node, ensemble.weight.dtype)
    transform = post_transform(node)
    used = set(ensemble.target.tolist())
    if len(labels) == 2 and len(used) == 1:
        return Outputs(_of_two(ensemble, summed, base, transform, labels))
    if len(base):
        if len(base) not in (1, len(labels)):
            raise ImporterError(f"{len(base)} base values for {len(labels)} classes")
        base = base if len(base) == len(labels) else np.append(base, np.zeros(len(labels) - 1, base.dtype))
        summed = summed + broadcast_to(constant(base), summed.dims)
    if len(labels) == 1:
        is_it = ops.reshape(summed > 0.0, summed.dims[:1])
        scored = transformed(summed, transform) if transform == "PROBIT" else summed
        return Outputs([labels.alone(is_it), cast(scored, "f32")])
    return Outputs([labels.best(summed), cast(transformed(summed, transform), "f32")])


def _of_two(ensemble: Ensemble, summed: Value, base: Array, transform: str, labels: Labels) -> list[Any]:
    """The label and the scores of two classes, of which only one has weights."""
    is_mixed = bool((ensemble.weight < 0).any())
    own = int(ensemble.target[0])
    score = window(summed, 1, own, own + 1)
    if len(base) == 2 or (len(base) == 1 and own == 0):
        score = score + float(base[own])
    label = labels.at(cast(ops.reshape(score > (0.0 if is_mixed else 0.5), score.dims[:1]), "s32"))
    if own == 1 or len(base) == 2:
        other = fill(score.dims, float(base[0]) if len(base) == 2 and own == 1 else 0.0, score.element_type)
        pair = ops.concat_in_dim([score, other] if own == 0 else [other, score], 1)
        return [label, cast(transformed(pair, transform), "f32")]
    if transform == "PROBIT":
        raise UnsupportedError("the post transform PROBIT of the one score of two classes is not imported")
    if transform == "LOGISTIC":
        return [label, cast(ops.logistic(ops.concat_in_dim([-score, score], 1)), "f32")]
    return [label, cast(ops.concat_in_dim([-score if is_mixed else 1.0 - score, score], 1), "f32")]
