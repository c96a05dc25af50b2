"""Collectives of large arrays in parts: every member of a group receives what it needs, and reduces a part for all.

To bring whole arrays of all R members to each of them moves R times the array. In parts it is about twice::

    %s = "stablehlo.all_reduce"(%x) ({ max })              each member reduces its part of all members' arrays:
    ->
    %parts = reshape %x                                     R rows
    %mine = map(rows of all_to_all(%parts)) ({ max })       row r of every member's array, reduced by member r
    %s = reshape all_gather(%mine)                          the rows of all members

Every member takes the parts that others reduced, so that all have the same bits. What the carrier of the arrays can
compute while it moves them (``PLAIN``: integers, and sums and products of f32 and f64) is left to it: MPI has
algorithms of its own for these, and in threads it saves a pass over the memory.

The host's collective has one form, with the members along a leading dimension; transposes to and from it are the
program's. Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH"
(2005); XLA "AllReduce", "AllGather", "AllToAll", "ReduceScatter".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType, mlir_type
from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.values import Value
from hloforge.pipelines.replicas.combine import number_attribute, reduced
from hloforge.pipelines.replicas.names import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER

_NAMES = {f"stablehlo.{name}": name for name in (ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER)}

# From this many bytes of operands on the further round of messages costs less than the copies that it saves.
LARGE = 256 * 1024

# The computations that carriers know, by operation and what the elements are: integers, booleans, floats of C. Largest
# and least floats are not among them, for MPI's do not hand on NaN.
_INTEGERS = {name: name for name in ("add", "multiply", "maximum", "minimum", "and", "or", "xor")}
_BOOLEANS = {"add": "or", "multiply": "and", "and": "and", "or": "or", "xor": "xor"}
_FLOATS = {"add": "add", "multiply": "multiply"}
PLAIN = frozenset(_INTEGERS)

# Makes a collective of a kind: of operands, with results of given sizes, and the computation of a reduction.
Call: TypeAlias = Callable[[str, Sequence[Value], Sequence[Sequence[int]], str], list[Value]]


def is_large(op: AnyOp) -> bool:
    """Whether a collective of these arrays is made in parts: known sizes, and many bytes in all."""
    shapes = [Value(operand).shape for operand in op.operands]
    if op.name not in _NAMES or not all(shape.is_static for shape in shapes):
        return False
    return sum(prod(shape.dimensions) * shape.element.dtype.itemsize for shape in shapes if shape.element) >= LARGE


def in_parts(
    op: AnyOp, operands: Sequence[Value], members: int, call: Call, computations: frozenset[str] = PLAIN
) -> list[Value]:
    """The results of a collective of a group of ``members``, by calls of the carrier's collectives.

    Args:
        computations: those of ``PLAIN`` that the carrier knows.
    """
    kind = _NAMES[op.name]
    if kind == ALL_REDUCE:
        return _all_reduce(op, operands, members, call, computations)
    if kind == ALL_GATHER:
        gathered = call(kind, operands, [(members, *x.dims) for x in operands], "")
        return [_joined(x, number_attribute(op, "all_gather_dim")) for x in gathered]
    along = number_attribute(op, "split_dimension" if kind == ALL_TO_ALL else "scatter_dimension")
    blocks = [_split(x, along, members) for x in operands]
    if kind == REDUCE_SCATTER:
        return _reduce_scatter(op, blocks, call, computations)
    joined = number_attribute(op, "concat_dimension")
    return [_joined(x, joined) for x in call(kind, blocks, [x.dims for x in blocks], "")]


def plain_computation(op: AnyOp) -> str:
    """The name of a reduction's computation, one of ``PLAIN``, if it is one and carriers know it for the elements."""
    first, *others = op.regions[0].blocks[0].operations
    block = op.regions[0].blocks[0]
    if len(others) != 1 or {*first.operands} != {*block.arguments} or [*others[0].operands] != [*first.results]:
        return ""
    # It may compute in another type than the arrays have.
    types = {Value(value).element_type for value in (*block.arguments, *first.results, *op.operands, *op.results)}
    if len(types) != 1:
        return ""
    return _known_for(types.pop()).get(first.operation.name.removeprefix("stablehlo."), "")


def _known_for(element: ElementType) -> dict[str, str]:
    if element.name == "pred":
        return _BOOLEANS
    if element.is_integer:
        return {} if element.is_sub_byte else _INTEGERS
    if element.name in ("f32", "f64"):
        return _FLOATS
    return {"add": "add"} if element.is_complex else {}


def _all_reduce(
    op: AnyOp, operands: Sequence[Value], members: int, call: Call, computations: frozenset[str]
) -> list[Value]:
    if (computation := plain_computation(op)) in computations:
        return call(ALL_REDUCE, operands, [x.dims for x in operands], computation)
    mine = _reduce_scatter(op, [_rows(x, members) for x in operands], call, computations)
    rows = call(ALL_GATHER, mine, [(members, *x.dims) for x in mine], "")
    return [
        ops.reshape(ops.slice(ops.reshape(every, [prod(every.dims)]), [0], [prod(x.dims)]), x.dims)
        for every, x in zip(rows, operands, strict=True)
    ]


def _reduce_scatter(op: AnyOp, blocks: Sequence[Value], call: Call, computations: frozenset[str]) -> list[Value]:
    """Each member's block of the reduction, of blocks along the leading dimension."""
    if (computation := plain_computation(op)) in computations:
        return call(REDUCE_SCATTER, blocks, [x.dims[1:] for x in blocks], computation)
    received = call(ALL_TO_ALL, blocks, [x.dims for x in blocks], "")
    return [reduced(op, [row(x, number) for number in range(x.dims[0])]) for x in received]


def _rows(value: Value, members: int) -> Value:
    """The elements in as many rows; what is missing is zeros."""
    count = prod(value.dims)
    width = -(-count // members)
    zero = ops.constant(0, value.element_type)
    flat = ops.reshape(value, [count])
    return ops.reshape(ops.pad(flat, zero, [(0, members * width - count, 0)]), [members, width])


def row(value: Value, number: int) -> Value:
    """One of the blocks along a leading dimension."""
    sizes = value.dims[1:]
    row = ops.slice(value, [number, *[0] * len(sizes)], [number + 1, *sizes])
    return ops.reshape(row, sizes)


def _split(value: Value, along: int, members: int) -> Value:
    """As many blocks along a dimension, as a leading one."""
    before, extent, behind = value.dims[:along], value.dims[along], value.dims[along + 1 :]
    cut = ops.reshape(value, [*before, members, extent // members, *behind])
    return ops.transpose(cut, [along, *(d for d in range(value.rank + 1) if d != along)])


def _joined(value: Value, along: int) -> Value:
    """Blocks of a leading dimension one after the other along a dimension of theirs."""
    members, *sizes = value.dims
    order = [*range(1, along + 1), 0, *range(along + 1, value.rank)]
    sizes[along] *= members
    return ops.reshape(ops.transpose(value, order), sizes)


def row_types(operands: Sequence[Value], sizes: Sequence[Sequence[int]]) -> list[Any]:
    """The types of results of such sizes, an operand's element type each."""
    return [
        ir.RankedTensorType.get(list(dims), mlir_type(x.element_type)) for x, dims in zip(operands, sizes, strict=True)
    ]
