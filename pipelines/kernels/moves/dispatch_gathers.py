"""``dispatch-gathers``: gathers and scatters of whole rows as loops over rows in a dispatch of their own.

Before, indices being in bounds (``clamp-gather-indices``, ``decompose-scatter``)::

    %g = "stablehlo.gather"(%table, %rows) {rows of [p, w]}
    %s = "stablehlo.scatter"(%table, %rows, select(%good, %updates, -0.0)) ({... add ...}) {rows of [p, w]}

After::

    %g = dispatch { for i: g[i] = table[rows[i]] }                            some rows a workgroup
    %s = dispatch { for i: if good[i]: table[rows[i]] += updates[i] }         in the table's place

IREE 3.13 computes the position of each element again where a row is copied, updates rows element by element, and copies
what it fuses with a scatter onto the stack, which is too small for 100,000 updates. Here each row is a few vectors.
Rows out of bounds are left out, which saves a pass over the updates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.marks import IN_BOUNDS
from hloforge.dialect.mlir import AnyOp, arith, in_context, ir, stablehlo
from hloforge.dialect.operations import is_made_by, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.scatter_combiner import Combiner
from hloforge.pipelines.framework.builders import empty, index, read_vector, stands_in_dispatch, write_vector
from hloforge.pipelines.framework.facts import NORMALIZED, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.kernels.lang import loops as code

# Rows that are on their way from memory at once.
_AT_ONCE = 4
_COPIED = frozenset(("bf16", "f16", "f32", "f64", "s8", "s16", "s32", "s64"))
_COMBINED = frozenset(("f32", "f64", "s32", "s64"))
# The operations that represent a computation, on floats and on signed integers.
_ARITHMETIC = {
    "add": (arith.addf, arith.addi),
    "multiply": (arith.mulf, arith.muli),
    "maximum": (arith.maximumf, arith.maxsi),
    "minimum": (arith.minimumf, arith.minsi),
}


@register
@dataclass(frozen=True)
class DispatchGathers(MachinePass):
    """Make dispatches of large gathers and scatters of rows; they are in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "dispatch-gathers"
    targets: ClassVar[frozenset[str]] = CPU
    requires: ClassVar[Facts] = NORMALIZED | frozenset({Fact.SAFE_GATHERS, Fact.SAFE_SCATTERS, Fact.UPDATES_DECIDED})
    # A scatter keeps the array that it was given, in place or a copy; a gather reads where it did.
    breaks: ClassVar[Facts] = frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.gather", "stablehlo.scatter"}):
                if not _is_apart(op):
                    continue
                rewrite = _gathered if op.name == "stablehlo.gather" else _scattered
                with ir.InsertionPoint(op), op.location:
                    result = rewrite(op, self.machine)
                    if result is not None:
                        replace(op, [result])


def _is_apart(op: AnyOp) -> bool:
    """Whether the operation is in bounds, is in no dispatch, and its arrays have known sizes."""
    values = (*op.operands, *op.results)
    is_known = IN_BOUNDS in op.attributes and not stands_in_dispatch(op)
    return is_known and all(Value(value).shape.is_static for value in values)


def _gathered(op: AnyOp, machine: Machine) -> Value | None:
    """gather of rows -> a dispatch; None for other gathers and small ones."""
    table, indices, result = Value(op.operands[0]), Value(op.operands[1]), Value(op.results[0])
    if result.shape.element_count < machine.dispatch_elements or not _takes_rows(op, table, indices, result):
        return None
    if table.element_type.name not in _COPIED or indices.element_type.name not in ("s32", "s64"):
        return None
    count = indices.shape.element_count
    width = result.shape.element_count // count
    places = _flat(_unclamped(indices, table.dims[0] - 1), 1)
    made = _gather(_flat(table, width), places, count, width, machine)
    return ops.reshape(Value(made), result.dims)


def _unclamped(indices: Value, last: int) -> Value:
    """What was clamped to the positions of a table, as the dispatch does itself: one dispatch less."""
    if not _is_by(indices.ir, "stablehlo.clamp"):
        return indices
    low, value, high = indices.ir.owner.operation.operands
    bounds = [(low, 0), (high, last)]
    is_whole = all(
        _is_by(bound, "stablehlo.constant") and _is_filled(bound.owner.operation.attributes["value"], number)
        for bound, number in bounds
    )
    return Value(value) if is_whole else indices


def _takes_rows(op: Any, table: Value, indices: Value, result: Value) -> bool:
    """Whether each index names a position of the table's first dimension, whose elements are a row of the result."""
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    leading = result.rank - table.rank + 1
    return (
        [int(size) for size in op.attributes["slice_sizes"]] == [1, *table.dims[1:]]
        and not list(numbers.operand_batching_dims)
        and list(numbers.collapsed_slice_dims) == list(numbers.start_index_map) == [0]
        and list(numbers.offset_dims) == list(range(leading, result.rank))
        and numbers.index_vector_dim >= leading
    )


