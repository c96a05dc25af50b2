"""``legalize-moved-loops``: what lies beside a loop's result in one array is in memory before it is placed there.

Before::

    %d = stablehlo.sine %x : tensor<4xf32>
    %v = stablehlo.cosine %x : tensor<4xf32>
    %r = stablehlo.if %p { ... %v ... } : tensor<4xf32>
    %z = stablehlo.concatenate %r, %d, dim = 0 : tensor<8xf32>

After::

    %b = stablehlo.optimization_barrier %d : tensor<4xf32>
    %z = stablehlo.concatenate %r, %b, dim = 0 : tensor<8xf32>

IREE 3.13 lets a dispatch write its result where it belongs in a concatenation, a padded array or what a slice updates.
It first moves before the dispatch what makes the rest of that array (``tryMoveProducerBefore``, of
``EmplaceAllocations``): with the operands of each operation, but without what the body of a loop or a conditional reads
from around it, ``%v`` here. If the dispatch comes first, its input is refused: "operand #1 does not dominate this use".

How: in each block, operations are followed from the loops and conditionals whose bodies read what is made in the block.
Where such a one is needed for the rest of the array, and not for a computed part, the part gets a barrier. Arguments of
the program and constants come before every dispatch. What a loop carries, its body reads by an operation of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import block_of, blocks, defining_op
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import Pass, register

_CONTROL = frozenset({"stablehlo.case", "stablehlo.if", "stablehlo.while", "scf.for", "scf.if", "scf.while"})
_IN_MEMORY = _CONTROL | {"stablehlo.constant", "stablehlo.optimization_barrier"}
_CONCATENATE = "stablehlo.concatenate"
# Operations that place one operand in an array; the others say where, and what is around it.
_PLACED = {"stablehlo.dynamic_update_slice": 1, "stablehlo.pad": 0}
_FUNCTION = "func.func"


@register
@dataclass(frozen=True)
class LegalizeMovedLoops(Pass):
    """Put barriers between what is computed and an array of which it becomes a part, beside the result of a loop."""

    name: ClassVar[str] = "legalize-moved-loops"
    needs: ClassVar[frozenset[str]] = _CONTROL

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for function in module.body.operations:
                for block in blocks(function):
                    _Loops().follow(block)


@dataclass
class _Loops:
    """The loops and conditionals of a block that IREE cannot move, numbered by the bits of a set.

    Attributes:
        count: how many there are.
        needed: those that must run before a value of the block is there; a value that needs none is left out.
    """

    count: int = 0
    needed: dict[SSAValue, int] = field(default_factory=dict)

    def follow(self, block: ir.Block) -> None:
        """Put barriers into a block and those inside of it."""
        for entry in list(block.operations):
            op = entry.operation
            self.place(op)
            needed = self.needed_by(op.operands)
            if op.name in _CONTROL:
                read = _read_from_around(op)
                needed |= self.needed_by(read)
                if any(_is_made_in(block, value) for value in read):
                    needed |= 1 << self.count
                    self.count += 1
                for inner in blocks(op):
                    _Loops().follow(inner)
            if needed:
                self.needed.update(dict.fromkeys(op.results, needed))

    def place(self, op: ir.Operation) -> None:
        """Let an operation that places parts in an array read them after a barrier, if a loop may be moved for them."""
        if op.name == _CONCATENATE:
            # Arrays are put into a concatenation in order: each one waits for those before it.
            around = 0
            for number, operand in enumerate(op.operands):
                self.place_part(op, number, around)
                around |= self.needed.get(operand, 0)
        elif op.name in _PLACED:
            part = _PLACED[op.name]
            self.place_part(op, part, self.needed_by(value for n, value in enumerate(op.operands) if n != part))

    def place_part(self, op: ir.Operation, number: int, around: int) -> None:
        """Let an operand be read after a barrier if it is computed, and could be without what is needed around it."""
        part = op.operands[number]
        if around & ~self.needed.get(part, 0) and _is_computed(part):
            with ir.InsertionPoint(op), op.location:
                op.operands[number] = ops.optimization_barrier(Value(part)).ir

    def needed_by(self, values: Iterable[SSAValue]) -> int:
        """The loops that must run before all of some values are there."""
        return reduce(or_, (self.needed.get(value, 0) for value in values), 0)


def _is_computed(value: SSAValue) -> bool:
    """Whether a dispatch may write an array where it belongs. IREE copies those of unknown sizes by another one."""
    op = defining_op(value)
    return op is not None and op.name not in _IN_MEMORY and Value(value).shape.is_static


def _read_from_around(op: ir.Operation) -> set[SSAValue]:
    """The values that the blocks of an operation read, and that are made outside of it."""
    own: set[Any] = set()
    read: set[SSAValue] = set()

    def visit(inner: ir.Operation) -> None:
        for block in blocks(inner):
            own.add(block)
            for entry in block.operations:
                read.update(entry.operation.operands)
                visit(entry.operation)

    visit(op)
    return {value for value in read if block_of(value) not in own}


def _is_made_in(block: ir.Block, value: SSAValue) -> bool:
    """Whether a value may be made after an operation of the block; a carry may be, by an operation that reads it."""
    if block_of(value) != block:
        return False
    op = defining_op(value)
    return block.owner.operation.name != _FUNCTION if op is None else op.name != "stablehlo.constant"
