"""``dispatch-matmuls``: large matrix products in dispatches of our own loops.

IREE 3.13 tiles a product over its result, and reads a few columns of the right factor again for every few rows: its
rows are far apart, so that each read is of another line and page of memory. Where the right factor is larger than a
core's cache, that takes two to three times the time of the arithmetic. Its data tiling copies both factors into tiles
in memory first, which pays for large factors on both sides. Here a workgroup copies a strip of the right factor, 16
columns of some rows, and multiplies its part of the left factor with it, which stays in the second cache meanwhile.

Before::

    %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : tensor<512x2048xf32>, tensor<2048x2048xf32>

After::

    %y, %strips = flow.dispatch @code(%a, %b)   // some rows and columns a workgroup; strips are its memory for copies

The code::

    for depth in K, as many as half of the nearest cache holds:
      for strips in columns, 4 of them at a time:
        packed = rhs[depth, strips]                            # one read of each element
        for strip in strips, 16 columns:
          for rows in M, 6 at a time:
            result[rows, strip] += lhs[rows, depth] @ packed   # 6 x 16 sums in registers
          if the last depth: result[all, strip] = what is made of the product (``epilogues.py``)

Smaller right factors gain 10 to 30 % where the sums are long. In a loop, a right factor from before it is laid out in
strips once, before it: copying them takes a third of the time of 16 rows, a tenth of that of 64. A factor that a loop
chooses of those of all layers is read where it lies.
Source: Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType
from hloforge.dialect.mlir import AnyOp, arith, in_context, ir, stablehlo
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import element_of, empty, stands_in_dispatch
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.matmul.epilogues import Epilogue
from hloforge.pipelines.kernels.matmul.im2col import Windows, windows_of
from hloforge.pipelines.kernels.matmul.matmul_kernel import Kernel, MatrixRows, Tiles, WindowRows
from hloforge.pipelines.kernels.matmul.stored_factors import as_stored, erase_unread, factors_of


@dataclass(frozen=True)
class _Block:
    """Sums that stay in registers.

    Attributes:
        bytes: of a row of the strip.
        rows: of the left factor.
        parts: of half of the nearest cache, that a strip which is copied takes.
    """

    bytes: int
    rows: int
    parts: int = 1

    def loads(self, vector_bytes: int) -> float:
        """How many vectors are read for each one that is multiplied."""
        vectors = max(1, self.bytes // vector_bytes)
        return (vectors + self.rows) / (vectors * self.rows)


# Of processors, the block for many columns and those for fewer. A sum waits four cycles for the one before, and two
# begin in a cycle, so that there should be eight at least, and the more the fewer numbers are read: 12 in 16 registers
# of AVX2, 24 in 32 of AVX-512. A strip leaves room for the left factor in a nearest cache of 32 KiB or, since wide ones
# are read more slowly, in one of 48.
_WIDE = (_Block(256, 6, parts=2), _Block(128, 6), _Block(64, 8))
_PORTABLE = (_Block(64, 6),)
# What reading a vector costs beside multiplying one, and the largest strip on a stack, half of IREE's limit.
_LOAD_COST, _STACK_BYTES = 0.25, 1 << 14
# Bytes of a factor of which strips are made before a loop, at most.
_MOST_COPIED = 1 << 25
# Rows of a workgroup that are worth a copy of the right factor.
_LEAST_ROWS = 16
# Rows that are worth turning columns that lie in rows into lines by vectors of AVX-512; narrower ones take as long as
# IREE's sums along the rows.
_LEAST_TURNED = 4
# The work that is worth a dispatch, by that of dispatches: with strips that were made before a loop, where columns are
# no whole vectors, and where only sums are long.
_WORTH_STRIPS, _WORTH_RAGGED, _WORTH_DEEP = 2, 8, 64
# Rows and columns of a workgroup, at most; and bytes of a row of the left factor that meet a strip, of which a quarter
# of the second cache is kept while they are read again for each strip of columns.
_GROUP_ROWS, _GROUP_COLUMNS, _ROW_BYTES = 2048, 512, 1024
# The cost of copying the right factor once for a row of the left one, and of reading the left one for a column.
_COPY_COST, _READ_COST = 8, 8
# Of one workgroup: how late a worker may begin, or how many more workers there are than those that are counted with.
_START_COST = 1
# Types that are widened as they are copied.
_NARROW = ("bf16", "f16")
# Lines of strips that are copied side by side, so that the processor's prefetchers follow.
_PANEL_LINES = 4


@register
@dataclass(frozen=True)
class DispatchMatmuls(MachinePass):
    """Make dispatches of large matrix products; they are in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "dispatch-matmuls"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.dot_general"}):
                windows = _windows_of(op, self.machine.least_terms)
                loop = _loop_before(op)
                tiles = _tiles_of(op, windows, self.machine, in_strips=loop is not None)
                if tiles is not None and not stands_in_dispatch(op):
                    epilogue = Epilogue.of(op, (tiles.batch, tiles.rows, tiles.columns))
                    root, factor = epilogue.root, op.operands[1]
                    with ir.InsertionPoint(root), root.location:
                        replace(root, [_dispatched(epilogue, tiles, windows, loop)])
                    epilogue.erase()
                    erase_unread(factor)


