"""``legalize-long-chains``: split long chains of elementwise operations.

Before::

    %1 = stablehlo.add %0, %x ... %20000 = stablehlo.multiply %19999, %x

After, for every 512 of them::

    %a = linalg.generic ins(%0, %x) { %1 = arith.addf ... %512 = arith.mulf ... linalg.yield %512 }
    %b = stablehlo.optimization_barrier %a

IREE fuses a chain by merging two operations at a time, each time with a copy of all that is merged already: 8,000
additions took it 26 of 39 s of processor time, and 20,000 some minutes. So long chains are merged here, and a barrier
keeps IREE from merging the pieces. A piece is so long that writing and reading its result is little beside its
arithmetic. What has no code on single numbers (``elementwise.py``) is left as it is, with a barrier at every 512th.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import blocks, operations
from hloforge.dialect.traits import ELEMENTWISE, Kind, of_kind
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import create
from hloforge.pipelines.framework.elementwise import constant_number, filling, is_elementwise, on_numbers
from hloforge.pipelines.framework.generics import iterators, restored, signless, signless_type
from hloforge.pipelines.framework.passes import Pass, register

_BARRIER = "stablehlo.optimization_barrier"
_RETURNS = frozenset({"func.return", "stablehlo.return"})
_MOVES = of_kind(Kind.MOVES)
# IREE binds 32 arrays to a dispatch at most, and merges some of what is around a piece with it.
_MOST_ARRAYS = 16
# Of fewer operations IREE makes one itself.
_LEAST = 64


@dataclass
class _Piece:
    """Operations on arrays of one shape, in order, of which nothing else is in between."""

    members: list[Any] = field(default_factory=list)
    made: set[Any] = field(default_factory=set)

    def add(self, op: ir.Operation) -> None:
        self.members.append(op)
        self.made.update(op.results)


@register
@dataclass(frozen=True)
class LegalizeLongChains(Pass):
    """Split long chains of elementwise operations into pieces; arrays of dynamic sizes are not changed.

    Attributes:
        longest: operations in a row without a barrier.
    """

    name: ClassVar[str] = "legalize-long-chains"
    longest: int = 512

    def run(self, module: ir.Module) -> None:
        found = operations(module)
        if len(found) <= self.longest:
            return
        with in_context(module):
            for op in found:
                for block in blocks(op):
                    if self._is_deep(block):
                        self._merge(block)
                        self._cut(block)

    def _is_deep(self, block: ir.Block) -> bool:
        depths: dict[Any, int] = {}
        for view in block.operations:
            op = view.operation
            is_step = op.name in ELEMENTWISE
            if is_step or op.name in _MOVES:
                depth = max((depths.get(operand, 0) for operand in op.operands), default=0) + is_step
                if depth > self.longest:
                    return True
                depths.update((result, depth) for result in op.results)
        return False

    def _merge(self, block: ir.Block) -> None:
        """Make one operation of each piece; a piece ends before the first other operation that reads it."""
        pieces: dict[tuple[int, ...], _Piece] = {}
        for view in list(block.operations):
            op = view.operation
            if not is_elementwise(op):
                reads_all = bool(len(op.regions))
                for dims, piece in list(pieces.items()):
                    if reads_all or any(operand in piece.made for operand in op.operands):
                        _finish(pieces.pop(dims))
                continue
            piece = pieces.setdefault(Value(op.results[0]).dims, _Piece())
            if len(piece.members) == self.longest:
                _finish(piece)
                piece = pieces[Value(op.results[0]).dims] = _Piece()
            piece.add(op)

    def _cut(self, block: Any) -> None:
        """Put barriers where an expression is still too deep."""
        # By values: operations that are asked for twice may be unequal keys.
        depths: dict[Any, int] = {}
        held: dict[Any, Any] = {}
        for view in list(block.operations):
            op = view.operation
            is_step = op.name in ELEMENTWISE
            if not is_step and op.name not in _MOVES:
                continue
            operands = list(op.operands)
            before = [depths.get(operand, 0) for operand in operands]
            depth = max(before, default=0) + is_step
            depths.update((result, depth) for result in op.results)
            number = self._piece(depth)
            for place, (operand, below) in enumerate(zip(operands, before, strict=True)):
                if below and self._piece(below) < number and ir.RankedTensorType(operand.type).has_static_shape:
                    if operand not in held:
                        with ir.InsertionPoint(op), operand.owner.location:
                            held[operand] = _barrier(operand)
                    op.operands[place] = held[operand]

    def _piece(self, depth: int) -> int:
        """The number of the piece that an operation belongs to, by the operations above it."""
        return (depth - 1) // self.longest


def _finish(piece: _Piece) -> None:
    """Put one operation in the place of a piece, if it is long enough and reads and makes few arrays."""
    members = piece.members
    taken = list(dict.fromkeys(value for op in members for value in op.operands if value not in piece.made))
    arrays = [value for value in taken if filling(value) is None]
    inside = set(members)
    results = [op.results[0] for op in members if any(use.owner.operation not in inside for use in op.results[0].uses)]
    if len(members) < _LEAST or not 0 < len(arrays) + len(results) <= _MOST_ARRAYS:
        return
    with ir.InsertionPoint(members[-1]), members[-1].location:
        merged = _merged(members, arrays, results)
        for result, array in zip(results, merged, strict=True):
            whole = restored(array, result.type).ir
            ends = all(use.owner.operation.name in _RETURNS for use in result.uses if use.owner.operation not in inside)
            result.replace_all_uses_with(whole if ends else _barrier(whole))
    for op in reversed(members):
        op.erase()


def _merged(members: Sequence[Any], arrays: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """The results, signless, of elementwise operations as one ``linalg.generic``."""
    plain = [signless(array) for array in arrays]
    types = [signless_type(result.type) for result in results]
    rank = len(types[0].shape)
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))
    generic = create(
        "linalg.generic",
        [*plain, *(create("tensor.empty", [], [type_]).results[0] for type_ in types)],
        types,
        1,
        indexing_maps=ir.ArrayAttr.get([identity] * (len(plain) + len(types))),
        iterator_types=iterators(rank, 0),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(plain), len(types)]),
    )
    elements = [type_.element_type for type_ in (*(array.type for array in plain), *types)]
    with ir.InsertionPoint(ir.Block.create_at_start(generic.regions[0], elements)) as point:
        numbers = dict(zip(arrays, point.block.arguments, strict=False))
        for op in members:
            with op.location:
                for operand in op.operands:
                    if operand not in numbers:
                        numbers[operand] = constant_number(filling(operand))
                numbers[op.results[0]] = on_numbers(op, [numbers[operand] for operand in op.operands])
        create("linalg.yield", [numbers[result] for result in results], ())
    return list(generic.results)


def _barrier(array: SSAValue) -> Any:
    return ir.Operation.create(_BARRIER, results=[array.type], operands=[array]).result
