"""``legalize-dynamic-shapes``: operations on sizes known only at a call, in forms that IREE compiles.

Before::

    %r = "stablehlo.dynamic_gather"(%x, %i, %sizes) {...} : (tensor<?x4xf32>, tensor<?x1xi32>, tensor<2xi32>) -> ...

After::

    %r = linalg.generic ... { tensor.extract %x[clamp(%i[...]) + ..., ...] }

IREE 3.13 lacks dynamic gather, pad and update of a slice, takes a dynamic reshape or broadcast in some forms only, and
cannot ask for the size of an unsigned array. Arrays of static sizes stay as they are.
Source: StableHLO spec "dynamic_gather", "dynamic_pad", "dynamic_broadcast_in_dim", "dynamic_reshape",
"dynamic_update_slice".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.emission import emit
from hloforge.dialect.marks import IN_BOUNDS, OPAQUE_SIZES
from hloforge.dialect.mlir import AnyOp, SSAValue, ir, stablehlo
from hloforge.dialect.operations import integers, is_made_by
from hloforge.dialect.values import Value
from hloforge.pipelines.dynamic.size_symbols import element, size_of
from hloforge.pipelines.framework import generics as at
from hloforge.pipelines.framework.builders import create, index
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Pattern, Replacement, pattern

# Marks a value whose sizes IREE cannot see through.


def is_dynamic(value: SSAValue) -> bool:
    """Whether a size of an array is known at run time only."""
    return isinstance(value.type, ir.RankedTensorType) and not value.type.has_static_shape


def _sizes(op: ir.Operation, listed: SSAValue) -> list[at.Number]:
    """The sizes of an operation's result; those that its type leaves open from a list."""
    type_ = op.results[0].type
    return [at.entry(listed, d) if type_.is_dynamic_dim(d) else int(type_.get_dim_size(d)) for d in range(type_.rank)]


@pattern("stablehlo.get_dimension_size")
def size_of_unsigned(op: ir.Operation) -> Replacement:
    """The size of an unsigned array -> that of the signless one."""
    plain = at.signless(op.operands[0])
    if plain == op.operands[0]:
        return NoMatch("no unsigned array")
    return emit(op.name, [Value(plain)], op.results[0].type, dimension=op.attributes["dimension"])


@pattern("stablehlo.bitcast_convert")
def bitcast(op: ir.Operation) -> Replacement:
    """bitcast_convert between widths -> flow.tensor.bitcast; both sides have the same dynamic dimensions."""
    operand, result = op.operands[0], op.results[0]
    if operand.type.rank == result.type.rank or not is_dynamic(operand):
        return NoMatch("static, or of one width")
    plain = at.signless(operand)
    known = [size for size in at.sizes_of(plain) if not isinstance(size, int)]
    segments = ir.DenseI32ArrayAttr.get([1, len(known), len(known)])
    made = create(
        "flow.tensor.bitcast", [plain, *known, *known], [at.signless_type(result.type)], operandSegmentSizes=segments
    )
    return at.restored(made.results[0], result.type)


@pattern("stablehlo.dynamic_reshape")
def reshaped(op: ir.Operation) -> Replacement:
    """dynamic_reshape -> flow.tensor.reshape, which moves nothing."""
    operand, result = op.operands[0], op.results[0]
    if not is_dynamic(operand) and not is_dynamic(result):
        return emit("stablehlo.reshape", [Value(operand)], result.type)
    plain = at.signless(operand)
    known = [size for size in at.sizes_of(plain) if not isinstance(size, int)]
    wanted = [size for size in _sizes(op, op.operands[1]) if not isinstance(size, int)]
    type_ = ir.RankedTensorType.get(result.type.shape, plain.type.element_type)
    segments = ir.DenseI32ArrayAttr.get([1, len(known), len(wanted)])
    made = create("flow.tensor.reshape", [plain, *known, *wanted], [type_], operandSegmentSizes=segments)
    return at.restored(made.results[0], result.type)


@pattern("stablehlo.dynamic_broadcast_in_dim")
def broadcast(op: ir.Operation) -> Replacement:
    """dynamic_broadcast_in_dim -> repetition; a dimension that may be 1 and then be repeated is read by index."""
    operand, listed = op.operands
    type_ = op.results[0].type
    if not operand.type.rank:
        return NoMatch("a scalar, which IREE takes")
    plain = at.signless(operand)
    mapped = integers(op, "broadcast_dimensions")
    sizes = _sizes(op, listed)
    if any(_may_expand(op, d, target) for d, target in enumerate(mapped)):
        # A dimension of size 1 is read at 0, any other at the result's position.
        last = [at.subtract(size, 1) for size in at.sizes_of(plain)]

        def rule(*position: SSAValue) -> Any:
            return at.extract(plain, [at.minimum(position[d], end) for d, end in zip(mapped, last, strict=True)])

        return at.restored(at.array_by_index(sizes, plain.type.element_type, rule), type_)
    places = [None if size_of(operand, d) == 1 else target for d, target in enumerate(mapped)]
    return at.restored(at.repeated(plain, sizes, places), type_)


