"""Linear models and support vector machines (``ai.onnx.ml``), and what classifiers share: labels, scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.errors import ImporterError, UnsupportedError
from hloforge.dialect.values import Value, leaves
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.onnx.texts import Table, Text, strings_of
from hloforge.importers.tensors import (
    Array,
    broadcast_to,
    cast,
    expand,
    fill,
    greatest,
    matmul,
    numbers,
    total,
    window,
)

ML = "ai.onnx.ml"
_PROBIT_SLOPE = 0.147
# What iterates to probabilities of classes that agree with those of pairs ends here, as in LIBSVM.
_MOST_ROUNDS, _TOLERANCE = 100, 0.005


@dataclass
class Labels:
    """The names of classes.

    Attributes:
        names: integers or strings.
    """

    names: Array

    def __len__(self) -> int:
        return len(self.names)

    def at(self, place: Value) -> Any:
        """The names at these places: s64, or numbers in the table of all names."""
        if self.names.dtype.kind != "i":
            return Text(cast(place, "s64"), Table(strings_of(self.names)))
        if (self.names == np.arange(len(self.names))).all():
            return cast(place, "s64")
        dimensions = ops.GatherDimensionNumbers([], [0], [0], place.rank)
        return ops.gather(constant(self.names), ops.reshape(place, [*place.dims, 1]), dimensions, [1])

    def best(self, scores: Value) -> Any:
        """The name of the class with the highest score in each row, the first one of equal ones."""
        return self.at(first_greatest(scores))

    def alone(self, is_it: Value) -> Any:
        """1 or 0 where there is only one class: ONNX Runtime's answer, because it has no name for the other one."""
        if self.names.dtype.kind != "i":
            raise UnsupportedError("a classifier of one class, whose name is a string, has no name for the other class")
        return cast(is_it, "s64")


def first_greatest(scores: Value) -> Value:
    """Where in each row the first of the greatest numbers is; s32."""
    places = numbers(scores.dims, 1)
    best = broadcast_to(greatest(scores, [1], True), scores.dims)
    return ops.reduce(ops.select(scores.eq(best), places, scores.dims[1] - 1), scores.dims[1] - 1, ops.min, [1])


def labels_of(node: Node, integers: str) -> Labels:
    """The names of a classifier's classes. Raises ImporterError if it has none.

    Args:
        integers: the attribute that has them if they are integers.
    """
    texts, given = node.attribute("classlabels_strings"), node.attribute(integers)
    if texts:
        return Labels(np.array(strings_of(texts), object))
    if given is None or not len(given):
        raise ImporterError("the classifier does not name its classes")
    return Labels(np.asarray(given).astype(np.int64))


def rows_of(x: Value) -> tuple[Value, Any]:
    """Rows of features in the element type that a model of ``ai.onnx.ml`` computes in, and numpy's name of it."""
    rows = expand(x, [0]) if x.rank == 1 else x
    if rows.rank != 2:
        raise ImporterError(f"features have {x.rank} dimensions, and not 1 or 2")
    is_double = str(x.element_type) == "f64"
    return cast(rows, "f64" if is_double else "f32"), np.float64 if is_double else np.float32


def post_transform(node: Node) -> str:
    """The name of the function of scores. Raises UnsupportedError for an unknown one."""
    names = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    given = node.attribute("post_transform", "NONE")
    name = names[given] if isinstance(given, int) and 0 <= given < len(names) else str(given)
    if name not in names:
        raise UnsupportedError(f"the post transform {name!r} is not imported")
    return name


def transformed(scores: Value, name: str) -> Value:
    """A function of scores, ``(rows, classes)``."""
    match name:
        case "SOFTMAX":
            raised = ops.exp(scores - broadcast_to(greatest(scores, [1], True), scores.dims))
            return raised / broadcast_to(total(raised, [1], True), raised.dims)
        case "SOFTMAX_ZERO":
            return _softmax_zero(scores)
        case "LOGISTIC":
            return ops.logistic(scores)
        case "PROBIT":
            return math.sqrt(2) * _inverse_erf(2.0 * scores - 1.0)
    return scores


