"""``fold-known-sizes``: sizes of arrays that the types say.

Before::

    %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>

After::

    %n = stablehlo.constant dense<3> : tensor<i32>
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.constants import constant
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integer
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern


@pattern("stablehlo.get_dimension_size")
def by_type(op: ir.Operation) -> Replacement:
    """get_dimension_size of a static dimension -> a constant."""
    type_, dimension = op.operands[0].type, integer(op, "dimension")
    if type_.is_dynamic_dim(dimension):
        return NoMatch("known at run time only")
    return constant(type_.get_dim_size(dimension), "s32")


@register
@dataclass(frozen=True)
class FoldKnownSizes(Pass):
    """Replace questions for static sizes by their answers."""

    name: ClassVar[str] = "fold-known-sizes"

    def run(self, module: ir.Module) -> None:
        apply_patterns(module, by_type)
