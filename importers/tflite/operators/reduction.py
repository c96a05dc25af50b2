"""Sums, maxima and similar reductions along axes; cumulative sums; softmax and other normalizations."""

from __future__ import annotations

from collections.abc import Callable

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.values import Value
from hloforge.importers.tensors import axes_of, broadcast_to, greatest, least, mean, reduced, total
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.registry import operator


def _mean(x: Value, axes: list[int], keep: bool) -> Value:
    if x.element_type.is_float:
        return mean(x, axes, keep)
    count = 1
    for axis in axes:
        count *= x.dims[axis]
    sums = total(x, axes, keep)
    return ops.div(sums, full(sums, count))


_REDUCTIONS: dict[str, Callable[[Value, list[int], bool], Value]] = {
    "MEAN": _mean,
    "SUM": total,
    "REDUCE_PROD": lambda x, axes, keep: reduced(x, 1.0 if x.element_type.is_float else 1, ops.mul, axes, keep),
    "REDUCE_MAX": greatest,
    "REDUCE_MIN": least,
    "REDUCE_ANY": lambda x, axes, keep: reduced(x, False, ops.or_, axes, keep),
    "REDUCE_ALL": lambda x, axes, keep: reduced(x, True, ops.and_, axes, keep),
}


@operator(*_REDUCTIONS)
def reduce(node: Node) -> Value:
    x = node.real(0)
    axes = list(dict.fromkeys(axes_of(node.integers(1), x.rank)))
    return _REDUCTIONS[node.name](x, axes, bool(node.option("KeepDims")))


@operator("CUMSUM")
def running_sum(node: Node) -> Value:
    x = node.value(0)
    axis = node.axis(1, x.rank)
    size, backwards = x.dims[axis], bool(node.option("Reverse"))
    around = (0, size - 1) if backwards else (size - 1, 0)
    start = 0.0 if x.element_type.is_float else 0
    sums = ops.reduce_window(
        x,
        start,
        ops.add,
        [size if d == axis else 1 for d in range(x.rank)],
        padding=[around if d == axis else (0, 0) for d in range(x.rank)],
    )
    if not node.option("Exclusive"):
        return sums
    shift = [(0, 0, 0)] * x.rank
    shift[axis] = (-1, 1, 0) if backwards else (1, -1, 0)
    return ops.pad(sums, start, shift)


@operator("SOFTMAX")
def softmax(node: Node) -> Value:
    x = node.real(0)
    beta = float(node.option("Beta", 1.0))
    powers = ops.exp(_below_greatest(x if beta == 1.0 else x * beta))
    return powers / broadcast_to(total(powers, [x.rank - 1], True), x.dims)


@operator("LOG_SOFTMAX")
def log_softmax(node: Node) -> Value:
    rest = _below_greatest(node.real(0))
    return rest - broadcast_to(ops.log(total(ops.exp(rest), [rest.rank - 1], True)), rest.dims)


def _below_greatest(x: Value) -> Value:
    return x - broadcast_to(greatest(x, [x.rank - 1], True), x.dims)


@operator("L2_NORMALIZATION")
def unit_length(node: Node) -> Value:
    """Divided by the length along the last axis, which counts as 1e-6 at least."""
    x = node.real(0)
    length = ops.max(ops.sqrt(total(x * x, [x.rank - 1], True)), 1e-6)
    return x / broadcast_to(length, x.dims)


@operator("LOCAL_RESPONSE_NORMALIZATION")
def local_response(node: Node) -> Value:
    """Divided by a power of the squares around it along the last axis."""
    x, radius = node.value(0), int(node.option("Radius"))
    last = x.rank - 1
    sums = ops.reduce_window(
        x * x, 0.0, ops.add, [1] * last + [2 * radius + 1], padding=[(0, 0)] * last + [(radius, radius)]
    )
    return x * ops.pow(sums * float(node.option("Alpha")) + float(node.option("Bias")), -float(node.option("Beta")))
