"""``flatten-tuples``: replace tuples by their elements.

Before::

    func.func @main(%t: tuple<tensor<2xf32>, tensor<f32>>) -> tensor<f32> {
      %e = stablehlo.get_tuple_element %t[1] : (tuple<tensor<2xf32>, tensor<f32>>) -> tensor<f32>
      return %e : tensor<f32> }

After::

    func.func @main(%x: tensor<2xf32>, %e: tensor<f32>) -> tensor<f32> { return %e : tensor<f32> }

A tuple is a way to name several values at once; XLA's converter takes those of HLO apart, and
StableHLO text may hold them. Operands of custom calls stay tuples. Source: XLA "Tuple", "GetTupleElement".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.mlir import ir
from hloforge.dialect.tuples import flatten_tuples
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register


@register
@dataclass(frozen=True)
class FlattenTuples(Pass):
    """Replace tuples in functions and calls by their leaves."""

    name: ClassVar[str] = "flatten-tuples"
    requires: ClassVar[Facts] = frozenset({Fact.ONE_FUNCTION})
    establishes: ClassVar[Facts] = frozenset({Fact.NO_TUPLES})

    def run(self, module: ir.Module) -> None:
        flatten_tuples(module)
