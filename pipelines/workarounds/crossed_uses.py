"""``legalize-crossed-uses``: keep a sum or product apart from what reads it along two dimensions.

Before::

    %s = stablehlo.reduce(%x) ... : tensor<20xf32>
    %a = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<20xf32>) -> tensor<20x20xf32>
    %b = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<20xf32>) -> tensor<20x20xf32>
    %r = stablehlo.add %a, %b

After::

    %s = stablehlo.reduce(%x) ... : tensor<20xf32>
    %t = stablehlo.optimization_barrier %s
    %a = stablehlo.broadcast_in_dim %t, dims = [0] ...

IREE 3.13 puts the reduction and the sum %r into one dispatch, cut into tiles of rows. A tile computes its own rows of
%s alone, and reads those of other tiles before anybody computed them: all distances of pairs come out wrong. The same
holds for products of matrices, convolutions and windows, and for chains of reductions that IREE fuses.

How: every dimension of a reduction's result gets a label. Labels are followed through elementwise operations,
broadcasts, transpositions, reshapes, slices and further reductions. Where an operation meets one label in two
positions, the result that bears it gets a barrier.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, TypeAlias

from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import in_context, ir, stablehlo
from hloforge.dialect.operations import integers
from hloforge.dialect.program import entry_function
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import Pass, register

_ROOTS = frozenset(f"stablehlo.{name}" for name in ("reduce", "dot_general", "convolution", "reduce_window"))
# Operations that keep every dimension in its place.
_IN_PLACE = ELEMENTWISE | {
    f"stablehlo.{name}" for name in ("concatenate", "dynamic_slice", "dynamic_update_slice", "pad", "reverse", "slice")
}

# Labels end after so many reductions and products: IREE puts no more into one dispatch, and a residual connection would
# carry those of a whole model along.
_FUSED_ROOTS = 16

# A dimension of the result of an operation: the operation's number in its block, and the dimension's.
Label: TypeAlias = tuple[int, int]
# Where the elements along a labelled dimension lie in an array.
Places: TypeAlias = dict[Label, frozenset[int]]


@register
@dataclass(frozen=True)
class LegalizeCrossedUses(Pass):
    """Put a barrier after reductions and products whose results are read along two dimensions at once."""

    name: ClassVar[str] = "legalize-crossed-uses"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for block in _blocks(entry_function(module).operation):
                for root in _crossed(block):
                    _hold_back(root)


def _blocks(op: ir.Operation) -> Iterator[Any]:
    """The blocks whose operations are dispatched: of the function, and of its loops and branches."""
    for region in op.regions:
        yield from region.blocks
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name in ("stablehlo.while", "stablehlo.if", "stablehlo.case"):
                    yield from _blocks(inner.operation)


def _crossed(block: ir.Block) -> list[ir.Operation]:
    """The operations whose results something in the block reads along two dimensions."""
    known: dict[Any, Places] = {}
    roots: dict[int, Any] = {}
    crossed: set[int] = set()
    recent: deque[int] = deque([0], maxlen=_FUSED_ROOTS)
    for number, op in enumerate(inner.operation for inner in block.operations):
        made = _followed(op, [known.get(operand, {}) for operand in op.operands])
        places = _merged(made, crossed, recent[0])
        if op.name in _ROOTS:
            recent.append(number)
            roots[number] = op
            places = places | {(number, d): frozenset({d}) for d in range(len(op.results[0].type.shape))}
        if places:
            known.update(dict.fromkeys(op.results, places))
    return [roots[number] for number in sorted(crossed)]


def _merged(sources: Sequence[Places], crossed: set[int], first: int) -> Places:
    """All positions of each label of the operations from the ``first`` on; those that disagree go to ``crossed``."""
    merged: Places = {}
    for places in sources:
        for label, found in places.items():
            if label[0] < first:
                continue
            before = merged.get(label, found)
            if not (before <= found or found <= before):
                crossed.add(label[0])
            merged[label] = before | found
    return merged


def _followed(op: ir.Operation, operands: Sequence[Places]) -> list[Places]:
    """The labels of each operand in the result's dimensions; none where the operation reads all of an array."""
    if not any(operands):
        return []
    if op.name in _IN_PLACE:
        rank = len(op.results[0].type.shape)
        return [places for places, value in zip(operands, op.operands, strict=True) if len(value.type.shape) == rank]
    if op.name == "stablehlo.broadcast_in_dim":
        target = integers(op, "broadcast_dimensions")
        spread = [d for d, size in enumerate(op.operands[0].type.shape) if size == 1]
        return [_moved(operands[0], {d: {target[d]} for d in range(len(target)) if d not in spread})]
    if op.name == "stablehlo.transpose":
        order = integers(op, "permutation")
        return [_moved(operands[0], {old: {new} for new, old in enumerate(order)})]
    if op.name == "stablehlo.reshape":
        return [_moved(operands[0], _regrouped(op.operands[0].type.shape, op.results[0].type.shape))]
    if op.name == "stablehlo.reduce":
        gone = integers(op, "dimensions")
        kept = [d for d in range(len(op.operands[0].type.shape)) if d not in gone]
        return [_moved(places, {old: {new} for new, old in enumerate(kept)}) for places in operands]
    if op.name == "stablehlo.dot_general":
        return _outer_product(op, operands)
    return []


def _moved(places: Places, to: dict[int, set[int]]) -> Places:
    moved = {label: frozenset(new for old in found for new in to.get(old, ())) for label, found in places.items()}
    return {label: found for label, found in moved.items() if found}


def _regrouped(old: Sequence[int], new: Sequence[int]) -> dict[int, set[int]]:
    """The dimensions of a reshape's result that each dimension of its operand becomes a part of."""
    if any(size < 1 for size in (*old, *new)):
        return {d: set(range(len(new))) for d in range(len(old))}
    ends = [[prod(sizes[: d + 1]) for d in range(len(sizes))] for sizes in (old, new)]
    cuts = sorted(set(ends[0]) & set(ends[1]))

    def group(number: int, sizes: Sequence[int]) -> int:
        end = prod(sizes[: number + 1])
        return next(place for place, cut in enumerate(cuts) if cut >= end)

    of_new: dict[int, set[int]] = {}
    for d, size in enumerate(new):
        if size > 1:
            of_new.setdefault(group(d, new), set()).add(d)
    return {d: of_new.get(group(d, old), set()) for d, size in enumerate(old) if size > 1}


def _outer_product(op: ir.Operation, operands: Sequence[Places]) -> list[Places]:
    """Labels in a product that sums nothing, which IREE takes for an elementwise operation; none in any other."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    contracted = list(numbers.lhs_contracting_dimensions)
    if prod(op.operands[0].type.shape[d] for d in contracted) != 1:
        return []
    batches = [list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)]
    sums = [contracted, list(numbers.rhs_contracting_dimensions)]
    at, found = len(batches[0]), []
    for places, value, batch, summed in zip(operands, op.operands, batches, sums, strict=True):
        to = {old: {new} for new, old in enumerate(batch)}
        for d in range(len(value.type.shape)):
            if d not in batch and d not in summed:
                to[d] = {at}
                at += 1
        found.append(_moved(places, to))
    return found


def _hold_back(op: ir.Operation) -> None:
    """Let everybody read the results after a barrier."""
    with ir.InsertionPoint.after(op), op.location:
        for result in op.results:
            users = [(use.owner, use.operand_number) for use in result.uses]
            held = emit("stablehlo.optimization_barrier", [Value(result)], result.type).ir
            for user, number in users:
                user.operation.operands[number] = held
