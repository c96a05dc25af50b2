"""``dispatch-transposes``: transpositions that move whole rows as copies of vectors in a dispatch of their own.

Before::

    %y = stablehlo.transpose %x, dims = [0, 2, 1, 3] : tensor<16x128x12x64xf32>

After::

    %y = dispatch { for row in rows of %y: y[row] = x[row of %x that it was] }          some rows a workgroup

IREE 3.13 copies single numbers where nothing else is computed on the way: moving the heads of attention takes 2.5 times
as long as negating as many numbers. What it fuses with its neighbours is left to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, arith, in_context, ir
from hloforge.dialect.operations import integers, is_made_by, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import empty, index, read_vector, stands_in_dispatch, write_vector
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.kernels.lang import loops as code

# Elements that are worth a dispatch of their own, by those that are moved one by one in its time.
_WORTH = 8
_LEAST_VECTOR_BYTES = 16
# From so many lines on rows are read as they follow each other and written far apart, which the processor does not wait
# for: what is not in the caches takes half the time. Shorter ones would fill few lines of the cache at a time.
_LONG_ROW_LINES = 4
# Multiplications that take as long as moving an element.
_WORK = 8
_COPIED = frozenset(("bf16", "f16", "f32", "f64", "s8", "s16", "s32", "s64"))
# Code of our own, and what reads an array as it lies in memory.
_DISPATCHES = ("flow.dispatch", "flow.dispatch.workgroups")
_READERS = frozenset({"func.return", *_DISPATCHES, "stablehlo.optimization_barrier"})


@register
@dataclass(frozen=True)
class DispatchTransposes(MachinePass):
    """Make dispatches of large transpositions of rows between arrays that lie in memory."""

    name: ClassVar[str] = "dispatch-transposes"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.transpose"}):
                if not stands_in_dispatch(op) and _moves_rows(op, self.machine) and _stands_alone(op):
                    with ir.InsertionPoint(op), op.location:
                        replace(op, [_dispatched(op, self.machine)])


def _row_rank(op: AnyOp) -> int:
    """How many dimensions at the end stay where they are."""
    order = integers(op, "permutation")
    moved = [number for number, dimension in enumerate(order) if number != dimension]
    return len(order) - 1 - max(moved, default=-1)


def _moves_rows(op: ir.Operation, machine: Machine) -> bool:
    """Whether the rows are many, long enough for vectors, and not in place already."""
    whole, order = Value(op.operands[0]), integers(op, "permutation")
    if not whole.shape.is_static or whole.element_type.name not in _COPIED or order == sorted(order):
        return False
    is_worth = whole.shape.element_count >= _WORTH * machine.dispatch_elements
    return is_worth and _vector(op, machine) * whole.element_type.bits >= _LEAST_VECTOR_BYTES * 8


def _vector(op: AnyOp, machine: Machine) -> int:
    """The elements of the longest vector that divides a row."""
    whole, kept = Value(op.operands[0]), _row_rank(op)
    return gcd(prod(whole.dims[whole.rank - kept :]), machine.line_bytes * 8 // whole.element_type.bits)


def _stands_alone(op: AnyOp) -> bool:
    """Whether IREE has nothing to compute on the way from memory to memory."""
    source = op.operands[0]
    while is_made_by(source, "stablehlo.reshape"):
        source = source.owner.operands[0]
    is_stored = isinstance(source.owner, ir.Block) or source.owner.name in _DISPATCHES
    return is_stored and _is_read_in_memory(op.results[0])


def _is_read_in_memory(value: Any) -> bool:
    users = [use.owner.operation for use in value.uses]
    return all(
        user.name in _READERS or (user.name == "stablehlo.reshape" and _is_read_in_memory(user.results[0]))
        for user in users
    )


@dataclass(frozen=True)
class _Loop:
    """A dimension of rows: its size, and how many rows apart its neighbours lie in the source and in the result."""

    size: int
    source_step: int
    result_step: int


def _dispatched(op: AnyOp, machine: Machine) -> Value:
    source, result = Value(op.operands[0]), Value(op.results[0])
    kept, length = _row_rank(op), _vector(op, machine)
    outer = source.rank - kept
    rows, width = prod(source.dims[:outer]), prod(source.dims[outer:])
    loops = _loops(source.dims[:outer], integers(op, "permutation")[:outer])
    flat = ir.RankedTensorType.get([rows, width], source.type.element_type)
    inner = _group(loops, max(1, machine.group_elements // width), machine.workers)
    group = prod(loop.size for loop in inner)
    in_order = inner
    if width * source.element_type.bits >= _LONG_ROW_LINES * machine.line_bytes * 8:
        in_order = sorted(inner, key=lambda loop: -loop.source_step)

    def run(places: Sequence[Any], sources: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
        first = code.combine(arith.muli, places[0], group)
        array = code.load(sources[0], flat, [0, 0])

        def copy(waiting: Sequence[_Loop], row: Any, at: Any, into: Any) -> Any:
            if not waiting:
                return code.for_each(width, [into], lambda column, into: [part(row, at, column, into)], step=length)[0]
            loop, *others = waiting

            def turn(number: Any, into: Any) -> list[Any]:
                return [copy(others, _moved(row, number, loop.source_step), _moved(at, number, loop.result_step), into)]

            return code.for_each(loop.size, [into], turn)[0]

        def part(row: Any, at: Any, column: Any, into: Any) -> Any:
            return write_vector(read_vector(array, [row, column], length), into, [at, column])

        moved = empty(ir.RankedTensorType.get([group, width], source.type.element_type))
        filled = copy(in_order, _row_before(first, loops), index(0), moved)
        code.store(filled, targets[0], [first, 0])

    operands = [ops.reshape(source, [rows, width]).ir]
    moved = code.workgroups([rows // group], operands, (), [flat], run, work=_WORK * rows * width)[0]
    return ops.reshape(Value(moved), result.dims)


def _moved(row: Any, number: Any, step: int) -> Any:
    return code.combine(arith.addi, row, code.combine(arith.muli, number, step))


def _loops(sizes: Sequence[int], order: Sequence[int]) -> list[_Loop]:
    """The dimensions of rows in the result's order; those that stay neighbours are one."""
    loops: list[_Loop] = []
    for place, dimension in enumerate(order):
        source_step, result_step = prod(sizes[dimension + 1 :]), prod(sizes[other] for other in order[place + 1 :])
        loop = _Loop(sizes[dimension], source_step, result_step)
        if loops and loops[-1].source_step == source_step * loop.size:
            loop = _Loop(loops.pop().size * loop.size, source_step, result_step)
        loops.append(loop)
    return loops


def _group(loops: Sequence[_Loop], most: int, workers: int) -> list[_Loop]:
    """The rows of a workgroup: of the larger parts of the result those that workers share most evenly."""
    rows = prod(loop.size for loop in loops)
    choices = [
        [dataclasses.replace(loop, size=part), *loops[place + 1 :]]
        for place, loop in enumerate(loops)
        for part in range(1, loop.size + 1)
        if loop.size % part == 0 and part * loop.result_step <= most
    ]
    sizes = [prod(loop.size for loop in choice) for choice in choices]
    large = [number for number, size in enumerate(sizes) if 4 * size >= max(sizes)]
    return choices[min(large, key=lambda number: (code.imbalance(rows // sizes[number], workers), -sizes[number]))]


def _row_before(row: Any, loops: Sequence[_Loop]) -> Any:
    """Where a row of the result was in the source."""
    before = index(0)
    for loop in reversed(loops):
        at, row = code.combine(arith.remui, row, loop.size), code.combine(arith.divui, row, loop.size)
        before = _moved(before, at, loop.source_step)
    return before
