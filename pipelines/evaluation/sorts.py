"""Small sorts: the place of an element is how many come before it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from hloforge.dialect.mlir import ir
from hloforge.pipelines.evaluation.plan import MOST, Flow, Planner, SpentError, UnplannedError, dims


def sort(planner: Planner, op: ir.Operation, inputs: list[int]) -> Flow:
    """A stable sort by any computation that is an order; each element is compared with each.

    A computation that is none, as ``a < b`` of numbers with NaN, gives no places: the run is given up.
    """
    if not ir.BoolAttr(op.attributes["is_stable"]).value:
        raise UnplannedError("compiled code may order equal elements otherwise")
    sizes, along = dims(op.operands[0]), ir.IntegerAttr(op.attributes["dimension"]).value
    count = sizes[along]
    rest = prod(sizes) // count if count else 0
    body = planner.body(op.regions[0].blocks[0])
    if count * count * rest * len(body.steps) > MOST:
        raise UnplannedError(op.name)

    def places(values: list[Any], arrays: Sequence[Any]) -> Any:
        """By rows of what is sorted: where each element goes."""
        for number, array in enumerate(arrays):
            values[body.arguments[2 * number]] = array[:, :, None]
            values[body.arguments[2 * number + 1]] = array[:, None, :]
        body.run(values)
        before = np.broadcast_to(values[body.results[0]], (rest, count, count))
        equal = ~(before | before.transpose(0, 2, 1))
        found = (before | (equal & np.triu(np.ones((count, count), np.bool_), 1))).sum(1)
        if (np.sort(found, 1) != np.arange(count)).any():
            raise SpentError
        return found

    def run(values: list[Any]) -> Sequence[int]:
        if not count or not rest:
            return inputs
        moved = [np.moveaxis(values[number], along, -1) for number in inputs]
        arrays = [array.reshape(rest, count) for array in moved]
        order = np.argsort(places(values, arrays), 1)
        for number, array, shape in zip(results, arrays, moved, strict=True):
            values[number] = np.moveaxis(np.take_along_axis(array, order, 1).reshape(shape.shape), -1, along)
        return results

    results = [planner.place() for _ in inputs]
    return Flow(run)