def _softmax_zero(scores: Value) -> Value:
    """Scores of 0 stay as small as they are, and count for nothing in the sum."""
    highest = broadcast_to(greatest(scores, [1], True), scores.dims)
    is_used = ops.abs(scores) > 1e-7
    zero = fill(scores.dims, 0.0, scores.element_type)
    raised = ops.select(is_used, ops.exp(scores - highest), zero)
    small = scores * ops.exp(-highest)
    return ops.select(is_used, raised, small) / broadcast_to(total(raised, [1], True), scores.dims)


def _inverse_erf(x: Value) -> Value:
    """Winitzki's approximation, which ONNX Runtime and ONNX's reference use."""
    logarithm = ops.log((1.0 - x) * (1.0 + x))
    first = 2.0 / (math.pi * _PROBIT_SLOPE) + 0.5 * logarithm
    root = ops.sqrt(ops.sqrt(first * first - logarithm / _PROBIT_SLOPE) - first)
    return ops.select(x < 0.0, -root, root)


def _floats(node: Node, name: str) -> Array:
    given = node.attribute(name)
    return np.asarray([] if given is None else given).reshape(-1).astype(np.float32)


# Linear models ------------------------------------------------------------------------------------------------------


def _linear(node: Node, x: Value, targets: int) -> Value:
    """``x @ coefficients.T + intercepts`` in f32."""
    rows = cast(expand(x, [0]) if x.rank == 1 else x, "f32")
    coefficients = _floats(node, "coefficients").reshape(targets, -1)
    product = matmul(rows, constant(np.ascontiguousarray(coefficients.T)))
    intercepts = _floats(node, "intercepts")
    if len(intercepts) == targets:
        product = product + broadcast_to(constant(intercepts), product.dims)
    return product


@operator("LinearRegressor", domain=ML)
def linear_regressor(node: Node) -> Value:
    return transformed(_linear(node, node.value(0), int(node.attribute("targets", 1))), post_transform(node))


@operator("LinearClassifier", domain=ML)
def linear_classifier(node: Node) -> Any:
    """The class of each row and the scores of all. One row of coefficients for two classes is the second one's."""
    labels = labels_of(node, "classlabels_ints")
    x, transform = node.value(0), post_transform(node)
    features = x.dims[-1]
    targets = len(_floats(node, "coefficients")) // features
    scores = _linear(node, x, targets)
    if targets > 1:
        return Outputs([labels.best(scores), transformed(scores, transform)])
    is_it = ops.reshape(scores > 0.0, scores.dims[:1])
    if len(labels) != 2:
        return Outputs([labels.alone(is_it), transformed(scores, transform) if transform == "PROBIT" else scores])
    label = labels.at(cast(is_it, "s32"))
    if transform == "NONE":
        return Outputs([label, ops.concat_in_dim([-scores, scores], 1)])
    if transform == "LOGISTIC":
        return Outputs([label, ops.logistic(ops.concat_in_dim([-scores, scores], 1))])
    return Outputs([label, transformed(ops.concat_in_dim([-scores, scores], 1), transform)])


# Support vector machines --------------------------------------------------------------------------------------------


def _kernel(node: Node, x: Value, vectors: Array, *, linear: bool = False) -> Value:
    """The kernel of each row with each vector, ``(rows, vectors)``."""
    kind = "LINEAR" if linear else str(node.attribute("kernel_type", "LINEAR"))
    gamma, offset, degree = ([float(number) for number in node.attribute("kernel_params") or ()] + [0.0] * 3)[:3]
    product = matmul(x, constant(np.ascontiguousarray(vectors.T)))
    match kind:
        case "LINEAR":
            return product
        case "POLY":
            return ops.pow(gamma * product + offset, fill(product.dims, degree, product.element_type))
        case "SIGMOID":
            return ops.tanh(gamma * product + offset)
        case "RBF":
            return ops.exp(-gamma * _distances(x, vectors))
    raise UnsupportedError(f"the kernel {kind!r} of a support vector machine is not imported")


