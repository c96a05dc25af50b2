"""``inline-fusions``: replace fusions by their bodies.

Before::

    %r = "mhlo.fusion"(%x) ({ ^bb0(%a: tensor<4xf32>): %0 = stablehlo.sine %a ... mhlo.return %0 }) ...

After::

    %r = stablehlo.sine %x

A fusion is XLA's decision about code generation; IREE takes its own. Source: XLA "Fusion" (HLO only).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.inlining import splice
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.facts import NOTHING, REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register

_FUSION = "mhlo.fusion"


@register
@dataclass(frozen=True)
class InlineFusions(Pass):
    """Inline every fusion, inner ones first."""

    name: ClassVar[str] = "inline-fusions"
    removes: ClassVar[frozenset[str]] = frozenset({_FUSION})
    needs: ClassVar[frozenset[str]] = removes
    requires: ClassVar[Facts] = NOTHING
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.ONE_FUNCTION})

    def run(self, module: ir.Module) -> None:
        for fusion in operations(module, self.removes):
            splice(fusion, fusion.regions[0].blocks[0])
