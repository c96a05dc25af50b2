"""``legalize-sliced-operands``: keep a slice apart from what updates it, with steps also from what reads it by index.

Before::

    %s = stablehlo.slice %x [0:5:2] : (tensor<5xf32>) -> tensor<3xf32>
    %r = stablehlo.reverse %s, dims = [0] : tensor<3xf32>

After::

    %b = stablehlo.optimization_barrier %s : tensor<3xf32>
    %r = stablehlo.reverse %b, dims = [0] : tensor<3xf32>

IREE 3.13 puts both into one dispatch, for which it then has no machine code, also across operations that only rearrange
elements or rename their type: "failed to translate the MLIR LLVM dialect" for a gather, a reversal or a concatenation
of slices with steps (``jax.scipy.fft.dct``), for a gather, a reversal or a small concatenation of a column
(``x[..., 0][::-1]``), and for a gather from a part of rows whose start is known at run time;
"write affecting operations on global resources are restricted to workgroup distributed contexts" for a scatter into any
slice (``x[0].at[i].set(y)``). Arithmetic between them keeps them apart as well. A padding that is negative somewhere,
or that is between elements, is such a slice too, for gathers of it, windows of it, and scatters into it
(``legalize-paddings`` is about paddings of it).

A gather from a part of each row (``x[:, :3][i]``, ``x[:, :3].T[i]`` in a median) read the part as if it were the whole
array, silently, for CUDA.

A conversion that widens IREE repeats in the dispatches of all that read it, and there forgets the steps of a slice of
it where something else reads it too: silently, ``y[::2] * 2`` of ``y = x.astype(f32)`` had the first elements of ``y``.
What is read with steps is therefore what was converted.

For Vulkan it has no code for arithmetic on steps of one row: ``-x[1, ::2]`` ("unresolved materialization" from
``memref<32xf32>`` to ``memref<2x16xf32>``). There the row is a part of the array without its shape::

    %s = stablehlo.slice %x [1:2, 0:16:2] : (tensor<2x16xf32>) -> tensor<1x8xf32>
    %s = reshape (slice (reshape %x : tensor<32xf32>) [16:32:2])

So are steps of a row that another slice takes, ``-x[1][::2]``. Where that begins is known at run time, there is a
barrier between the two.

What it shares out among the threads of a workgroup, for both GPUs, loses the steps of what it reads: ``x[::2].sum(0)``
added the first rows up, silently, and ``x[::2, 0][:, None] * x[::2, 1]`` multiplied them. A slice with steps is in
memory there before anything reads it. Nor has it code for sums of what is joined (``concatenate([x, y]).sum(0)``), and
none for one element as an array of a higher rank (``x[:1][None]``) that a dispatch computes with and returns as well:
"expected rank to be smaller or equal to the other rank".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import AnyOp, SSAValue, ir
from hloforge.dialect.operations import defining_op, integers, is_made_by
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.analysis.origins import is_sliced_by_padding, origin
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Replacement, apply_patterns, pattern

_BARRIER = "stablehlo.optimization_barrier"
_SLICE = "stablehlo.slice"
_SLICES = (_SLICE, "stablehlo.dynamic_slice")
_PADDED_APART = ("stablehlo.gather", "stablehlo.reduce_window")
# What their operands are in memory for.
_STORED = (_BARRIER, "func.return", "stablehlo.return", "stablehlo.while")
_SMALL = 64  # Elements of a concatenation that IREE 3.13 does not share out among workers; measured for each width.


@pattern("stablehlo.convert")
def widened_behind_a_barrier(op: ir.Operation) -> Replacement:
    """Widen gathered booleans to bytes after a barrier.

    IREE keeps booleans as bytes: where something else reads them too, it copies one result for the other by what it
    gives to no worker.
    """
    source = origin(op.operands[0])
    if source is None or source.name != "stablehlo.gather" or not _is_pred_as_bytes(op):
        return NoMatch("it widens no gathered booleans")
    return _keep_apart(op, [0])


def _is_pred_as_bytes(op: AnyOp) -> bool:
    given, made = Value(op.operands[0]).element_type, Value(op.results[0]).element_type
    return given.name == "pred" and made.is_integer and made.bits == 8


@pattern("stablehlo.gather", "stablehlo.reverse", "stablehlo.concatenate", "stablehlo.reduce_window")
def read_behind_a_barrier(op: ir.Operation) -> Replacement:
    """Read columns and slices with steps after barriers, but concatenations that IREE has code for as they are.

    Windows that reach to the end (``lax.cumsum(x[..., 0], reverse=True)``) IREE computes in reversed arrays.
    """
    joins = op.name == "stablehlo.concatenate"
    apart: list[int] = []
    for number in range(len(op.operands) if joins else 1):
        value = op.operands[number]
        is_part = op.name == "stablehlo.gather" and (_is_part_of_rows(value) or _is_spread_part(value))
        is_thinned = _has_steps(value) and not (joins and _is_of_rows(value))
        is_padded = op.name in _PADDED_APART and is_sliced_by_padding(origin(value))
        if is_part or is_padded or is_thinned or (_is_column(value) and not (joins and _is_large(op))):
            apart.append(number)
    return _keep_apart(op, apart)


@pattern("stablehlo.reduce_window")
def skipped_behind_a_barrier(op: ir.Operation) -> Replacement:
    """Let windows that leave elements out read after a barrier: IREE computed only what they read."""
    window, strides = integers(op, "window_dimensions"), integers(op, "window_strides")
    if not any(size == 1 < stride for size, stride in zip(window, strides, strict=False)):
        return NoMatch("its windows leave nothing out")
    owners = [defining_op(op.operands[number]) for number in range(len(op.results))]
    computed = [n for n, owner in enumerate(owners) if owner is not None and owner.name != _BARRIER]
    return _keep_apart(op, computed)


@pattern(_SLICE)
def narrow_part(op: ir.Operation) -> Replacement:
    """slice (convert x) with steps -> convert (slice x), where the conversion widens; also after a change of sign."""
    source = defining_op(op.operands[0])
    if source is None or set(integers(op, "strides")) <= {1} or not (_widens(source) or _renames_wide(source)):
        return NoMatch("it is no part with steps of what is converted")
    bounds = [integers(op, name) for name in ("start_indices", "limit_indices", "strides")]
    part = ops.slice(Value(source.operands[0]), *bounds)
    # With its attributes: one of them may say that a number is within the integers.
    attributes = {name: source.attributes[name] for name in source.attributes}
    return emit(source.name, [part], op.results[0].type, **attributes)


@pattern(_SLICE)
def row_without_shape(op: ir.Operation) -> Replacement:
    """slice with steps along one dimension, of one place along that before -> the same of both as one dimension."""
    source, result = Value(op.operands[0]), Value(op.results[0])
    if not is_static(op):
        return NoMatch("dynamic size")
    starts, limits, steps = (integers(op, name) for name in ("start_indices", "limit_indices", "strides"))
    dims, places = source.dims, result.dims
    rows = [d for d in range(len(dims) - 1) if places[d] == 1 and steps[d + 1] > 1]
    if not rows:
        return NoMatch("it has no steps of one row")
    first = rows[0]
    before = starts[first] * dims[first + 1]
    if (cut := origin(source.ir)) is not None and cut.name == "stablehlo.dynamic_slice":
        source = ops.optimization_barrier(source)  # a row whose place is known at run time
    flat = ops.reshape(source, [*dims[:first], dims[first] * dims[first + 1], *dims[first + 2 :]])
    bounds = [[*values[:first], *values[first + 1 :]] for values in (starts, limits, steps)]
    bounds[0][first] += before
    bounds[1][first] += before
    return ops.reshape(ops.slice(flat, *bounds), places)


@pattern(_SLICE)
def steps_of_row(op: ir.Operation) -> Replacement:
    """slice with steps (slice of one row) -> the same of the array as one dimension."""
    row = Value(op.operands[0])
    starts, limits, steps = (integers(op, name) for name in ("start_indices", "limit_indices", "strides"))
    if not is_static(op) or max(steps, default=1) == 1 or sum(size > 1 for size in row.dims) != 1:
        return NoMatch("it has no steps of one row")
    cut = defining_op(_reshaped(op.operands[0]))
    if cut is None or cut.name not in _SLICES:
        return NoMatch("it reads no slice")
    if cut.name != _SLICE:
        op.operands[0] = ops.optimization_barrier(row).ir
        return REWRITTEN
    source, (along,) = Value(cut.operands[0]), [d for d, size in enumerate(row.dims) if size > 1]
    taken = [d for d, size in enumerate(Value(cut.results[0]).dims) if size > 1]
    if set(integers(cut, "strides")) != {1} or prod(source.dims[taken[0] + 1 :]) != 1:
        return NoMatch("its elements are no neighbours")
    first = 0
    for size, start in zip(source.dims, integers(cut, "start_indices"), strict=True):
        first = first * size + start
    flat = ops.reshape(source, [prod(source.dims)])
    part = ops.slice(flat, [first + starts[along]], [first + limits[along]], [steps[along]])
    return ops.reshape(part, Value(op.results[0]).dims)


@pattern(_SLICE)
def steps_in_memory(op: ir.Operation) -> Replacement:
    """slice with steps -> optimization_barrier (slice with steps)."""
    result: Any = op.results[0]
    uses = [use for use in result.uses if use.owner.operation.name not in _STORED]
    if not is_static(op) or max(integers(op, "strides"), default=1) == 1 or not uses:
        return NoMatch("it has no steps, or is in memory")
    with ir.InsertionPoint.after(op), op.location:
        stored = ops.optimization_barrier(Value(result)).ir
    for use in uses:
        use.owner.operands[use.operand_number] = stored
    return REWRITTEN


@pattern("stablehlo.reshape")
def single_element_in_memory(op: ir.Operation) -> Replacement:
    """reshape (slice) of one element to a higher rank -> reshape (optimization_barrier (slice))."""
    source, result = defining_op(op.operands[0]), Value(op.results[0])
    if source is None or source.name not in _SLICES or not is_static(op) or prod(result.dims) != 1:
        return NoMatch("it reads no slice of one element")
    names = {use.owner.operation.name for use in result.ir.uses}
    if len(result.dims) <= len(Value(op.operands[0]).dims) or names.isdisjoint(_STORED) or names <= {*_STORED}:
        return NoMatch("IREE returns it from no dispatch that computes with it")
    op.operands[0] = ops.optimization_barrier(Value(op.operands[0])).ir
    return REWRITTEN


@pattern("stablehlo.reduce")
def joined_before_sums(op: ir.Operation) -> Replacement:
    """Reduce what is joined behind a barrier."""
    sources = [origin(op.operands[number]) for number in range(len(op.results))]
    joined = [n for n, source in enumerate(sources) if source is not None and source.name == "stablehlo.concatenate"]
    return _keep_apart(op, joined)


def _reshaped(value: Any) -> Any:
    """What a value is a reshape of, or the value."""
    while is_made_by(value, "stablehlo.reshape"):
        value = value.owner.operation.operands[0]
    return value


def _widens(op: AnyOp) -> bool:
    if op.name != "stablehlo.convert":
        return False
    narrow, wide = (Value(value).element_type for value in (op.operands[0], op.results[0]))
    return bool(narrow.bits < wide.bits)


def _renames_wide(op: AnyOp) -> bool:
    """Whether an operation only takes what was widened for signed, or for unsigned."""
    source = defining_op(op.operands[0]) if op.name == "stablehlo.bitcast_convert" else None
    return source is not None and _widens(source)


@pattern("stablehlo.scatter")
def updated_behind_a_barrier(op: ir.Operation) -> Replacement:
    """Update the slice after a barrier."""
    sources = [origin(op.operands[number]) for number in range(len(op.results))]
    return _keep_apart(op, [number for number, source in enumerate(sources) if _is_sliced(source)])


def _is_sliced(op: Any | None) -> bool:
    return op is not None and (op.name in _SLICES or is_sliced_by_padding(op))


def _keep_apart(op: ir.Operation, numbers: Sequence[int]) -> Replacement:
    """Let an operation read these operands after barriers."""
    if not numbers:
        return NoMatch("it reads no slice")
    for number in numbers:
        op.operands[number] = ops.optimization_barrier(Value(op.operands[number])).ir
    return REWRITTEN


def _has_steps(value: SSAValue) -> bool:
    """Whether a value is, maybe a part of, a slice with steps."""
    source = origin(value)
    while source is not None and source.name in _SLICES:
        if source.name == _SLICE and any(step > 1 for step in integers(source, "strides")):
            return True
        source = origin(source.operands[0])
    return False


def _is_column(value: SSAValue) -> bool:
    """Whether neighbours of a slice without steps, such as ``x[..., 0]``, are no neighbours in what it was cut from."""
    source = origin(value)
    if source is None or source.name not in _SLICES or not source.results[0].type.has_static_shape:
        return False
    kept = source.results[0].type.shape
    last = max((axis for axis, size in enumerate(kept) if size > 1), default=len(kept))
    return bool(prod(source.operands[0].type.shape[last + 1 :]) > 1)


def _is_large(op: AnyOp) -> bool:
    """Whether IREE has code for a concatenation of columns."""
    result = op.results[0].type
    return bool(not result.has_static_shape or prod(result.shape) > _SMALL)


def _is_part_of_rows(value: Any) -> bool:
    """Whether a value is a slice, from a start known at run time, that does not take whole rows."""
    source = origin(value)
    if source is None or source.name != "stablehlo.dynamic_slice" or not source.results[0].type.shape:
        return False
    return bool(source.results[0].type.shape[-1] != source.operands[0].type.shape[-1])


def _is_spread_part(value: Any) -> bool:
    """Whether a value is a slice whose elements are no neighbours in the array, maybe in another order."""
    source = origin(value)
    if source is None or source.name != _SLICE or not is_static(source):
        return False
    taken, whole = Value(source.results[0]).dims, Value(source.operands[0]).dims
    return any(taken[d] != whole[d] and prod(taken[:d]) > 1 for d in range(len(taken)))


def _is_of_rows(value: Any) -> bool:
    """Whether a value has the rows of a slice without steps in them, such as window positions."""
    row = value.type.shape[-1]
    while is_made_by(value, "stablehlo.reshape"):
        value = value.owner.operands[0]
    slice_ = defining_op(value)
    if slice_ is None or slice_.name != _SLICE or slice_.results[0].type.shape[-1] != row:
        return False
    return row > 1 and integers(slice_, "strides")[-1] == 1 and not _has_steps(slice_.operands[0])


@register
@dataclass(frozen=True)
class LegalizeSlicedOperands(Pass):
    """Put barriers between slices and scatters into them, and between strided slices and operations that index them.

    Attributes:
        for_gpus: take steps of one row from the array without its shape, and have what has steps, and what is joined
            before sums, in memory.
    """

    name: ClassVar[str] = "legalize-sliced-operands"
    for_gpus: bool = False

    def run(self, module: ir.Module) -> None:
        if self.for_gpus:
            apply_patterns(module, (*row_without_shape, *steps_of_row))
            apply_patterns(module, (*steps_in_memory, *joined_before_sums, *single_element_in_memory))
        apart = (*read_behind_a_barrier, *skipped_behind_a_barrier, *updated_behind_a_barrier)
        apply_patterns(module, (*apart, *widened_behind_a_barrier, *narrow_part))