def _may_expand(op: ir.Operation, dimension: int, target: int) -> bool:
    """Whether a dimension of unknown size might be repeated: not if the result is known to have the same size."""
    size = size_of(op.operands[0], dimension)
    if isinstance(size, int) or size == element(op.operands[1], target):
        return False
    type_ = op.results[0].type
    stays = dimension in integers(op, "known_nonexpanding_dimensions")
    return not stays and (type_.is_dynamic_dim(target) or int(type_.get_dim_size(target)) != 1)


@pattern("stablehlo.dynamic_pad", "stablehlo.pad")
def padded(op: ir.Operation) -> Replacement:
    """A pad of dynamic sizes -> the operand's elements by index, and the padding's elsewhere."""
    if not is_dynamic(op.results[0]) and not is_dynamic(op.operands[0]) and op.name == "stablehlo.pad":
        return NoMatch("static")
    operand, padding = map(at.signless, list(op.operands)[:2])
    low, high, interior = _padding(op, operand.type.rank)
    sizes = at.sizes_of(operand)
    steps = [at.add(gap, 1) for gap in interior]
    fill = at.extract(padding, [])
    result = []
    for size, before, after, step in zip(sizes, low, high, steps, strict=True):
        spread = at.maximum(0, at.add(at.multiply(at.subtract(size, 1), step), 1))
        result.append(at.maximum(0, at.add(at.add(spread, before), after)))
    type_ = op.results[0].type

    def rule(*position: Any) -> Any:
        places = [at.subtract(i, before) for i, before in zip(position, low, strict=True)]
        inside = [at.compare("ge", place, 0) for place in places]
        for place, size, step in zip(places, sizes, steps, strict=True):
            inside.append(at.compare("lt", place, at.multiply(size, step)))
            if not isinstance(step, int) or step != 1:
                inside.append(at.compare("eq", at.remainder(place, step), 0))
        if not inside:
            return at.extract(operand, [])
        if 0 in operand.type.shape:
            # IREE refuses to read from it, even under a condition that never holds.
            return fill
        sources = [at.divide(place, step) for place, step in zip(places, steps, strict=True)]
        return at.choose(at.both(inside), lambda: at.extract(operand, sources), fill)

    made = at.array_by_index(at.as_declared(result, type_), operand.type.element_type, rule)
    return at.restored(made, type_)


def _padding(op: AnyOp, rank: int) -> tuple[list[at.Number], ...]:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    if op.name == "stablehlo.pad":
        return tuple(integers(op, name) for name in names)
    return tuple([at.entry(numbers, d) for d in range(rank)] for numbers in list(op.operands)[2:])


@pattern("stablehlo.gather", "stablehlo.dynamic_gather")
def gathered(op: ir.Operation) -> Replacement:
    """A gather of dynamic sizes -> the operand's elements by index, starts clamped."""
    if IN_BOUNDS in op.attributes or (op.name == "stablehlo.gather" and not any(map(is_dynamic, op.operands))):
        return NoMatch("static, or in bounds")
    operand, starts = at.signless(op.operands[0]), op.operands[1]
    plain_starts = at.signless(starts)
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    type_, sizes = op.results[0].type, at.sizes_of(operand)
    if op.name == "stablehlo.gather":
        windows: list[at.Number] = integers(op, "slice_sizes")
    else:
        windows = [at.entry(op.operands[2], d) for d in range(len(sizes))]
    offsets, vector = list(numbers.offset_dims), numbers.index_vector_dim
    lacking = [*numbers.collapsed_slice_dims, *numbers.operand_batching_dims]
    inner = [d for d in range(len(sizes)) if d not in lacking]
    batches = [d for d in range(type_.rank) if d not in offsets]
    places = [d for d in range(starts.type.rank) if d != vector]
    ends = [at.maximum(0, at.subtract(size, window)) for size, window in zip(sizes, windows, strict=True)]
    source = dict(zip(places, batches, strict=True))
    result: list[at.Number] = [0] * type_.rank
    for d, offset in zip(inner, offsets, strict=True):
        result[offset] = windows[d]
    for place, batch in source.items():
        result[batch] = at.size_at(plain_starts, place)

    def rule(*position: Any) -> Any:
        places_ = [position[source[d]] if d in source else None for d in range(starts.type.rank)]
        read: list[at.Number] = [0] * len(sizes)
        for number, d in enumerate(numbers.start_index_map):
            where = [index(number) if i is None else i for i in places_]
            read[d] = at.clamp(0, at.as_index(plain_starts, where, starts.type.element_type), ends[d])
        for d, place in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
            read[d] = position[source[place]]
        for d, offset in zip(inner, offsets, strict=True):
            read[d] = at.add(read[d], position[offset])
        return at.extract(operand, read)

    return at.restored(at.array_by_index(at.as_declared(result, type_), operand.type.element_type, rule), type_)


