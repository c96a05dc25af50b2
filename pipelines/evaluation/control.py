"""Operations with regions, and calls: ``while``, ``if``, ``case``, functions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from hloforge.dialect.mlir import ir, stablehlo
from hloforge.pipelines.evaluation.plan import (
    Body,
    Flow,
    FlowRule,
    Planner,
    UnplannedError,
    dims,
    element,
    integers,
    move,
)
from hloforge.pipelines.evaluation.sorts import sort


def _call(planner: Planner, op: ir.Operation, inputs: list[int]) -> Flow:
    body = planner.function(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)

    def run(values: list[Any]) -> Sequence[int]:
        move(values, inputs, body.arguments)
        body.run(values)
        return body.results

    return Flow(run)


def _while(planner: Planner, op: ir.Operation, inputs: list[int]) -> Flow:
    condition, loop = (planner.body(region.blocks[0]) for region in op.regions)
    (goes_on,) = condition.results

    def run(values: list[Any]) -> Sequence[int]:
        move(values, inputs, condition.arguments)
        while True:
            condition.run(values)
            if not values[goes_on]:
                return condition.arguments
            move(values, condition.arguments, loop.arguments)
            loop.run(values)
            move(values, loop.results, condition.arguments)

    return Flow(run)


def _if(planner: Planner, op: ir.Operation, inputs: list[int]) -> Flow:
    taken, other = (planner.body(region.blocks[0]) for region in op.regions)
    (predicate,) = inputs

    def run(values: list[Any]) -> Sequence[int]:
        return _results(taken if values[predicate] else other, values)

    return Flow(run)


def _case(planner: Planner, op: ir.Operation, inputs: list[int]) -> Flow:
    branches = [planner.body(region.blocks[0]) for region in op.regions]
    (index,) = inputs

    def run(values: list[Any]) -> Sequence[int]:
        number = int(values[index])
        return _results(branches[number if 0 <= number < len(branches) else -1], values)

    return Flow(run)


def _results(body: Body, values: list[Any]) -> Sequence[int]:
    body.run(values)
    return body.results


# What may be in the computation of a reduction: in any order, all of these give one result.
_CHOICES = "and clamp compare constant maximum minimum not or return select xor"
_ORDERLESS = frozenset(f"stablehlo.{name}" for name in _CHOICES.split())
# And of integers.
_SUMS = frozenset({"stablehlo.add", "stablehlo.multiply"})
_COMBINERS = frozenset(f"stablehlo.{name}" for name in ("and", "maximum", "minimum", "or", "xor"))
# Each window is a step of some microseconds.
_MOST_WINDOWS = 1000


def _reduce(planner: Planner, op: ir.Operation, inputs: list[int]) -> Flow:
    """Halves at a time: the elements at even places with those at odd ones, as long as there are several."""
    block = op.regions[0].blocks[0]
    names = {inner.operation.name for inner in block.operations}
    if not (names <= _ORDERLESS or (names <= _ORDERLESS | _SUMS and element(op.operands[0]).is_integer)):
        raise UnplannedError(op.name)
    along = integers(op, "dimensions")
    sizes = dims(op.operands[0])
    kept = [d for d in range(len(sizes)) if d not in along]
    count = prod(sizes[d] for d in along)
    body = planner.body(block)
    arrays, starts = inputs[: len(inputs) // 2], inputs[len(inputs) // 2 :]

    def combined(values: list[Any], first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
        for number, value in zip(body.arguments, (*first, *second), strict=True):
            values[number] = value
        body.run(values)
        return [values[number] for number in body.results]

    def run(values: list[Any]) -> Sequence[int]:
        parts = [np.transpose(values[n], (*along, *kept)).reshape(count, *(sizes[d] for d in kept)) for n in arrays]
        while (left := len(parts[0])) > 1:
            even, odd = ([part[first : left - left % 2 : 2] for part in parts] for first in (0, 1))
            rest = [part[left - left % 2 :] for part in parts]
            parts = [np.concatenate(pair) for pair in zip(combined(values, even, odd), rest, strict=True)]
        whole = [np.broadcast_to(values[n], [sizes[d] for d in kept]) for n in starts]
        last = combined(values, whole, [part[0] for part in parts]) if count else whole
        for number, value in zip(body.results, last, strict=True):
            values[number] = value
        return body.results

    return Flow(run)


def _scatter(planner: Planner, op: ir.Operation, inputs: list[int]) -> Flow:
    """One window after the other; none that lies in part outside. Of several, those whose order does not matter."""
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    block = op.regions[0].blocks[0]
    names = {inner.operation.name for inner in block.operations}
    if len(inputs) != 3 or list(numbers.input_batching_dims):
        raise UnplannedError(op.name)
    operand, indices, updates = map(dims, op.operands)
    windowed = tuple(numbers.update_window_dims)
    places = [size for d, size in enumerate(updates) if d not in windowed]
    is_unique = "unique_indices" in op.attributes and ir.BoolAttr(op.attributes["unique_indices"]).value
    (*_, combiner) = sorted(names - {"stablehlo.return"}) or [""]
    sums = _SUMS if element(op.operands[0]).is_integer else frozenset()
    is_orderless = len(names) == 2 and combiner in _COMBINERS | sums
    if prod(places) > 1 and not (is_unique or is_orderless):
        raise UnplannedError(op.name)
    if prod(places) > _MOST_WINDOWS:
        raise UnplannedError(op.name)
    mapped = tuple(numbers.scattered_dims_to_operand_dims)
    kept = [d for d in range(len(operand)) if d not in numbers.inserted_window_dims]
    window = [1] * len(operand)
    for d, place in zip(kept, windowed, strict=True):
        window[d] = updates[place]
    vector = numbers.index_vector_dim
    body = planner.body(block)
    array, index, update = inputs

    def run(values: list[Any]) -> Sequence[int]:
        made = np.array(values[array])
        columns = np.moveaxis(values[index], vector, -1) if vector < len(indices) else values[index][..., None]
        rows = columns.reshape(prod(columns.shape[:-1]), len(mapped))
        parts = np.moveaxis(values[update], windowed, range(-len(windowed), 0)).reshape(
            len(rows), *(updates[d] for d in windowed)
        )
        for row, part in zip(rows.tolist(), parts, strict=True):
            starts = [0] * len(operand)
            for d, start in zip(mapped, row, strict=True):
                starts[d] = start
            bounds = list(zip(starts, window, operand, strict=True))
            if any(start < 0 or start + size > whole for start, size, whole in bounds):
                continue
            place = tuple(slice(start, start + size) for start, size, _ in bounds)
            values[body.arguments[0]], values[body.arguments[1]] = made[place], part.reshape(window)
            body.run(values)
            made[place] = values[body.results[0]]
        values[body.results[0]] = made
        return body.results

    return Flow(run)


FLOWS: dict[str, FlowRule] = {
    "func.call": _call,
    "stablehlo.case": _case,
    "stablehlo.if": _if,
    "stablehlo.reduce": _reduce,
    "stablehlo.scatter": _scatter,
    "stablehlo.sort": sort,
    "stablehlo.while": _while,
}
