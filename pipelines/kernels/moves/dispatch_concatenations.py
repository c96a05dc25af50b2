"""``dispatch-concatenations``: copy arrays that are joined along an inner dimension with one dispatch.

Before::

    %y = stablehlo.concatenate %a, %b, %c, dim = 1 : tensor<256x1x32xf32>, ... -> tensor<256x3x32xf32>

After::

    %y = dispatch { for row in rows: y[row] = a[row], b[row], c[row] }          some rows a workgroup

IREE 3.13 makes a dispatch for each array, which writes parts of rows: a recommender's 27 features take 27 of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, arith, in_context, ir
from hloforge.dialect.operations import integer, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import empty, index, read_vector, stands_in_dispatch, write_vector
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.kernels.lang import loops as code

# Arrays that are worth a dispatch of their own, and the most of one, as IREE binds 32 to a dispatch.
_FEWEST, _MOST = 3, 30
# Vectors of a row that are copied without a loop, and arrays with a loop: of 20 and more IREE's time doubles with each.
_UNROLLED, _MOST_LOOPS = 4, 8
_COPIED = frozenset(("bf16", "f16", "f32", "f64", "s8", "s16", "s32", "s64"))


@register
@dataclass(frozen=True)
class DispatchConcatenations(MachinePass):
    """Make dispatches of concatenations of several arrays; they are in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "dispatch-concatenations"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.concatenate"}):
                if not stands_in_dispatch(op) and _joins_rows(op, self.machine):
                    with ir.InsertionPoint(op), op.location:
                        replace(op, [_dispatched(op, self.machine)])


def _joins_rows(op: ir.Operation, machine: Machine) -> bool:
    """Whether parts of several rows come from several arrays, all in memory that a dispatch can copy."""
    arrays = list(map(Value, op.operands))
    if not all(array.shape.is_static and array.element_type.name in _COPIED for array in arrays):
        return False
    rows, sizes = prod(arrays[0].dims[: _dimension(op)]), [array.shape.element_count for array in arrays]
    if not _FEWEST <= len(arrays) <= _MOST or min(sizes) == 0 or sum(sizes) < machine.dispatch_elements or rows == 1:
        return False
    unrolled = _UNROLLED * machine.line_bytes * 8 // arrays[0].element_type.bits
    return sum(size // rows > unrolled for size in sizes) <= _MOST_LOOPS


def _dimension(op: AnyOp) -> int:
    return integer(op, "dimension")


def _dispatched(op: ir.Operation, machine: Machine) -> Value:
    result, dimension = Value(op.results[0]), _dimension(op)
    rows = prod(result.dims[:dimension])
    widths = [Value(array).shape.element_count // rows for array in op.operands]
    arrays = [ops.reshape(Value(array), [rows, width]).ir for array, width in zip(op.operands, widths, strict=True)]
    element = result.type.element_type
    whole = ir.RankedTensorType.get([rows, sum(widths)], element)
    most = max(1, machine.group_elements // sum(widths))
    group = max(divisor for divisor in range(1, min(rows, most) + 1) if rows % divisor == 0)
    length = machine.line_bytes * 8 // element.width

    def run(places: Sequence[Any], sources: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
        first = code.combine(arith.muli, places[0], group)
        parts = [
            code.load(source, ir.RankedTensorType.get([group, width], element), [first, 0])
            for source, width in zip(sources, widths, strict=True)
        ]

        def row(at: Any, into: Any) -> list[Any]:
            before = 0
            for part, width in zip(parts, widths, strict=True):
                into = _copied(part, at, into, before, min(length, width))
                before += width
            return [into]

        joined = empty(ir.RankedTensorType.get([group, sum(widths)], element))
        code.store(code.for_each(group, [joined], row)[0], targets[0], [first, 0])

    work = machine.element_work * rows * sum(widths)
    return ops.reshape(Value(code.workgroups([rows // group], arrays, (), [whole], run, work=work)[0]), result.dims)


def _copied(part: Any, row: Any, into: Any, before: int, length: int) -> Any:
    """A row of an array written after the first columns of a row."""

    def step(column: Any, count: int, into: Any) -> list[Any]:
        at = code.combine(arith.addi, column, before)
        return [write_vector(read_vector(part, [row, column], count), into, [row, at])]

    width = int(part.type.shape[1])
    if width > _UNROLLED * length:
        return code.in_steps(width, length, [into], step)[0]
    for column in range(0, width, length):
        into = step(index(column), min(length, width - column), into)[0]
    return into
