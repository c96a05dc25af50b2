"""Trees as tables: what the attributes of a tree ensemble become before there is a program. All of it is numpy's work.

A feature's thresholds are sorted, and a number counts for how many of them it exceeds: its rank. Every comparison, with
``<``, ``<=``, ``==``, a set or NaN, then is "is the rank greater than r?", of small integers, exactly: a node is one
number, its column and r. What no rank exceeds is ``ALWAYS``; it leads to the first branch.

    x <= t        rank(x) > rank of (t, <=)       to the false branch
    x <  t        rank(x) > rank of (t, <)        to the false branch; (t, <) comes before (t, <=)
    x == t        two nodes: before (t, <), between both, after (t, <=)
    x is NaN      rank 0, or in a second column the highest rank, so that NaN goes where its node says
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hloforge.dialect.errors import ImporterError, UnsupportedError
from hloforge.importers.tensors import Array

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(len(MODES))
# A ragged tree is made complete by repeating its leaves, up to so many times as many places and so deep.
_MOST_REPEATED, _DEEPEST_COMPLETE, _FEW = 4, 12, 1 << 16


@dataclass
class Nodes:
    """All nodes of all trees, inner ones and leaves, by number.

    Attributes:
        mode: an index of ``MODES``; -1 for a leaf.
        feature: the column that an inner node compares.
        threshold: with what, in the element type of the comparison.
        true, false: the numbers of the nodes that follow; a leaf follows itself.
        missing_true: whether NaN goes to ``true``.
        leaf: the number of a leaf's weights.
        roots: one node a tree.
        members: the sets of inner nodes with the mode ``MEMBER``.
    """

    mode: Array
    feature: Array
    threshold: Array
    true: Array
    false: Array
    missing_true: Array
    leaf: Array
    roots: Array
    members: dict[int, Array] = field(default_factory=dict)


@dataclass
class Bounds:
    """Sorted numbers for each column, one column after the other.

    Attributes:
        numbers: all of them; NaN, which nothing exceeds, at the end.
        starts, counts: of each column.
    """

    numbers: Array
    starts: Array
    counts: Array

    @property
    def longest(self) -> int:
        """How many numbers a column has, at most."""
        return int(self.counts.max())


@dataclass
class Forest:
    """Tables that a program walks.

    Attributes:
        columns: for each column of ranks, the feature that it ranks.
        nan_high: for each column, whether NaN has the highest rank; else it has rank 0.
        bounds: thresholds t of ``x > t``.
        strict: the same of ``x >= t``.
        column, rank: of each node.
        depth: how many nodes there are between a root and a leaf, at most.
        complete: whether node n of a tree is followed by 2n and 2n + 1 (the root is 1), so that a tree has
            ``2 ** depth`` places; else ``following`` says which nodes follow.
        following: for each node, the number of the nodes that follow: ``(nodes, 2)``; empty if complete.
        leaves: of complete trees, the number of the weights at each leaf: ``(trees, 2 ** depth)``; else of each node.
        roots: the first node of each tree.
        trees: the tree of each leaf's number, -1 for one that no tree leads to; None if several trees lead to one.
    """

    columns: Array
    nan_high: Array
    bounds: Bounds
    strict: Bounds
    column: Array
    rank: Array
    depth: int
    complete: bool
    following: Array
    leaves: Array
    roots: Array
    trees: Array | None

    @property
    def always(self) -> int:
        """A rank that no number exceeds: one is below all thresholds, one above, and NaN on either side."""
        return self.bounds.longest + self.strict.longest + 2


class _Growing:
    """Nodes of ranks under construction: comparisons that take several nodes are added at the end."""

    def __init__(self, count: int) -> None:
        self.feature = np.zeros(count, np.int64)
        self.threshold: Array = np.zeros(0)
        # Of what a node compares: 0 for (t, <), 1 for (t, <=), 2 for "is NaN", 3 for a leaf, 4 for "never".
        self.kind = np.zeros(count, np.int64)
        self.high = np.zeros(count, bool)
        self.left = np.zeros(count, np.int64)
        self.right = np.zeros(count, np.int64)
        self._added: list[tuple[Any, ...]] = []
        self._count = count

    def add(self, feature: int, threshold: Any, kind: int, *, high: bool, left: int, right: int) -> int:
        self._added.append((feature, threshold, kind, high, left, right))
        return self._count + len(self._added) - 1

    def finish(self) -> None:
        if self._added:
            feature, threshold, kind, high, left, right = (list(each) for each in zip(*self._added, strict=True))
            self.feature = np.concatenate([self.feature, np.array(feature, np.int64)])
            self.threshold = np.concatenate([self.threshold, np.array(threshold, self.threshold.dtype)])
            self.kind = np.concatenate([self.kind, np.array(kind, np.int64)])
            self.high = np.concatenate([self.high, np.array(high, bool)])
            self.left = np.concatenate([self.left, np.array(left, np.int64)])
            self.right = np.concatenate([self.right, np.array(right, np.int64)])


_BELOW, _UP_TO, _IS_NAN, _LEAF, _NEVER = range(5)


def forest_of(nodes: Nodes) -> Forest:
    """The tables of some trees.

    Raises:
        ImporterError: nodes follow each other in a circle.
    """
    grown = _grown(nodes)
    columns, nan_high, column, rank, bounds, strict = _ranked(grown)
    following = np.stack([grown.left, grown.right], 1)
    depth = _depth(grown, nodes.roots)
    leaf = np.full(len(grown.kind), -1, np.int64)
    leaf[: len(nodes.leaf)] = nodes.leaf
    owners = _owners(grown, nodes.roots, leaf)
    trees = len(nodes.roots)
    repeated = trees << min(depth, 40)
    if depth > _DEEPEST_COMPLETE or repeated > max(_MOST_REPEATED * len(grown.kind), _FEW):
        return Forest(
            columns, nan_high, bounds, strict, column, rank, depth, False, following, leaf, nodes.roots, owners
        )
    level = nodes.roots.reshape(trees, 1)
    levels = [np.zeros_like(level)]
    for _ in range(depth):
        levels.append(level)
        level = following[level].reshape(trees, -1)
    at = np.concatenate(levels, 1).reshape(-1)
    none, leaves, firsts = np.zeros((0, 2), np.int64), leaf[level], np.arange(trees)
    return Forest(columns, nan_high, bounds, strict, column[at], rank[at], depth, True, none, leaves, firsts, owners)


def _grown(nodes: Nodes) -> _Growing:
    """Nodes of two branches by rank, with what leads left for small numbers."""
    grown = _Growing(len(nodes.mode))
    mode, missing = nodes.mode, nodes.missing_true.astype(bool)
    grown.feature, grown.threshold = nodes.feature.copy(), nodes.threshold.copy()
    swapped = (mode == GTE) | (mode == GT)
    grown.kind = np.where((mode == LEQ) | (mode == GT), _UP_TO, _BELOW)
    grown.kind[mode < 0] = _LEAF
    # No number is equal to, below or above NaN.
    grown.kind[np.isnan(grown.threshold) & ((mode == LEQ) | (mode == LT) | swapped)] = _NEVER
    grown.left = np.where(swapped, nodes.false, nodes.true)
    grown.right = np.where(swapped, nodes.true, nodes.false)
    # NaN goes left where the false branch is there and it does not go to the true one, or the other way round.
    grown.high = missing == swapped
    never = grown.kind == _NEVER
    if never.any():
        grown.left[never], grown.right[never] = nodes.true[never], nodes.false[never]
        grown.high[never] = ~missing[never]
    for number in np.flatnonzero((mode == EQ) | (mode == NEQ) | (mode == MEMBER)):
        _add_set(grown, nodes, int(number))
    grown.finish()
    return grown


def _add_set(grown: _Growing, nodes: Nodes, number: int) -> None:
    """A node that asks whether a number is one of some: a search among the intervals between them."""
    feature, mode = int(nodes.feature[number]), int(nodes.mode[number])
    inside, outside = int(nodes.true[number]), int(nodes.false[number])
    tracked = bool(nodes.missing_true[number])
    if mode == NEQ:
        # NaN differs from every number, and so goes to the true branch.
        inside, outside, tracked = outside, inside, False
    given = nodes.members[number] if mode == MEMBER else nodes.threshold[number : number + 1]
    members = np.unique(given[~np.isnan(given)])
    # Before the first boundary and after each pair of them a number is outside. NaN has rank 0.
    sides = [(member, kind) for member in members for kind in (_BELOW, _UP_TO)]

    def search(start: int, stop: int) -> int:
        if start == stop:
            return inside if start % 2 else outside
        middle = (start + stop) // 2
        member, kind = sides[middle]
        left, right = search(start, middle), search(middle + 1, stop)
        return grown.add(feature, member, kind, high=False, left=left, right=right)

    found = search(0, len(sides))
    grown.feature[number], grown.high[number] = feature, False
    grown.threshold[number], grown.kind[number] = 0, _IS_NAN
    grown.left[number], grown.right[number] = (inside if tracked else outside), found


def _ranked(grown: _Growing) -> tuple[Array, Array, Array, Array, Bounds, Bounds]:
    """Columns (features with a place for NaN), each node's column and rank, and the thresholds of each column."""
    inner = grown.kind != _LEAF
    keys = 2 * grown.feature + grown.high
    used, column = np.unique(keys[inner], return_inverse=True)
    if not len(used):
        used = np.zeros(1, np.int64)
    columns = np.zeros(len(keys), np.int64)
    columns[inner] = column
    tables: dict[int, list[Array]] = {}
    for kind in (_UP_TO, _BELOW):
        of_kind = grown.kind == kind
        tables[kind] = [np.unique(part) for part in _split(grown.threshold[of_kind], columns[of_kind], len(used))]
    bounds, strict = _bounds(tables[_UP_TO], grown), _bounds(tables[_BELOW], grown)
    rank = np.full(len(keys), bounds.longest + strict.longest + 2, np.int64)
    rank[(grown.kind == _NEVER) | (grown.kind == _IS_NAN)] = 0
    for kind in (_UP_TO, _BELOW):
        asked = np.flatnonzero(grown.kind == kind)
        for numbers in _split(asked, columns[asked], len(used)):
            if not len(numbers):
                continue
            place, threshold = columns[numbers[0]], grown.threshold[numbers]
            side: Any = "right" if kind == _UP_TO else "left"
            # The boundaries before it, and one for not being NaN.
            before = np.searchsorted(tables[_UP_TO][place], threshold, "left")
            rank[numbers] = 1 + before + np.searchsorted(tables[_BELOW][place], threshold, side)
    return used // 2, used % 2 == 1, columns, rank, bounds, strict