def _loop_before(op: Any) -> Any | None:
    """The outermost loop around a product whose right factor comes from before it: strips are copied there once."""
    factor = Value(op.operands[1])
    owner = factor.ir.owner
    home = owner if isinstance(owner, ir.Block) else owner.operation.block
    loop = None
    while op.block != home:
        op = op.parent.operation
        if op.name == "stablehlo.while":
            loop = op
    return loop if factor.shape.is_static and factor.shape.byte_size <= _MOST_COPIED else None


def _tiles_of(op: AnyOp, windows: Windows | None, machine: Machine, *, in_strips: bool) -> Tiles | None:
    """The tiles of a product that gains by them; None for others."""
    lhs, rhs, result = (Value(value) for value in (*op.operands, op.results[0]))
    if not all(value.shape.is_static for value in (lhs, rhs)) or not _can_multiply(lhs, rhs, result):
        return None
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch = prod(lhs.dims[d] for d in numbers.lhs_batching_dimensions)
    depth = prod(lhs.dims[d] for d in numbers.lhs_contracting_dimensions)
    rows, columns = (value.shape.element_count // max(1, batch * depth) for value in (lhs, rhs))
    bytes_ = result.element_type.bits // 8
    # Windows that need not be laid out pay for any kernel.
    is_large = windows is not None or depth * columns * bytes_ >= machine.l2_bytes
    work, lanes = batch * rows * depth * columns, machine.vector_bytes // bytes_
    is_large = is_large or (depth >= machine.deep_terms and work >= machine.work_of(_WORTH_DEEP))
    is_large = is_large or (columns % lanes != 0 and work >= machine.work_of(_WORTH_RAGGED))
    if depth < machine.least_terms or not (is_large or in_strips):
        return None
    least = _LEAST_TURNED if machine.has_wide_vectors and _has_columns_in_rows(op) else _LEAST_ROWS
    found: list[tuple[float, Tiles]] = []
    for block in _WIDE if machine.has_wide_vectors else _PORTABLE:
        strip = block.bytes // bytes_
        laid_out = in_strips and columns % strip == 0
        most = (machine.l1_bytes if laid_out else block.parts * machine.packed_bytes) // block.bytes
        # Windows are read a position at a time; other lines are packed in parts of about one size, of whole vectors.
        even = -(-depth // -(-depth // most))
        packed = _divisors(windows.features, most)[-1] if windows else min(depth, -(-even // lanes) * lanes)
        gains = is_large or (laid_out and work >= machine.work_of(_WORTH_STRIPS))
        if columns < strip or packed < machine.least_terms or not gains:
            continue
        for group in _groups(rows, columns, strip, least, in_strips=laid_out):
            panel = 1 if laid_out else min(max(1, _PANEL_LINES * machine.line_bytes // block.bytes), group[1] // strip)
            tiles = Tiles(batch, rows, depth, columns, *group, strip, block.rows, packed, laid_out, panel, lanes)
            loads = _LOAD_COST * block.loads(machine.vector_bytes)
            found.append((_cost(tiles, machine) * (1 + loads), tiles))
    return min(found, key=lambda one: one[0])[1] if found else None


def _groups(rows: int, columns: int, strip: int, least: int, *, in_strips: bool) -> Iterator[tuple[int, int]]:
    """How many rows and columns a workgroup may take."""
    heights = [height for height in _divisors(rows, _GROUP_ROWS) if height >= least]
    widths = [width for width in _divisors(columns, _GROUP_COLUMNS) if width >= strip] or [columns]
    return product(heights, [width for width in widths if not in_strips or width % strip == 0])


def _cost(tiles: Tiles, machine: Machine) -> float:
    """What a multiplication costs in workgroups of this size, beside one that is all arithmetic."""
    rows, columns = tiles.group_rows, tiles.group_columns
    groups = tiles.batch * (tiles.rows // rows) * (tiles.columns // columns)
    copy = 0 if tiles.in_strips else _COPY_COST
    read = _READ_COST * max(1, rows * _ROW_BYTES / (machine.l2_bytes // 4))
    idle = -(-rows // tiles.height) * tiles.height / rows * -(-columns // tiles.strip) * tiles.strip / columns
    return idle * (1 + copy / rows + read / columns) * (code.imbalance(groups, machine.workers) + _START_COST / groups)


def _can_multiply(lhs: Value, rhs: Value, result: Value) -> bool:
    names = {value.element_type.name for value in (lhs, rhs)}
    return result.element_type.name in ("f32", "f64") and names <= {*_NARROW, result.element_type.name}


def _divisors(number: int, most: int) -> list[int]:
    """The divisors up to a limit, the largest last."""
    return [divisor for divisor in range(1, min(number, most) + 1) if number % divisor == 0]


def _windows_of(op: AnyOp, least: int) -> Windows | None:
    """The windows that the left factor ``[m, k]`` lays out, if the product can read them in the image.

    Args:
        least: the features that an image must have.
    """
    lhs = Value(op.operands[0])
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    if lhs.rank != 2 or list(numbers.lhs_contracting_dimensions) != [1]:
        return None
    windows = windows_of(lhs)
    return windows if windows is not None and windows.features >= least else None


def _dispatched(epilogue: Epilogue, tiles: Tiles, windows: Windows | None, loop: Any) -> Value:
    op = epilogue.product
    layer: Any | None = None
    lhs, result = Value(op.operands[0]), Value(op.results[0])
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    by_columns = _has_columns_in_rows(op)
    if tiles.in_strips:
        with ir.InsertionPoint(loop):
            right = _strips(_right(op, tiles), tiles, result.element_type, by_columns=by_columns)
    elif (found := _layer_of(op, tiles)) is not None:
        right, layer = found[0], element_of(found[1].ir)
    else:
        right = _right(op, tiles)
    if windows is not None:
        left = ops.convert_element_type(windows.image, result.element_type)
    else:
        left = _arranged(lhs, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions, depth_last=True)
        left = ops.convert_element_type(left, result.element_type)
        left = ops.reshape(left, [tiles.batch, tiles.rows, tiles.depth])
    flat = _product(left.ir, right.ir, layer, epilogue, tiles, windows, by_columns)
    return ops.reshape(Value(flat), Value(epilogue.root.results[0]).dims)


def _has_columns_in_rows(op: AnyOp) -> bool:
    """Whether a column of the right factor lies in a row."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    return Value(op.operands[1]).rank - 1 in numbers.rhs_contracting_dimensions


def _right(op: AnyOp, tiles: Tiles) -> Value:
    """The right factor, ``[b, k, n]`` or ``[b, n, k]``."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    by_columns = _has_columns_in_rows(op)
    batch, summed = numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions
    sides = [tiles.columns, tiles.depth] if by_columns else [tiles.depth, tiles.columns]
    return ops.reshape(_arranged(Value(op.operands[1]), batch, summed, depth_last=by_columns), [tiles.batch, *sides])


def _layer_of(op: AnyOp, tiles: Tiles) -> tuple[Value, Value] | None:
    """Right factors, ``[layers, k, n]`` or ``[layers, n, k]``, and the number of the one that is taken; None if one."""
    stored = as_stored(factors_of(op)[1], Value(op.results[0]).element_type.name, _NARROW)
    if stored.start is None or stored.chosen != 0 or tiles.batch > 1:
        return None
    by_columns = stored.array.rank - 1 in stored.summed
    inner = [*stored.free, *stored.summed] if by_columns else [*stored.summed, *stored.free]
    if by_columns is not _has_columns_in_rows(op) or inner != sorted(inner):
        return None
    sides = [tiles.columns, tiles.depth] if by_columns else [tiles.depth, tiles.columns]
    return ops.reshape(stored.array, [stored.array.dims[0], *sides]), stored.start


def _strips(right: Value, tiles: Tiles, element: ElementType, *, by_columns: bool) -> Value:
    """A right factor in strips ``[b, n / strip, k, strip]``."""
    parts = [tiles.columns // tiles.strip, tiles.strip]
    sides, order = ([*parts, tiles.depth], [0, 1, 3, 2]) if by_columns else ([tiles.depth, *parts], [0, 2, 1, 3])
    return ops.convert_element_type(ops.transpose(ops.reshape(right, [tiles.batch, *sides]), order), element)


def _arranged(factor: Value, batch: Sequence[int], summed: Sequence[int], *, depth_last: bool) -> Value:
    """The dimensions in the order batch, free, summed, or batch, summed, free."""
    free = _free(factor, batch, summed)
    inner = [*free, *summed] if depth_last else [*summed, *free]
    return ops.transpose(factor, [*batch, *inner])


def _free(factor: Value, batch: Sequence[int], summed: Sequence[int]) -> list[int]:
    return [d for d in range(factor.rank) if d not in (*batch, *summed)]


def _product(
    lhs: Any,
    rhs: Any,
    layer: Any | None,
    epilogue: Epilogue,
    tiles: Tiles,
    windows: Windows | None,
    by_columns: bool,
) -> Any:
    element = epilogue.product.results[0].type.element_type
    whole = ir.RankedTensorType.get([tiles.batch, tiles.rows, tiles.columns], element)
    counts = [tiles.columns // tiles.group_columns, tiles.rows // tiles.group_rows, tiles.batch]
    scratch = [ir.RankedTensorType.get([prod(counts) * tiles.panel, *tiles.copied[1:]], element)]
    if tiles.in_strips or prod(tiles.copied) * element.width // 8 <= _STACK_BYTES:
        scratch = []

    def run(places: Sequence[Any], sources: Sequence[Any], chosen: Sequence[Any], targets: Sequence[Any]) -> None:
        column = code.combine(arith.muli, places[0], tiles.group_columns)
        row = code.combine(arith.muli, places[1], tiles.group_rows)
        sides, start = _group_of_columns(tiles, column, by_columns=by_columns)
        factor = code.clamped(chosen[0], int(rhs.type.shape[0])) if chosen else places[2]
        right = code.load(sources[1], _of([1, *sides], rhs), [factor, *start])
        left: MatrixRows | WindowRows
        if windows is not None:
            left = WindowRows(code.load(sources[0], lhs.type, [0] * windows.image.rank), windows, row)
        else:
            part = _of([1, tiles.group_rows, tiles.depth], lhs)
            left = MatrixRows(code.load(sources[0], part, [places[2], row, 0]))
        sizes, place = [1, tiles.group_rows, tiles.group_columns], [places[2], row, column]
        parts = epilogue.parts(sources[2:], place, sizes)

        def finish(sums: Any, position: Sequence[Any]) -> Any:
            return epilogue.vector(sums, parts, position)

        group = ir.RankedTensorType.get(sizes, element)
        kernel = Kernel(left, right, by_columns, group, tiles, finish if epilogue.made else None)
        packed = ir.RankedTensorType.get(tiles.copied, element)
        number = code.combine(arith.addi, code.combine(arith.muli, places[2], counts[1]), places[1])
        number = code.combine(arith.addi, code.combine(arith.muli, number, counts[0]), places[0])
        start = [code.combine(arith.muli, number, tiles.panel), 0, 0]
        made, copied = kernel.result(code.load(targets[1], packed, start) if scratch else empty(packed))
        code.store(made, targets[0], place)
        if scratch:
            code.store(copied, targets[1], start)

    # The image is an operand of the dispatch.
    places = windows and (windows.first, windows.window, windows.dilations, windows.spaces, windows.strides)
    key = f"product {tiles} {places} {by_columns} {epilogue.text()}"
    arrays = [lhs, rhs, *epilogue.operands]
    scalars = [] if layer is None else [layer]
    return code.workgroups(counts, arrays, scalars, [whole], run, scratch=scratch, work=tiles.work, key=key)[0]


def _group_of_columns(tiles: Tiles, column: Any, *, by_columns: bool) -> tuple[list[int], list[Any]]:
    """The sizes of what a workgroup reads of the right factor, and where it begins."""
    if tiles.in_strips:
        first = code.combine(arith.divui, column, tiles.strip)
        return [tiles.group_columns // tiles.strip, tiles.depth, tiles.strip], [first, 0, 0]
    sides, start = [tiles.depth, tiles.group_columns], [0, column]
    return (sides[::-1], start[::-1]) if by_columns else (sides, start)


def _of(dims: Sequence[int], array: Any) -> Any:
    return ir.RankedTensorType.get(dims, array.type.element_type)
