"""``legalize-many-arguments``: split operations that IREE would fuse into one dispatch with too many arrays.

Before::

    %2 = stablehlo.add %1, %arg2
    ...
    %60 = stablehlo.add %59, %arg60

After, each few arrays::

    %h = stablehlo.optimization_barrier %23
    %24 = stablehlo.add %h, %arg24

IREE 3.13 binds at most 32 buffers to a dispatch of a processor, 16 to one of CUDA and HIP, and says so when the vmfb is
loaded ("binding count 49 > 32"). What a program computes lies in one buffer as a rule; each argument, and what a loop
carries, in one of its own. What has several readers is taken to be computed once, and read from its buffer: what goes
from layer to layer of a model has read all biases.

What is computed may also lie in several buffers, and be computed with its readers. Where IREE's code for a GPU has a
dispatch with too many (``runtime/compile/bindings.py``), the program is compiled again, each array counted as a buffer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import blocks, operations
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.pipelines.framework.passes import Pass, register

# Of 32; the rest is for results, constants and what else the program computed.
_MOST = 24
# Of 16.
MOST_OF_CUDA = 10

_WITH_BLOCKS = ("func.func", "stablehlo.while")
_VIEWS = ("broadcast_in_dim", "concatenate", "pad", "reshape", "reverse", "slice", "transpose")
# IREE computes these with their consumers, and with what makes their operands.
_FUSED = ELEMENTWISE | {f"stablehlo.{name}" for name in (*_VIEWS, "reduce")}

_NONE: frozenset[Any] = frozenset()


@register
@dataclass(frozen=True)
class LegalizeManyArguments(Pass):
    """Put barriers after values computed from many arguments, so that their readers get one array instead.

    Attributes:
        most: arguments that one dispatch may read.
        of_all: count what the program computes like arguments.
    """

    name: ClassVar[str] = "legalize-many-arguments"
    most: int = _MOST
    of_all: bool = False

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for block in [block for op in operations(module, _WITH_BLOCKS) for block in blocks(op)]:
                if self.of_all or len(block.arguments) > self.most:
                    self._split(block)

    def _split(self, block: ir.Block) -> None:
        """Split what is computed of a block's arguments."""
        read: dict[Any, frozenset[Any]] = {argument: frozenset({argument}) for argument in block.arguments}
        for op in [op.operation for op in block.operations]:
            if op.name not in _FUSED:
                if self.of_all:
                    read.update((result, frozenset({result})) for result in op.results)
                continue
            for number in self._to_hide(op, read):
                with ir.InsertionPoint(op), op.location:
                    array = op.operands[number]
                    hidden = ir.Operation.create("stablehlo.optimization_barrier", [array.type], [array])
                    op.operands[number] = hidden.results[0]
                    if self.of_all:
                        read[op.operands[number]] = frozenset({op.operands[number]})
            reads = _NONE.union(*(read.get(operand, _NONE) for operand in op.operands))
            read.update((result, reads) for result in op.results if _has_one_reader(result))
            if self.of_all:
                read.update((result, reads | {result}) for result in op.results if not _has_one_reader(result))

    def _to_hide(self, op: ir.Operation, read: dict[Any, frozenset[Any]]) -> list[int]:
        """Operands, those of the most arguments first, without which an operation reads few enough."""
        sets = {number: read.get(operand, _NONE) for number, operand in enumerate(op.operands)}
        hidden = []
        while len(_NONE.union(*sets.values())) > self.most:
            number = max(sets, key=lambda number: len(sets[number]))
            if len(sets.pop(number)) < 2:
                break
            hidden.append(number)
        return hidden


def _has_one_reader(value: SSAValue) -> bool:
    uses = iter(value.uses)
    return next(uses, None) is not None and next(uses, None) is None
