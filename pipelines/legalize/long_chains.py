"""``legalize-long-chains``: elementwise operations in a row, in pieces that IREE takes one by one.

Before::

    %1 = stablehlo.add %0, %x ... %20000 = stablehlo.multiply %19999, %x

After, at every 512th::

    %512 = stablehlo.add %511, %x
    %h = stablehlo.optimization_barrier %512
    %513 = stablehlo.multiply %h, %x

IREE fuses a chain by merging two operations at a time, each time with a copy of all that is merged already: 8,000
additions take it 26 of 39 s of processor time, and 20,000 some minutes. In pieces 20,000 take 29 s in all. A piece is
so long that writing and reading its result is little beside its arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import blocks, operations
from hloforge.dialect.traits import ELEMENTWISE, Kind, of_kind
from hloforge.pipelines.passes import Pass, register

_BARRIER = "stablehlo.optimization_barrier"
_MOVES = of_kind(Kind.MOVES)


@register
@dataclass(frozen=True)
class LegalizeLongChains(Pass):
    """Put a barrier where an elementwise expression is too deep; arrays of dynamic sizes have none.

    Attributes:
        longest: operations in a row without a barrier.
    """

    name: ClassVar[str] = "legalize-long-chains"
    longest: int = 512

    def run(self, module: Any) -> None:
        found = operations(module)
        if len(found) <= self.longest:
            return
        with in_context(module):
            for op in found:
                for block in blocks(op):
                    self.cut(block)

    def cut(self, block: Any) -> None:
        """Put barriers into a block."""
        # By values: operations that are asked for twice may be unequal keys.
        depths: dict[Any, int] = {}
        held: dict[Any, Any] = {}
        for view in list(block.operations):
            op = view.operation
            is_elementwise = op.name in ELEMENTWISE
            if not is_elementwise and op.name not in _MOVES:
                continue
            operands = list(op.operands)
            before = [depths.get(operand, 0) for operand in operands]
            depth = max(before, default=0) + is_elementwise
            depths.update((result, depth) for result in op.results)
            piece = self.piece(depth)
            for number, (operand, below) in enumerate(zip(operands, before, strict=True)):
                if below and self.piece(below) < piece and ir.RankedTensorType(operand.type).has_static_shape:
                    if operand not in held:
                        with ir.InsertionPoint(op), operand.owner.location:
                            barrier = ir.Operation.create(_BARRIER, results=[operand.type], operands=[operand])
                        held[operand] = barrier.results[0]
                    op.operands[number] = held[operand]

    def piece(self, depth: int) -> int:
        """The number of the piece that an operation belongs to, by the operations above it."""
        return (depth - 1) // self.longest