def _split(values: Array, places: Array, count: int) -> list[Array]:
    """The values at each place."""
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(np.bincount(places, minlength=count)[:count])
    return np.split(values[order], ends[:-1])


def _bounds(tables: Sequence[Array], grown: _Growing) -> Bounds:
    counts = np.array([len(table) for table in tables], np.int64)
    numbers = np.concatenate([*tables, np.array([np.nan], grown.threshold.dtype)])
    return Bounds(numbers, np.cumsum(counts) - counts, counts)


def _owners(grown: _Growing, roots: Array, leaf: Array) -> Array | None:
    """The tree of each leaf's number; None if a node is part of several trees."""
    owner = np.full(len(grown.kind), -1, np.int64)
    owner[roots] = np.arange(len(roots))
    level = np.unique(roots)
    if len(level) < len(roots):
        return None
    while len(level := level[grown.kind[level] != _LEAF]):
        for branch in (grown.left, grown.right):
            known, made = owner[branch[level]], owner[level]
            if ((known >= 0) & (known != made)).any():
                return None
            owner[branch[level]] = made
        if (owner[grown.left[level]] != owner[level]).any() or (owner[grown.right[level]] != owner[level]).any():
            return None
        level = np.unique(np.concatenate([grown.left[level], grown.right[level]]))
    trees = np.full(int(leaf.max()) + 1, -1, np.int64)
    reached = (leaf >= 0) & (owner >= 0)
    trees[leaf[reached]] = owner[reached]
    return trees


