"""``drop-copies``: values have no memory of their own here, so a copy is its operand.

Before::

    %r = mhlo.copy %x : tensor<4xf32>
    %s = mhlo.add_dependency %r, %token : ...

After: uses of ``%r`` and ``%s`` are uses of ``%x``. A copy that changes the layout means nothing either: layouts exist
only at the entry (dialect/abi.py). A dependency orders effects, which order themselves by tokens.
``optimization_barrier`` stays. Source: XLA "Copy" (HLO only), "AddDependency" (HLO only), "Domain" (HLO only).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register


@register
@dataclass(frozen=True)
class DropCopies(Pass):
    """Replace copies, dependencies and sharding domains by their operand."""

    name: ClassVar[str] = "drop-copies"
    removes: ClassVar[frozenset[str]] = frozenset({"mhlo.copy", "mhlo.add_dependency", "mhlo.domain"})
    needs: ClassVar[frozenset[str]] = removes
    requires: ClassVar[Facts] = frozenset({Fact.NO_TUPLES, Fact.ONE_FUNCTION})

    def run(self, module: ir.Module) -> None:
        for op in operations(module, self.removes):
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