def _distances(x: Value, vectors: Array) -> Value:
    """Squares of the distances, by differences: the sum of squares less twice the product would cancel."""
    shape = [x.dims[0], *vectors.shape]
    apart = ops.broadcast_in_dim(x, shape, [0, 2]) - ops.broadcast_in_dim(constant(vectors), shape, [1, 2])
    return total(apart * apart, [2])


@operator("SVMRegressor", domain=ML)
def svm_regressor(node: Node) -> Value:
    x = cast(node.value(0), "f32")
    rows = expand(x, [0]) if x.rank == 1 else x
    count = int(node.attribute("n_supports", 0))
    coefficients, rho = _floats(node, "coefficients"), _floats(node, "rho")
    if count:
        kernel = _kernel(node, rows, _floats(node, "support_vectors").reshape(count, -1))
        result = matmul(kernel, constant(coefficients.reshape(-1, 1)))
    else:
        result = _kernel(node, rows, coefficients.reshape(1, -1), linear=True)
    result = result + float(rho[0])
    if node.attribute("one_class", 0):
        one = fill(result.dims, 1.0, result.element_type)
        return ops.select(result > 0.0, one, -one)
    return transformed(result, post_transform(node)) if result.dims[1] > 1 else result


@operator("SVMClassifier", domain=ML)
def svm_classifier(node: Node) -> Any:
    labels = labels_of(node, "classlabels_ints")
    x = cast(node.value(0), "f32")
    rows = expand(x, [0]) if x.rank == 1 else x
    classes, transform = len(labels), post_transform(node)
    coefficients, rho = _floats(node, "coefficients"), _floats(node, "rho")
    per_class = np.asarray(node.attribute("vectors_per_class") or [], np.int64)
    if not per_class.sum():
        scores = _kernel(node, rows, coefficients.reshape(classes, -1), linear=True) + float(rho[0])
        label = _of_greatest(labels, scores, bool((coefficients >= 0).all()))
        return Outputs([label, transformed(scores, transform)])
    vectors = int(per_class.sum())
    kernel = _kernel(node, rows, _floats(node, "support_vectors").reshape(vectors, -1))
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    scores = matmul(kernel, constant(_of_pairs(coefficients.reshape(-1, vectors), per_class, pairs)))
    scores = scores + broadcast_to(constant(rho[: len(pairs)]), scores.dims)
    votes = _votes(scores, pairs, classes)
    prob_a, prob_b = _floats(node, "prob_a"), _floats(node, "prob_b")
    label = labels.best(votes)
    if len(prob_a):
        chances = _probabilities(scores, prob_a, prob_b, pairs, classes)
        return Outputs([label, transformed(chances, transform)])
    if classes > 2:
        return Outputs([label, transformed(scores, transform)])
    # One score for two classes.
    if transform == "PROBIT":
        raise UnsupportedError("the post transform PROBIT of the one score of two classes is not imported")
    return Outputs([label, ops.concat_in_dim([-scores if transform == "NONE" else 1.0 - scores, scores], 1)])


def _of_greatest(labels: Labels, scores: Value, is_positive: bool) -> Any:
    """The class of linear scores; with two classes the greatest score has to be high enough for the second one."""
    place = first_greatest(scores)
    if len(labels) != 2:
        return labels.best(scores)
    highest = greatest(scores, [1])
    is_second = highest >= 0.5 if is_positive else highest > 0.0
    return labels.at(ops.select(is_second, fill(place.dims, 1, "s32"), place))


def _of_pairs(coefficients: Array, per_class: Array, pairs: list[tuple[int, int]]) -> Array:
    """The weight of each support vector in the decision between two classes: ``(vectors, pairs)``."""
    ends = np.cumsum(per_class)
    weights = np.zeros((int(ends[-1]), len(pairs)), np.float32)
    for number, (i, j) in enumerate(pairs):
        for own, other in ((i, j - 1), (j, i)):
            part = slice(int(ends[own] - per_class[own]), int(ends[own]))
            weights[part, number] = coefficients[other, part]
    return weights


