"""Branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.errors import OperationError, UnsupportedError
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import TupleValue, Value
from hloforge.importers.needs import known_value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.onnx.registry import operator
from hloforge.importers.tensors import (
    axis_of,
    element_at,
    expand,
    fill,
    lift,
    put,
    window,
)

# Loops of at most so many iterations become straight code: what is known stays known in each iteration.
_UNROLLED = 16
# Others do if they cannot be loops, and have at most so many nodes in all turns.
_MOST_UNROLLED = 8192


@operator("If")
def branch(node: Node) -> Any:
    """A known condition chooses while the model is imported; so does one whose branches give different sizes."""
    condition = node.tensor(0)
    branches = [node.attribute("then_branch"), node.attribute("else_branch")]
    if isinstance(condition, np.ndarray):
        return Outputs(node.scope.run(branches[0 if condition.reshape(-1)[0] else 1]))
    pred = ops.reshape(condition, [])

    def traced(graph: Any) -> Any:
        return lambda _: tuple(_lifted(tensor, condition) for tensor in node.scope.run(graph))

    nothing = TupleValue([])
    try:
        result = ops.conditional(pred, nothing, traced(branches[0]), nothing, traced(branches[1]))
    except OperationError:
        known_value(condition)
        raise
    assert isinstance(result, TupleValue)
    return Outputs(result.elements)


def _lifted(tensor: Any, condition: Any) -> Value:
    if not isinstance(tensor, Value | np.ndarray):
        # A sequence or an absent optional is no value of a program.
        known_value(condition)
    return lift(tensor)


@operator("Loop")
def loop(node: Node) -> Any:
    """Up to ``M`` iterations while a condition holds; what each iteration yields besides its state is stacked."""
    body = node.attribute("body")
    state = node.inputs[2:]
    condition = node.tensor(1) if node.has(1) else np.asarray(True)
    stacked = len(body.output) - 1 - len(state)
    trips = node.tensor(0) if node.has(0) else None
    if stacked and trips is not None:
        trips = node.known(0)
    turns = int(trips.reshape(-1)[0]) if isinstance(trips, np.ndarray) else None
    if turns is not None and (turns <= _UNROLLED or any(isinstance(entry, list) for entry in state)):
        outputs = _unrolled(node, body, turns, condition, state, stacked)
        if outputs is not None:
            return Outputs(outputs)
    if stacked:
        # How many iterations a loop makes decides the size of what it stacks.
        if trips is None:
            known_value(condition)
        condition = known_value(condition)
    before = _last_operation()
    try:
        return Outputs(_while(node, body, trips, condition, [lift(entry) for entry in state], stacked))
    except (OperationError, UnsupportedError):
        # Sizes may follow the turn, or state may grow: as straight code they are known.
        if turns is None or turns * len(body.node) > _MOST_UNROLLED:
            raise
        _erase_after(before)
        outputs = _unrolled(node, body, turns, condition, state, stacked)
        if outputs is None:
            raise
        return Outputs(outputs)


def _last_operation() -> Any:
    """The last operation of the block that is being written; None if it has none."""
    operations = list(ir.InsertionPoint.current.block.operations)
    return operations[-1].operation if operations else None


def _erase_after(last: Any) -> None:
    """Take back what was written after an operation."""
    for op in reversed(list(ir.InsertionPoint.current.block.operations)):
        if last is not None and op.operation == last:
            return
        op.operation.erase()


def _unrolled(
    node: Node, body: Any, trips: int, condition: Any, state: Sequence[Any], stacked: int
) -> list[Any] | None:
    """The outputs of an unrolled loop; None if a condition is known at run time only, which nothing forbids."""
    rows: list[list[Any]] = [[] for _ in range(stacked)]
    state = list(state)
    for turn in range(trips):
        if isinstance(condition, Value):
            if not stacked:
                return None
            condition = known_value(condition)
        if not condition.reshape(-1)[0]:
            break
        condition, *results = node.scope.run(body, [np.asarray(turn, np.int64), condition, *state])
        state = results[: len(state)]
        for row, element in zip(rows, results[len(state) :], strict=True):
            row.append(element)
    return [*state, *(_stack(row, body, number + 1 + len(state)) for number, row in enumerate(rows))]


def _stack(row: list[Any], body: Any, number: int) -> Any:
    if not row:
        from hloforge.importers.onnx.node import element_of

        kind = body.output[number].type.tensor_type
        sizes = [d.dim_value for d in kind.shape.dim]
        return np.zeros([0, *sizes], element_of(kind.elem_type).dtype)
    if all(isinstance(entry, np.ndarray) for entry in row):
        return np.stack(row)
    parts = [expand(lift(entry), [0]) for entry in row]
    return ops.concat_in_dim(parts, 0) if len(parts) > 1 else parts[0]


def _while(node: Node, body: Any, trips: Any, condition: Any, state: list[Value], stacked: int) -> list[Value]:
    most = int(trips.reshape(-1)[0]) - 1 if isinstance(trips, np.ndarray) else None
    count = 0 if not stacked else int(np.asarray(trips).reshape(-1)[0])
    buffers = _buffers(node, body, state, stacked, count)
    limit = ops.reshape(lift(trips), []) if trips is not None else None
    going = ops.reshape(lift(condition), [])

    def holds(turn: Value, again: Value, *_: Value) -> Value:
        return again & (turn < limit) if limit is not None else again

    def run(turn: Value, again: Value, *values: Value) -> list[Value]:
        carried, rows = values[: len(state)], values[len(state) :]
        if most is not None:
            node.scope.importing.ranges[turn.ir] = (0, most)
        again_, *results = node.scope.run(body, [turn, again, *carried])
        if stacked and not (isinstance(again_, np.ndarray) and again_.reshape(-1)[0]) and again_ is not again:
            known_value(again_)
        fresh = [put(rows[number], lift(element), turn) for number, element in enumerate(results[len(state) :])]
        return [turn + 1, ops.reshape(lift(again_), []), *map(lift, results[: len(state)]), *fresh]

    turns = fill([], 0, "s64")
    result = ops.while_(holds, run, [turns, going, *state, *buffers])
    assert isinstance(result, TupleValue)
    return list(result.elements[2:])


def _buffers(node: Node, body: Any, state: list[Value], stacked: int, count: int) -> list[Value]:
    """Where a loop puts what it stacks; the sizes are those of a first iteration, which is traced for them alone."""
    if not stacked:
        return []
    probe = node.scope.run(body, [np.asarray(0, np.int64), np.asarray(True), *state])
    return [fill([count, *lift(entry).dims], 0, lift(entry).element_type) for entry in probe[1 + len(state) :]]


@operator("Scan", since=9)
def scan(node: Node) -> Any:
    """A loop over the slices of arrays along an axis."""
    body = node.attribute("body")
    arrays = int(node.attribute("num_scan_inputs"))
    values = node.values()
    state, scanned = values[: len(values) - arrays], values[len(values) - arrays :]
    results = len(body.output) - len(state)
    axes = [
        axis_of(axis, x.rank)
        for axis, x in zip(node.attribute("scan_input_axes") or [0] * arrays, scanned, strict=True)
    ]
    backwards = node.attribute("scan_input_directions") or [0] * arrays
    scanned = [ops.rev(x, [axis]) if turn else x for x, axis, turn in zip(scanned, axes, backwards, strict=True)]
    carried, rows = _scanned(node, body, state, scanned, axes)
    out_axes = node.attribute("scan_output_axes") or [0] * results
    out_backwards = node.attribute("scan_output_directions") or [0] * results
    moved = []
    for row, axis, turn in zip(rows, out_axes, out_backwards, strict=True):
        ordered = ops.rev(row, [0]) if turn else row
        place = axis_of(axis, row.rank)
        order = [*range(1, place + 1), 0, *range(place + 1, row.rank)]
        moved.append(ops.transpose(ordered, order) if place else ordered)
    return Outputs([*carried, *moved])


def _scanned(
    node: Node, body: Any, state: list[Value], scanned: list[Value], axes: list[int]
) -> tuple[list[Value], list[Value]]:
    """The last state, and what each iteration yields, stacked along the first dimension."""
    length = scanned[0].dims[axes[0]]
    first = [element_at(x, axis, fill([], 0, "s32")) for x, axis in zip(scanned, axes, strict=True)]
    probe = [lift(entry) for entry in node.scope.run(body, [*state, *first])[len(state) :]]
    buffers = [fill([length, *entry.dims], 0, entry.element_type) for entry in probe]

    def run(turn: Value, *values: Value) -> list[Value]:
        carried, rows = values[: len(state)], values[len(state) :]
        slices = [element_at(x, axis, turn) for x, axis in zip(scanned, axes, strict=True)]
        results = [lift(entry) for entry in node.scope.run(body, [*carried, *slices])]
        fresh = [put(row, entry, turn) for row, entry in zip(rows, results[len(state) :], strict=True)]
        return [turn + 1, *results[: len(state)], *fresh]

    result = ops.while_(lambda turn, *_: turn < length, run, [fill([], 0, "s32"), *state, *buffers])
    assert isinstance(result, TupleValue)
    return list(result.elements[1 : 1 + len(state)]), list(result.elements[1 + len(state) :])


@operator("Scan", since=8)
def scan_of_batches(node: Node) -> Any:
    """Version 8: a batch dimension in front, scanned along the second; lengths of sequences are not imported."""
    body = node.attribute("body")
    if node.has(0):
        known_lengths = node.known(0)
        if len(set(known_lengths.tolist())) > 1:
            raise OperationError("Scan of sequences of different lengths is not imported")
    arrays = int(node.attribute("num_scan_inputs"))
    values = [node.value(number) for number in range(1, len(node.inputs))]
    batch = values[0].dims[0]
    outputs: list[list[Value]] = []
    for number in range(batch):
        each = [ops.reshape(window(x, 0, number, number + 1), x.dims[1:]) for x in values]
        state, scanned = each[: len(each) - arrays], each[len(each) - arrays :]
        carried, rows = _scanned(node, body, state, scanned, [0] * arrays)
        outputs.append([*carried, *rows])
    return Outputs([ops.concat_in_dim([expand(x, [0]) for x in column], 0) for column in zip(*outputs, strict=True)])
