"""Collectives as plain operations on the operands of all members of a group, in the group's order.

Each has two steps: what all members compute alike (``combined``), and what a member takes of it by its position in the
group (``share``), a number or a scalar that is known at run time. So folding, where the operands of all members are
values of one program, and threads, where they arrive from the communicator, compute by the same code.

Source: XLA "AllReduce", "AllGather", "AllToAll", "ReduceScatter", "CollectiveBroadcast"; StableHLO specification of
the same names.
"""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.dialect import ops
from hloforge.dialect.computations import fill_region
from hloforge.dialect.element_types import ElementType, element_type, mlir_type
from hloforge.dialect.emission import create, i64s
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.operations import location_of
from hloforge.dialect.regions import inline_region
from hloforge.dialect.values import Value

REDUCING = frozenset({"stablehlo.all_reduce", "stablehlo.reduce_scatter"})
# Operations whose result depends on the position in the group.
PLACED = frozenset({"stablehlo.all_to_all", "stablehlo.reduce_scatter"})
GROUPED = REDUCING | PLACED | {"stablehlo.all_gather", "stablehlo.collective_broadcast"}
PERMUTE = "stablehlo.collective_permute"
COLLECTIVES = GROUPED | {PERMUTE}


def combined(
    op: AnyOp, members: Sequence[Sequence[Value]], ragged: tuple[int, Value] | None = None
) -> list[list[Value]]:
    """What all members of a group compute alike of their operands: one list of arrays for each result.

    Args:
        members: the operands of each member, in the group's order.
        ragged: of a reduction whose groups differ in size: the least size, and the size of this group, a scalar that
            is known at run time. Members beyond it are left out.

    Raises:
        UnsupportedError: the group has another number of members than the operation's result allows.
    """
    columns = list(zip(*members, strict=True))
    if op.name in REDUCING:
        arrays = [[reduced(op, column, ragged)] for column in columns]
    elif op.name == "stablehlo.all_gather":
        arrays = [[ops.concat_in_dim(column, number_attribute(op, "all_gather_dim"))] for column in columns]
    elif op.name == "stablehlo.collective_broadcast":
        arrays = [[column[0]] for column in columns]
    else:
        arrays = [list(column) for column in columns]
    check_size(op, len(members))
    return arrays


def share(op: AnyOp, arrays: Sequence[Sequence[Value]], place: int | Value) -> list[Value]:
    """What the member at ``place`` takes of what ``combined`` gave: the results of the operation."""
    if op.name == "stablehlo.reduce_scatter":
        along = number_attribute(op, "scatter_dimension")
        return [
            _block(whole, along, result.type.shape[along], place)
            for (whole,), result in zip(arrays, op.results, strict=True)
        ]
    if op.name == "stablehlo.all_to_all":
        split, joined = number_attribute(op, "split_dimension"), number_attribute(op, "concat_dimension")
        return [
            ops.concat_in_dim([_block(x, split, x.dims[split] // len(column), place) for x in column], joined)
            for column in arrays
        ]
    return [whole for (whole,) in arrays]


def reduced(op: AnyOp, column: Sequence[Value], ragged: tuple[int, Value] | None = None) -> Value:
    """The arrays of all members combined by the computation of ``op``, the first two first; ``ragged`` as above.

    Sums and products of bf16 are of f32, those of 8-bit floats of f16, rounded once, as in XLA's CPU client.
    """
    element = Value(op.regions[0].blocks[0].arguments[0]).element_type
    wide = _wide_type(op)
    plain = _PLAIN[plain_operation(op.regions[0])] if wide else None
    total, *others = [ops.convert_element_type(value, wide or element) for value in column]
    for number, value in enumerate(others, 1):
        more = plain(total, value) if plain else apply_elementwise(op.regions[0], [total, value])
        if ragged is not None and number >= ragged[0]:
            more = ops.select(ragged[1] > number, more, total)
        total = more
    return ops.convert_element_type(total, Value(op.results[0]).element_type)


def terms(op: AnyOp) -> list[Value]:
    """The operands of a collective as its members give them: in the type in which they are reduced.

    XLA's client converts them before it sends them, and so rounds no sum that only a reduction over devices reads.
    """
    operands = [Value(operand) for operand in op.operands]
    wide = _wide_type(op) if op.name in REDUCING else None
    return [ops.convert_element_type(operand, wide) for operand in operands] if wide else operands


def _wide_type(op: AnyOp) -> ElementType | None:
    """In what a reduction of narrow floats is computed; None for its own type."""
    element = Value(op.regions[0].blocks[0].arguments[0]).element_type
    wide = _WIDE.get("f8" if element.is_float and element.bits == 8 else element.name)
    return element_type(wide) if wide and plain_operation(op.regions[0]) in _PLAIN else None


_WIDE = {"bf16": "f32", "f8": "f16"}
_PLAIN = {"stablehlo.add": ops.add, "stablehlo.multiply": ops.mul}


def plain_operation(region: ir.Region) -> str:
    """The sum or product that a computation is, of its arguments and of their type; empty for others."""
    block = region.blocks[0]
    first, *others = block.operations
    if len(others) != 1:
        return ""
    is_whole = {*first.operands} == {*block.arguments} and [*others[0].operands] == [*first.results]
    return str(first.operation.name) if is_whole and first.results[0].type == block.arguments[0].type else ""


def apply_elementwise(region: ir.Region, arrays: Sequence[Value]) -> Value:
    """A region over scalars, applied to the elements of arrays of equal sizes."""
    *_, terminator = region.blocks[0].operations
    scalar = Value(terminator.operation.operands[0]).element_type
    sizes = arrays[0].type.shape
    mapped = create(
        "stablehlo.map",
        arrays,
        [ir.RankedTensorType.get(sizes, mlir_type(scalar))],
        1,
        dimensions=i64s(range(len(sizes))),
    )
    types = [argument.type for argument in region.blocks[0].arguments]
    fill_region(mapped.regions[0], types, lambda *scalars: inline_region(region, scalars))
    return Value(mapped.results[0])


def _block(value: Value, along: int, size: int, place: int | Value) -> Value:
    """The block of ``size`` at a place, of equal blocks along a dimension."""
    sizes = [size if d == along else extent for d, extent in enumerate(value.dims)]
    if isinstance(place, int):
        starts = [place * size if d == along else 0 for d in range(value.rank)]
        limits = [start + extent for start, extent in zip(starts, sizes, strict=True)]
        return ops.slice(value, starts, limits)
    return ops.dynamic_slice(value, [place * size if d == along else place * 0 for d in range(value.rank)], sizes)


def check_size(op: AnyOp, members: int) -> None:
    """The sizes of operand and result tell how many members a group has. Raises UnsupportedError for another number."""
    before, after = op.operands[0].type.shape, op.results[0].type.shape
    if op.name == "stablehlo.all_gather":
        along = number_attribute(op, "all_gather_dim")
        fits = before[along] * members == after[along]
    elif op.name == "stablehlo.reduce_scatter":
        along = number_attribute(op, "scatter_dimension")
        fits = after[along] * members == before[along]
    elif op.name == "stablehlo.all_to_all":
        fits = number_attribute(op, "split_count") == members
    else:
        fits = True
    if not fits:
        raise UnsupportedError(
            f"{op.name} from {op.operands[0].type} to {op.results[0].type} does not fit a group of {members} members",
            location=location_of(op),
            hint="run the program with the replicas and partitions that it was made for: --replicas, --partitions",
        )


def number_attribute(op: AnyOp, name: str) -> int:
    return int(ir.IntegerAttr(op.attributes[name]).value)
