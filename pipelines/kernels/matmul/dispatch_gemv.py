"""``dispatch-gemv``: products of a few rows with a large factor, in dispatches of our own loops.

Such a product takes the time of one read of the large factor. IREE 3.13 reads a few columns of all of its rows, each on
a page of its own, and then the next columns, which no prefetcher follows: half of the memory's speed. Here a workgroup
reads from end to end whatever lies in a row.

Before::

    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : tensor<1x4096xf32>, tensor<4096x4096xf32>

After::

    %y = flow.dispatch @code(%x, %w)            // some columns, or rows of w.T, a workgroup

The code::

    for columns in N, some hundred at a time:             # x @ w
      for depth in K, 4 lines at a time:
        result[:, columns] += x[:, depth] @ w[depth, columns]

    for column in N, 4 lines at a time:                   # x @ w.T
      result[:, column] = sum over k of x[:, k] * w[column, k]

The large factor is read where it lies and at its width: transposes and conversions before the product are not computed,
and a layer that a loop chooses of all layers' factors is not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, arith, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import element_of, index, stands_in_dispatch
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.matmul.gemv_kernel import Kernel
from hloforge.pipelines.kernels.matmul.stored_factors import Factor, as_stored, erase_unread, factors_of

# Rows, at most: of floats beside lines of columns, and of integers and beside lines of what is summed, of which other
# code multiplies more rows as fast.
_MOST_ROWS, _MOST_SUMMED = 15, 3
# Workgroups of a worker, at least where columns allow it, and columns of one: lines that are long enough.
_GROUPS_OF_WORKER, _LEAST_COLUMNS = 2, 64
# Multiplications that take as long as reading four bytes.
_WORK = 5
# The types of sums, and those of large factors that are widened as they are read.
_NARROW = {"f32": ("bf16", "f16", "s8"), "f64": (), "s32": ("s8", "s16")}


@register
@dataclass(frozen=True)
class DispatchGemv(MachinePass):
    """Make dispatches of products of a few rows; they are in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "dispatch-gemv"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.dot_general"}):
                found = None if stands_in_dispatch(op) else _streamed(op, self.machine)
                if found is not None:
                    large = op.operands[0 if found[2] else 1]
                    with ir.InsertionPoint(op), op.location:
                        replace(op, [_dispatched(op, *found, self.machine)])
                    erase_unread(large)


def _streamed(op: AnyOp, machine: Machine) -> tuple[Factor, Factor, bool] | None:
    """The few rows, the large factor and whether the rows are the right factor; None for other products."""
    lhs, rhs = factors_of(op)
    result = Value(op.results[0])
    if not all(value.shape.is_static for value in (lhs.array, rhs.array)) or result.element_type.name not in _NARROW:
        return None
    swapped = lhs.count(lhs.free) > rhs.count(rhs.free)
    rows, large = (rhs, lhs) if swapped else (lhs, rhs)
    narrow, wide = _NARROW[result.element_type.name], result.element_type.name
    large = as_stored(large, wide, narrow)
    roles = large.roles
    if large.array.element_type.name not in (*narrow, wide) or large.bytes < machine.dispatch_bytes:
        return None
    # Each role once, none of them broken up by others, and lines of what is summed or of columns.
    if len(set(roles)) < len(roles) or not {"k", "n"} <= set(roles) or roles[-1] in "bi":
        return None
    most = _MOST_SUMMED if roles[-1] == "k" or result.element_type.is_integer else _MOST_ROWS
    return (rows, large, swapped) if 0 < rows.count(rows.free) <= most else None


def _dispatched(op: AnyOp, rows: Factor, large: Factor, swapped: bool, machine: Machine) -> Value:
    """The product, computed as ``[b, m, n]`` with each in the order of the large factor's dimensions."""
    result = Value(op.results[0])
    batch, summed, free = (sorted(dims) for dims in (large.batch, large.summed, large.free))
    left = ops.transpose(
        rows.array,
        [
            *(rows.batch[large.batch.index(d)] for d in batch),
            *rows.free,
            *(rows.summed[large.summed.index(d)] for d in summed),
        ],
    )
    left = ops.convert_element_type(left, result.element_type)
    sizes = {"b": large.count(batch), "k": large.count(summed), "n": large.count(free)}
    if large.chosen is not None:
        sizes["i"] = large.array.dims[large.chosen]
    few = rows.count(rows.free)
    left = ops.reshape(left, [sizes["b"], few, sizes["k"]])
    roles = large.roles
    right = ops.reshape(large.array, [sizes[role] for role in roles])
    layer = None if large.start is None else element_of(large.start.ir)
    flat = Value(_product(left.ir, right.ir, layer, roles, sizes, few, machine))
    # Its dimensions are those of the batch, of the rows and the columns; the result's are in the product's order.
    made = [large.array.dims[d] for d in batch], [rows.array.dims[d] for d in rows.free]
    product = ops.reshape(flat, [*made[0], *made[1], *(large.array.dims[d] for d in free)])
    in_batch = [batch.index(d) for d in large.batch]
    in_rows = [len(batch) + number for number in range(len(rows.free))]
    in_columns = [len(batch) + len(in_rows) + free.index(d) for d in large.free]
    return ops.transpose(product, [*in_batch, *(in_columns + in_rows if swapped else in_rows + in_columns)])


def _product(
    left: Any, right: Any, layer: Any | None, roles: str, sizes: dict[str, int], few: int, machine: Machine
) -> Any:
    element = left.type.element_type
    depth_last = roles[-1] == "k"
    columns = _group(sizes["n"], sizes["b"], machine.packed_bytes * 8 // (few * element.width), machine.workers)
    whole = ir.RankedTensorType.get([sizes["b"], few, sizes["n"]], element)
    group = ir.RankedTensorType.get([1, few, columns], element)
    parts = {"b": 1, "i": 1, "k": sizes["k"], "n": columns}
    part = ir.RankedTensorType.get([parts[role] for role in roles], right.type.element_type)

    def run(places: Sequence[Any], sources: Sequence[Any], numbers: Sequence[Any], targets: Sequence[Any]) -> None:
        batch, column = places[1], code.combine(arith.muli, places[0], columns)
        rows = code.load(sources[0], ir.RankedTensorType.get([1, few, sizes["k"]], element), [batch, 0, 0])
        start = {"b": batch, "k": 0, "n": column}
        if numbers:
            start["i"] = code.clamped(numbers[0], sizes["i"])
        lines = code.load(sources[1], part, [start[role] for role in roles])
        kernel = Kernel(
            rows, lines, lambda k, n: _place(roles, k, n), group, sizes["k"], depth_last, machine.line_bytes
        )
        code.store(kernel.result(), targets[0], [batch, 0, column])

    counts = [sizes["n"] // columns, sizes["b"]]
    elements = sizes["b"] * sizes["k"] * sizes["n"]
    work = max(elements * few, _WORK * elements * right.type.element_type.width // 32)
    scalars = [] if layer is None else [layer]
    key = f"few rows {few} {roles} {sizes} {columns}"
    return code.workgroups(counts, [left, right], scalars, [whole], run, work=work, key=key)[0]


def _place(roles: str, depth: Any, column: Any) -> list[Any]:
    at = {"b": index(0), "i": index(0), "k": depth, "n": column}
    return [at[role] for role in roles]


def _group(columns: int, batch: int, most: int, workers: int) -> int:
    """Columns of a workgroup: a divisor up to a limit."""
    most = min(most, max(_LEAST_COLUMNS, columns * batch // (_GROUPS_OF_WORKER * workers)))
    return max(divisor for divisor in range(1, min(columns, most) + 1) if columns % divisor == 0)