def _flat(array: Value, width: int) -> Any:
    """The array as ``[n, width]``."""
    return ops.reshape(array, [array.shape.element_count // width, width]).ir


def _gather(table: Any, indices: Any, count: int, width: int, machine: Machine) -> Any:
    element = table.type.element_type
    most = max(1, machine.group_elements // width)
    group = max(divisor for divisor in range(1, min(count, most) + 1) if count % divisor == 0)
    whole = ir.RankedTensorType.get([count, width], element)
    last = int(table.type.shape[0]) - 1

    def run(places: Sequence[Any], sources: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
        first = code.combine(arith.muli, places[0], group)
        rows = code.load(sources[1], ir.RankedTensorType.get([group, 1], indices.type.element_type), [first, 0])
        source = code.load(sources[0], table.type, [0, 0])

        def copy(at: Any, count: int, into: Any) -> list[Any]:
            places = [code.combine(arith.addi, at, number) for number in range(count)]
            pairs = [(place, row(place)) for place in places]

            def part(column: Any, length: int, into: Any) -> Any:
                for place, at in pairs:
                    into = write_vector(read_vector(source, [at, column], length), into, [place, column])
                return into

            return _along(into, width, part, machine.line_bytes)

        def row(place: Any) -> Any:
            inside = code.combine(arith.minsi, code.combine(arith.maxsi, code.read(rows, place, index(0)), 0), last)
            return code.cast(arith.index_cast, inside, ir.IndexType.get())

        taken = empty(ir.RankedTensorType.get([group, width], element))
        code.store(code.in_steps(group, _AT_ONCE, [taken], copy)[0], targets[0], [first, 0])

    # The size of the table says nothing of the time.
    work = machine.element_work * count * width
    return code.workgroups([count // group], [table, indices], (), [whole], run, work=work)[0]


def _along(array: Any, stop: Any, body: Callable[[Any, int, Any], Any], line_bytes: int) -> list[Any]:
    """``for column in range(0, stop, length): array = body(column, length, array)``; ``stop`` is 0 or the row's length.

    The length of a step is that of the longest vector, a line at most, that divides a row.
    """
    width, bits = int(array.type.shape[1]), array.type.element_type.width
    length = gcd(width, line_bytes * 8 // bits)
    return code.for_each(stop, [array], lambda column, into: [body(column, length, into)], step=length)


def _scattered(op: AnyOp, machine: Machine) -> Value | None:
    """scatter of rows by one arithmetic operation -> a dispatch in the operand's place; None for others."""
    if len(op.operands) != 3:
        return None
    table, indices, updates = map(Value, op.operands)
    combiner = Combiner(op.regions[0])
    make = _arithmetic(combiner, table)
    count, width = updates.dims[0], updates.shape.element_count // max(1, updates.dims[0])
    if make is None or count * width < machine.dispatch_elements or indices.element_type.name not in ("s32", "s64"):
        return None
    rows = ops.reshape(indices, [count, 1])
    found = _conditional(updates, combiner.identity(0))
    if found is not None:
        good, updates = found
        rows = ops.select(ops.reshape(good, [count, 1]), rows, full(rows, -1))
    made = _scatter(_flat(table, width), rows.ir, _flat(updates, width), make, machine.line_bytes)
    return ops.reshape(Value(made), table.dims)


# From old and new vectors to what is written.
_Make = Callable[[Any, Any], Any]


def _arithmetic(combiner: Combiner, table: Value) -> _Make | None:
    if table.element_type.name not in _COMBINED:
        return None
    if combiner.is_overwrite(0):
        return lambda old, new: new
    if combiner.identity(0) is None:
        return None
    builders = _ARITHMETIC.get(combiner.returned[0].owner.operation.name.removeprefix("stablehlo."))
    return builders[table.element_type.is_integer] if builders else None


def _conditional(updates: Value, identity: Any) -> tuple[Value, Value] | None:
    """The condition ``[n]`` and the updates of ``select(condition, updates, identity)``; None if it is no such."""
    value = _unshaped(updates.ir)
    if identity is None or not _is_by(value, "stablehlo.select"):
        return None
    condition, chosen, other = value.owner.operation.operands
    if not _is_by(other, "stablehlo.constant") or not _is_filled(other.owner.operation.attributes["value"], identity):
        return None
    count = updates.dims[0]
    if _is_by(condition, "stablehlo.broadcast_in_dim"):
        spread = condition.owner.operation
        condition = spread.operands[0]
        if [int(d) for d in spread.attributes["broadcast_dimensions"]] != [0]:
            return None
    if Value(condition).dims != (count,) or Value(chosen).dims[0] != count:
        return None
    return Value(condition), Value(chosen)


def _unshaped(value: Any) -> Any:
    while _is_by(value, "stablehlo.reshape"):
        value = value.owner.operation.operands[0]
    return value


def _is_by(value: Any, name: str) -> bool:
    return is_made_by(value, name)


def _is_filled(dense: Any, number: Any) -> bool:
    """Whether all elements of a constant are this number, a zero with its sign."""
    if not dense.is_splat:
        return False
    value = dense.get_splat_value().value
    return bool(value == number and np.signbit(value) == np.signbit(number))


def _scatter(table: Any, rows: Any, updates: Any, make: _Make, line_bytes: int) -> Any:
    """Combine ``updates[i]`` into ``table[rows[i]]`` in order, where the row is not negative: ``[n, w]``."""
    count, width = map(int, updates.type.shape)

    def run(table: Any, rows: Any, updates: Any) -> Any:
        def update(at: Any, into: Any) -> list[Any]:
            row = code.cast(arith.index_cast, code.read(rows, at, index(0)), ir.IndexType.get())
            stop = code.choose(code.compare("slt", row, 0), index(0), index(width))
            return _along(into, stop, lambda column, length, into: part(row, at, column, length, into), line_bytes)

        def part(row: Any, at: Any, column: Any, length: int, into: Any) -> Any:
            old, new = read_vector(into, [row, column], length), read_vector(updates, [at, column], length)
            return write_vector(make(old, new), into, [row, column])

        return code.for_each(count, [table], update)[0]

    # One workgroup does all of it, which no thread can share.
    return code.in_place(table, [rows, updates], run, work=1)