@pattern("stablehlo.dynamic_update_slice")
def updated(op: ir.Operation) -> Replacement:
    """dynamic_update_slice of dynamic sizes -> tensor.insert_slice at clamped positions, after a barrier."""
    if not any(map(is_dynamic, list(op.operands)[:2])):
        return NoMatch("static")
    operand, update = map(at.signless, list(op.operands)[:2])
    rank = operand.type.rank
    windows = at.sizes_of(update)
    places = [
        at.clamp(0, at.entry(start), at.maximum(0, at.subtract(size, window)))
        for start, size, window in zip(list(op.operands)[2:], at.sizes_of(operand), windows, strict=True)
    ]
    if _is_hidden(op.operands[0]):
        # IREE would update the array before the barrier, which others may still read.
        return at.restored(_with_window(operand, update, places, windows), op.results[0].type)
    open_ = ir.ShapedType.get_dynamic_size()
    dynamic = [window for window in windows if not isinstance(window, int)]
    # IREE takes a slice of the array itself for an update in place, and then copies between overlapping ranges.
    hidden = emit("stablehlo.optimization_barrier", [Value(update)], update.type)
    made = create(
        "tensor.insert_slice",
        [hidden.ir, operand, *map(at.as_value, places), *dynamic],
        [operand.type],
        static_offsets=ir.DenseI64ArrayAttr.get([open_] * rank),
        static_sizes=ir.DenseI64ArrayAttr.get([n if isinstance(n, int) else open_ for n in windows]),
        static_strides=ir.DenseI64ArrayAttr.get([1] * rank),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 1, rank, len(dynamic), 0]),
    )
    return at.restored(made.results[0], op.results[0].type)


def _is_hidden(value: Any) -> bool:
    return is_made_by(value, "stablehlo.optimization_barrier")


def _with_window(array: Any, window: Any, places: Sequence[at.Number], sizes: Sequence[at.Number]) -> Any:
    """A new array that is ``window`` in its place, and ``array`` elsewhere."""

    def rule(*position: Any) -> Any:
        offsets = [at.subtract(i, place) for i, place in zip(position, places, strict=True)]
        inside = [at.compare("ge", offset, 0) for offset in offsets]
        inside += [at.compare("lt", offset, size) for offset, size in zip(offsets, sizes, strict=True)]
        return at.choose(at.both(inside), lambda: at.extract(window, offsets), at.extract(array, position))

    return at.array_by_index(at.sizes_of(array), array.type.element_type, rule)


@pattern("stablehlo.while")
def with_opaque_sizes(op: ir.Operation) -> Replacement:
    """Hide from IREE that a loop keeps the sizes of what it carries.

    To IREE these are carries of their own; it drops those that are fixed from what the condition passes on, and then
    loses count ("region branch point has 4 operands, but region successor needs 5").
    """
    block = op.regions[1].blocks[0]
    *_, end = block.operations
    known = [n for n, value in enumerate(end.operation.operands) if is_dynamic(value) and not _is_opaque(value)]
    if not known:
        return NoMatch("IREE knows no size that it carries")
    with ir.InsertionPoint(end), end.location:
        for number in known:
            value = end.operation.operands[number]
            end.operation.operands[number] = _with_opaque_sizes(value, block.arguments[number])
    return REWRITTEN


def _is_opaque(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and OPAQUE_SIZES in value.owner.operation.attributes


def _with_opaque_sizes(value: Any, before: Any) -> Any:
    """The next value of a carry; a carry whose sizes the body does not read is counted wrongly too."""
    plain = at.signless(value)
    known, read = ([n for n in at.sizes_of(array) if not isinstance(n, int)] for array in (plain, at.signless(before)))
    hidden = create("util.optimization_barrier", [*known, *read], [n.type for n in (*known, *read)]).results
    made = create("flow.tensor.tie_shape", [plain, *list(hidden)[: len(known)]], [plain.type])
    made.attributes[OPAQUE_SIZES] = ir.UnitAttr.get()
    restored = at.restored(made.results[0], value.type).ir
    restored.owner.attributes[OPAQUE_SIZES] = ir.UnitAttr.get()
    return restored


PATTERNS = (
    *(*size_of_unsigned, *bitcast, *reshaped, *broadcast, *padded, *gathered),
    *(*updated, *with_opaque_sizes),
)


@register
@dataclass(frozen=True)
class LegalizeDynamicShapes(PatternPass):
    """Lower the dynamic operations that IREE does not support; runs when element types are IREE's own."""

    name: ClassVar[str] = "legalize-dynamic-shapes"
    patterns: ClassVar[tuple[Pattern, ...]] = PATTERNS