def _depth(grown: _Growing, roots: Array) -> int:
    """The most inner nodes on a way. Raises ImporterError for a circle."""
    level = np.unique(roots)
    depth = 0
    while True:
        level = level[grown.kind[level] != _LEAF]
        if not len(level):
            return depth
        depth += 1
        if depth > len(grown.kind):
            raise ImporterError("the nodes of a tree follow each other in a circle")
        level = np.unique(np.concatenate([grown.left[level], grown.right[level]]))


# From attributes ----------------------------------------------------------------------------------------------------


def nodes_of_lists(get: Any, dtype: Any, weights: str) -> tuple[Nodes, Array, Array, Array]:
    """The nodes that the lists of ``TreeEnsembleClassifier`` and ``TreeEnsembleRegressor`` describe.

    Args:
        get: an attribute by its name, None if there is none.
        dtype: numpy's, in which thresholds are compared.
        weights: what the names of lists of weights begin with: ``class`` or ``target``.

    Returns:
        The nodes; for each weight the number of its leaf, of its class or target, and the weight itself.

    Raises:
        ImporterError: lists of different lengths, nodes that follow and are not there, two nodes of one name.
        UnsupportedError: an unknown mode.
    """
    trees, names = _integers(get("nodes_treeids")), _integers(get("nodes_nodeids"))
    values = get("nodes_values_as_tensor")
    values = np.asarray(get("nodes_values") if values is None else values).reshape(-1).astype(dtype)
    modes = get("nodes_modes") or []
    feature, true, false = (_integers(get(f"nodes_{name}")) for name in ("featureids", "truenodeids", "falsenodeids"))
    missing = _integers(get("nodes_missing_value_tracks_true") or [0] * len(trees))
    lengths = {len(each) for each in (trees, names, values, modes, feature, true, false, missing)}
    if len(lengths) != 1 or not len(trees):
        raise ImporterError(f"the lists nodes_* of a tree ensemble have different lengths: {sorted(lengths)}")
    numbers = {name: number for number, name in enumerate(MODES)} | {"LEAF": -1}
    texts = [entry.decode() if isinstance(entry, bytes) else str(entry) for entry in modes]
    unknown = set(texts) - set(numbers)
    if unknown:
        raise UnsupportedError(f"nodes of trees with the mode {', '.join(sorted(unknown))} are not imported")
    mode = np.array([numbers[text] for text in texts], np.int64)
    _, first, tree = np.unique(trees, return_index=True, return_inverse=True)
    low, span = int(names.min()), int(names.max() - names.min()) + 1
    keys = tree * span + (names - low)
    order = np.argsort(keys, kind="stable")
    if len(np.unique(keys)) < len(keys):
        raise ImporterError("two nodes of a tree have the same number")

    def found(wanted: Array, of_tree: Array, what: str) -> Array:
        asked = of_tree * span + (wanted - low)
        place = np.minimum(np.searchsorted(keys[order], asked), len(keys) - 1)
        number: Array = order[place]
        wrong = (keys[number] != asked) | (wanted < low) | (wanted >= low + span)
        if wrong.any():
            raise ImporterError(f"a tree has no node {int(wanted[np.argmax(wrong)])}, which {what}")
        return number

    inner = np.flatnonzero(mode >= 0)
    own = np.arange(len(mode))
    follows = {True: own.copy(), False: own.copy()}
    follows[True][inner] = found(true[inner], tree[inner], "follows another one")
    follows[False][inner] = found(false[inner], tree[inner], "follows another one")
    leaf_trees, leaf_names = _integers(get(f"{weights}_treeids")), _integers(get(f"{weights}_nodeids"))
    given = get(f"{weights}_weights_as_tensor")
    weight = np.asarray(get(f"{weights}_weights") if given is None else given).reshape(-1).astype(dtype)
    target = _integers(get(f"{weights}_ids"))
    if len({len(each) for each in (leaf_trees, leaf_names, weight, target)}) != 1:
        raise ImporterError(f"the lists {weights}_* of a tree ensemble have different lengths")
    known = np.unique(trees)
    place = np.minimum(np.searchsorted(known, leaf_trees), len(known) - 1)
    if (known[place] != leaf_trees).any():
        raise ImporterError("a weight belongs to a tree that is not there")
    at = found(leaf_names, place, "has a weight")
    leaf = np.where(mode < 0, np.cumsum(mode < 0) - 1, -1)
    # A tree begins with the node that is listed first.
    nodes = Nodes(mode, feature, values, follows[True], follows[False], missing, leaf, np.sort(first))
    ends = leaf[at] >= 0
    return nodes, leaf[at][ends], target[ends], weight[ends]