def _votes(scores: Value, pairs: list[tuple[int, int]], classes: int) -> Value:
    """How many decisions each class has won: ``(rows, classes)``."""
    won, lost = np.zeros((len(pairs), classes), np.float32), np.zeros((len(pairs), classes), np.float32)
    for number, (i, j) in enumerate(pairs):
        won[number, i], lost[number, j] = 1, 1
    is_first = cast(scores > 0.0, "f32")
    return matmul(is_first, constant(won)) + matmul(1.0 - is_first, constant(lost))


def _probabilities(scores: Value, a: Array, b: Array, pairs: list[tuple[int, int]], classes: int) -> Value:
    """Probabilities of classes of those of pairs: Wu, Lin and Weng (2004), second method, as in LIBSVM."""
    chance = 1.0 - ops.logistic(
        scores * broadcast_to(constant(a[: len(pairs)]), scores.dims)
        + broadcast_to(constant(b[: len(pairs)]), scores.dims)
    )
    low, high = (fill(chance.dims, bound, chance.element_type) for bound in (1e-7, 1 - 1e-7))
    chance = ops.clamp(low, chance, high)
    rows = scores.dims[0]
    zero = fill([rows, 1], 0.0, chance.element_type)
    column = {pair: window(chance, 1, number, number + 1) for number, pair in enumerate(pairs)}

    def beats(i: int, j: int) -> Value:
        if i == j:
            return zero
        return column[i, j] if i < j else 1.0 - column[j, i]

    # r[row, i, j] is the chance of i against j.
    r = ops.reshape(ops.concat_in_dim([beats(i, j) for i in range(classes) for j in range(classes)], 1),
                    [rows, classes, classes])  # fmt: skip
    turned = ops.transpose(r, [0, 2, 1])
    is_diagonal = numbers(r.dims, 1).eq(numbers(r.dims, 2))
    own = ops.broadcast_in_dim(total(turned * turned, [2]), r.dims, [0, 1])
    q = ops.select(is_diagonal, own, -turned * r)
    diagonal = total(turned * turned, [2])
    start = fill([rows, classes], 1.0 / classes, chance.element_type)

    def products(p: Value) -> tuple[Value, Value, Value]:
        found = total(q * ops.broadcast_in_dim(p, q.dims, [0, 2]), [2])
        whole = total(p * found, [1], True)
        apart = greatest(ops.abs(found - broadcast_to(whole, found.dims)), [1], True)
        return found, whole, apart >= _TOLERANCE / classes

    def improved(count: Value, p: Value) -> tuple[Value, Value]:
        found, whole, is_open = products(p)
        new = p
        for i in range(classes):
            weight = window(diagonal, 1, i, i + 1)
            change = (whole - window(found, 1, i, i + 1)) / weight
            scaled = 1.0 + change
            whole = (whole + change * (change * weight + 2.0 * window(found, 1, i, i + 1))) / scaled / scaled
            row = ops.reshape(window(q, 1, i, i + 1), [rows, classes])
            found = (found + broadcast_to(change, found.dims) * row) / broadcast_to(scaled, found.dims)
            at = fill([rows, classes], np.eye(classes, dtype=np.float32)[i], chance.element_type)
            new = (new + at * broadcast_to(change, new.dims)) / broadcast_to(scaled, new.dims)
        return count + 1, ops.select(broadcast_to(is_open, p.dims), new, p)

    def goes_on(count: Value, p: Value) -> Value:
        is_open = ops.reduce(products(p)[2], False, ops.or_, [0, 1])
        return (count < _MOST_ROUNDS) & is_open

    return leaves(ops.while_(goes_on, improved, [fill([], 0, "s32"), start]))[1]
