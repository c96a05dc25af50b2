"""The factors of a product as stored in memory, before operations that only rearrange or widen them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod
from typing import Any

from hloforge.dialect.mlir import AnyOp, ir, stablehlo
from hloforge.dialect.operations import integers, is_made_by
from hloforge.dialect.values import Value

# What a factor is read through.
_TRANSPOSE, _CONVERT, _RESHAPE, _SLICE = (
    f"stablehlo.{name}" for name in ("transpose", "convert", "reshape", "dynamic_slice")
)
# Operations that read an array of layers, and do not write a next one into its place.
_READERS = frozenset(
    (
        _SLICE,
        "stablehlo.slice",
        "stablehlo.dot_general",
        "stablehlo.return",
        "flow.dispatch",
        "flow.dispatch.workgroups",
    )
)


@dataclass(frozen=True)
class Factor:
    """A factor of a product: an array, and which of its dimensions are of the batch, summed or free.

    Attributes:
        array: as it lies in memory.
        batch, summed: dimensions of the array, in the order of the product.
        free: the others, in the order of the result.
        chosen: the dimension of which ``start``, clamped, chooses one position; None if all of the array is the factor.
    """

    array: Value
    batch: tuple[int, ...]
    summed: tuple[int, ...]
    free: tuple[int, ...]
    chosen: int | None = None
    start: Value | None = None

    def count(self, dims: Sequence[int]) -> int:
        return prod(self.array.dims[d] for d in dims)

    @property
    def bytes(self) -> int:
        """Of what is read."""
        return self.count((*self.batch, *self.summed, *self.free)) * self.array.element_type.bits // 8

    @property
    def roles(self) -> str:
        """The dimensions of the array in groups of one role: ``b``, ``k`` or ``n`` each, ``i`` of the chosen one.

        Those of size 1 do not count.
        """
        role = {d: name for name, dims in (("b", self.batch), ("k", self.summed), ("n", self.free)) for d in dims}
        dims = [d for d in range(self.array.rank) if self.array.dims[d] != 1]
        return "".join(name for name, _ in groupby(role.get(d, "i") for d in dims))


def factors_of(op: AnyOp) -> tuple[Factor, Factor]:
    """The operands of a ``dot_general``."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    found = []
    for operand, side in zip(op.operands, ("lhs", "rhs"), strict=True):
        array = Value(operand)
        batch = tuple(getattr(numbers, f"{side}_batching_dimensions"))
        summed = tuple(getattr(numbers, f"{side}_contracting_dimensions"))
        found.append(Factor(array, batch, summed, tuple(d for d in range(array.rank) if d not in (*batch, *summed))))
    return found[0], found[1]


def as_stored(factor: Factor, wide: str, narrow: Sequence[str]) -> Factor:
    """The factor before transposes, conversions from ``narrow`` types to ``wide``, and the choice of a layer."""
    while True:
        owner = factor.array.ir.owner
        if isinstance(owner, ir.Block):
            return factor
        op = owner.operation
        if op.name == _TRANSPOSE:
            order = integers(op, "permutation")
            factor = _moved(factor, Value(op.operands[0]), order)
        elif op.name == _CONVERT and _widens(op, wide, narrow):
            factor = replace(factor, array=Value(op.operands[0]))
        elif op.name == _RESHAPE and factor.chosen is None and (layer := _layer(op)) is not None:
            chosen, choice = layer
            stack = Value(choice.operands[0])
            kept = [d for d in range(stack.rank) if d != chosen]
            factor = replace(_moved(factor, stack, kept), chosen=chosen, start=Value(choice.operands[1 + chosen]))
        else:
            return factor


def _moved(factor: Factor, array: Value, places: Sequence[int]) -> Factor:
    """The factor in an array whose dimension ``places[d]`` is its dimension ``d``."""
    parts = [tuple(places[d] for d in part) for part in (factor.batch, factor.summed, factor.free)]
    chosen = None if factor.chosen is None else places[factor.chosen]
    return replace(factor, array=array, batch=parts[0], summed=parts[1], free=parts[2], chosen=chosen)


def _widens(op: AnyOp, wide: str, narrow: Sequence[str]) -> bool:
    source, target = Value(op.operands[0]), Value(op.results[0])
    return source.element_type.name in narrow and target.element_type.name == wide


def _layer(op: AnyOp) -> tuple[int, Any] | None:
    """The dimension and the slice of ``reshape(dynamic_slice)`` that takes one position of it and drops it."""
    owner = op.operands[0].owner
    if isinstance(owner, ir.Block) or owner.operation.name != _SLICE:
        return None
    stack, part = Value(owner.operation.operands[0]), Value(op.operands[0])
    if not stack.shape.is_static:
        return None
    cut = [d for d in range(stack.rank) if part.dims[d] != stack.dims[d]]
    if len(cut) != 1 or part.dims[cut[0]] != 1 or Value(op.results[0]).dims != _without(part.dims, cut[0]):
        return None
    start = Value(owner.operation.operands[1 + cut[0]])
    is_read_only = all(use.owner.operation.name in _READERS for use in stack.ir.uses)
    return (cut[0], owner.operation) if is_read_only and start.element_type.name in ("s32", "s64") else None


def _without(dims: Sequence[int], dropped: int) -> tuple[int, ...]:
    return tuple(size for d, size in enumerate(dims) if d != dropped)


def erase_unread(value: Any) -> None:
    """Erase what the factor is read through, where nothing else reads it."""
    read_through = (_TRANSPOSE, _CONVERT, _RESHAPE, _SLICE)
    while is_made_by(value, *read_through) and not list(value.uses):
        op = value.owner.operation
        value = op.operands[0]
        op.erase()