def nodes_of_tensors(get: Any, dtype: Any) -> tuple[Nodes, Array, Array, Array]:
    """The nodes that the attributes of ``TreeEnsemble`` describe; as ``nodes_of_lists``."""
    roots = _integers(get("tree_roots"))
    feature = _integers(get("nodes_featureids"))
    mode = np.asarray(get("nodes_modes")).reshape(-1).astype(np.int64)
    splits = np.asarray(get("nodes_splits")).reshape(-1).astype(dtype)
    true, false = _integers(get("nodes_truenodeids")), _integers(get("nodes_falsenodeids"))
    true_leaf, false_leaf = _integers(get("nodes_trueleafs")), _integers(get("nodes_falseleafs"))
    count = len(feature)
    missing = _integers(get("nodes_missing_value_tracks_true") or [0] * count)
    lengths = {len(each) for each in (feature, mode, splits, true, false, true_leaf, false_leaf, missing)}
    target = _integers(get("leaf_targetids"))
    weight = np.asarray(get("leaf_weights")).reshape(-1).astype(dtype)
    leaves = len(target)
    if len(lengths) != 1 or not count or len(weight) != leaves:
        raise ImporterError(f"the lists nodes_* of a tree ensemble have different lengths: {sorted(lengths)}")
    if mode.min() < 0 or mode.max() > MEMBER:
        raise UnsupportedError(f"nodes of trees with the mode {int(mode.max())} are not imported")
    for numbers, is_leaf in ((true, true_leaf), (false, false_leaf), (roots, np.zeros_like(roots))):
        limit = np.where(is_leaf != 0, leaves, count)
        if ((numbers < 0) | (numbers >= limit)).any():
            raise ImporterError("a branch of a tree leads to a node that is not there")
    sets: dict[int, Array] = {}
    if (mode == MEMBER).any():
        given = get("membership_values")
        values = np.zeros(0) if given is None else np.asarray(given).reshape(-1)
        ends = np.flatnonzero(np.isnan(values))
        parts = [part[~np.isnan(part)].astype(dtype) for part in np.split(values, ends)]
        asked = np.flatnonzero(mode == MEMBER)
        if len(parts) < len(asked):
            raise ImporterError(f"{len(asked)} nodes ask for members of sets, and there are {len(parts)}")
        sets = {int(number): part for number, part in zip(asked, parts, strict=False)}
    # Leaves are nodes behind the inner ones.
    own = count + np.arange(leaves)
    nodes = Nodes(
        np.concatenate([mode, np.full(leaves, -1)]),
        np.concatenate([feature, np.zeros(leaves, np.int64)]),
        np.concatenate([splits, np.zeros(leaves, splits.dtype)]),
        np.concatenate([np.where(true_leaf != 0, count + true, true), own]),
        np.concatenate([np.where(false_leaf != 0, count + false, false), own]),
        np.concatenate([missing, np.zeros(leaves, np.int64)]),
        np.concatenate([np.full(count, -1), own - count]),
        roots,
        sets,
    )
    return nodes, own - count, target, weight


def _integers(given: Any) -> Array:
    return np.asarray([] if given is None else given).reshape(-1).astype(np.int64)


def packed_bits(forest: Forest) -> int | None:
    """How many low bits of a node's number its rank takes, if its column fits above them in 31 bits; else None."""
    bits = max(forest.always, 1).bit_length()
    return bits if bits + math.ceil(math.log2(max(len(forest.columns), 2))) <= 31 else None
