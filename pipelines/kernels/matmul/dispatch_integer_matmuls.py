"""``dispatch-integer-matmuls``: products of 8-bit integers in 32 bits as dispatches of their own loops.

IREE 3.13 widens both factors to 32 bits and multiplies these, 8 at a time. The factors of 16 bits of a pair of lines
are multiplied and added by one instruction, 16 at a time (``vpmaddwd``), and exactly.

Before::

    %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : tensor<256x512xi8>, tensor<512x256xi8> -> ...i32>

After::

    %w = stablehlo.convert %a : (tensor<256x512xi8>) -> tensor<256x512xi16>
    %y = flow.dispatch @code(%w, %b)            // some rows and columns a workgroup

The code::

    for strip in columns, 16 at a time, with AVX-512 32:
      for pairs in K, 256 at a time:
        packed = rhs[pairs, strip] as 16 bits, the lines of a pair interleaved
        for rows in M, 6 at a time:
          result[rows, strip] += lhs[rows, pairs] @ packed

Of unsigned factors, and of wider ones, IREE's own code stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, arith, in_context, ir, stablehlo
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import stands_in_dispatch
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.matmul.integer_matmul_kernel import IntegerKernel

# Columns of the narrowest strip, and how many more columns than there are may be computed in wider ones.
_LEAST_COLUMNS, _MOST_IDLE = 16, 1.15
# Rows that are worth packing the right factor for, and the work that is worth a dispatch, by that of dispatches.
_LEAST_ROWS, _WORTH = 4, 2
# Multiplications in the time of one of floats.
_DENSITY = 2
# Rows of a workgroup, at most, and its columns, if that divides them.
_GROUP_ROWS, _GROUP_COLUMNS = 256, 64


@register
@dataclass(frozen=True)
class DispatchIntegerMatmuls(MachinePass):
    """Make dispatches of products of 8-bit integers; they are in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "dispatch-integer-matmuls"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.dot_general"}):
                if not stands_in_dispatch(op) and (sizes := _sizes(op, self.machine)) is not None:
                    with ir.InsertionPoint(op), op.location:
                        replace(op, [_dispatched(op, *sizes, self.machine)])


def _sizes(op: AnyOp, machine: Machine) -> tuple[int, int, int, int] | None:
    """The sizes of the batch, the rows, the depth and the columns; None for a product that stays IREE's."""
    lhs, rhs, result = (*map(_as_stored, op.operands), Value(op.results[0]))
    if [value.element_type.name for value in (lhs, rhs, result)] != ["s8", "s8", "s32"]:
        return None
    if not all(value.shape.is_static for value in (lhs, rhs)):
        return None
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch = prod(lhs.dims[d] for d in numbers.lhs_batching_dimensions)
    depth = prod(lhs.dims[d] for d in numbers.lhs_contracting_dimensions)
    rows, columns = (value.shape.element_count // max(1, batch * depth) for value in (lhs, rhs))
    is_large = rows >= _LEAST_ROWS and columns >= _LEAST_COLUMNS and depth >= 2
    is_worth = batch * rows * depth * columns >= machine.work_of(_WORTH)
    return (batch, rows, depth, columns) if is_large and is_worth else None


def _as_stored(factor: Any) -> Value:
    """The factor before a conversion from 8 bits."""
    owner = factor.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "stablehlo.convert":
        return Value(factor)
    narrow = Value(owner.operation.operands[0])
    return narrow if narrow.element_type.name == "s8" else Value(factor)


def _dispatched(op: AnyOp, batch: int, rows: int, depth: int, columns: int, machine: Machine) -> Value:
    lhs, rhs, result = (*map(_as_stored, op.operands), Value(op.results[0]))
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    left = _arranged(lhs, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions, depth_last=True)
    right = _arranged(rhs, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions, depth_last=False)
    left = ops.reshape(ops.convert_element_type(left, "s16"), [batch, rows, depth])
    right = ops.reshape(right, [batch, depth, columns])
    if depth % 2:
        left = ops.pad(left, 0, [(0, 0, 0), (0, 0, 0), (0, 1, 0)])
    strip = _strip(columns, machine)
    made = _product(left.ir, right.ir, ir.Type.parse(result.element_type.mlir), *strip, machine)
    return ops.reshape(Value(made), result.dims)


def _strip(columns: int, machine: Machine) -> tuple[int, int]:
    """Columns of a strip, and rows: 12 sums in 16 registers of AVX2 or 32 of AVX-512."""
    if not machine.has_wide_vectors:
        return _LEAST_COLUMNS, 6
    wide = 2 * _LEAST_COLUMNS
    return (wide, 6) if columns >= wide and -(-columns // wide) * wide <= _MOST_IDLE * columns else (_LEAST_COLUMNS, 12)


def _arranged(factor: Value, batch: Sequence[int], summed: Sequence[int], *, depth_last: bool) -> Value:
    """The dimensions in the order batch, free, summed, or batch, summed, free."""
    free = [d for d in range(factor.rank) if d not in (*batch, *summed)]
    inner = [*free, *summed] if depth_last else [*summed, *free]
    return ops.transpose(factor, [*batch, *inner])


def _product(left: Any, right: Any, element: Any, strip: int, at_once: int, machine: Machine) -> Any:
    (batch, rows, pairs), (_, depth, columns) = left.type.shape, right.type.shape
    group_rows, group_columns = _group_rows(rows), _group_columns(columns, strip)

    def run(places: Sequence[Any], sources: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
        column = code.combine(arith.muli, places[0], group_columns)
        row = code.combine(arith.muli, places[1], group_rows)
        of_rows = ir.RankedTensorType.get([1, group_rows, pairs], left.type.element_type)
        of_columns = ir.RankedTensorType.get([1, depth, group_columns], right.type.element_type)
        kernel = IntegerKernel(
            code.load(sources[0], of_rows, [places[2], row, 0]),
            code.load(sources[1], of_columns, [places[2], 0, column]),
            ir.RankedTensorType.get([1, group_rows, group_columns], element),
            strip,
            at_once,
            machine.packed_bytes,
        )
        code.store(kernel.result(), targets[0], [places[2], row, column])

    whole = ir.RankedTensorType.get([batch, rows, columns], element)
    counts = [columns // group_columns, rows // group_rows, batch]
    work, key = batch * rows * depth * columns // _DENSITY, f"integers {group_rows} {group_columns} {strip}"
    return code.workgroups(counts, [left, right], (), [whole], run, work=work, key=key)[0]


def _group_rows(rows: int) -> int:
    """The largest divisor up to a limit, or everything, where that is far below the limit."""
    divisor = max(divisor for divisor in range(1, min(rows, _GROUP_ROWS) + 1) if rows % divisor == 0)
    return divisor if divisor * 4 >= min(rows, _GROUP_ROWS) else rows


def _group_columns(columns: int, strip: int) -> int:
    """A divisor of which strips leave least over, a middling one of several."""
    groups = [group for group in range(strip, columns + 1) if columns % group == 0]
    return min(groups, key=lambda group: (-(-group // strip) * strip / group, abs(group - _GROUP_COLUMNS)))
