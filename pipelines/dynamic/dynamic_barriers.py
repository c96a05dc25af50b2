"""``legalize-dynamic-barriers``: barriers of arrays whose sizes are known only at a call.

Before::

    %r = stablehlo.optimization_barrier %x : tensor<?x4xf32>

After::

    %b = util.optimization_barrier %x : tensor<?x4xf32>
    %r = flow.tensor.tie_shape %b : tensor<?x4xf32>{tensor.dim %x, 0}

IREE 3.13 cannot ask for the sizes of what a barrier passes on ("'tensor.dim' op unexpected during shape cleanup").
Source: StableHLO spec "optimization_barrier".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.mlir import ir
from hloforge.pipelines.dynamic.dynamic_shapes import is_dynamic
from hloforge.pipelines.framework import generics as at
from hloforge.pipelines.framework.builders import create
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.optimization_barrier")
def with_known_sizes(op: ir.Operation) -> Replacement:
    """A barrier whose results have the sizes of its operands."""
    if not any(map(is_dynamic, op.operands)):
        return NoMatch("static")
    plain = [at.signless(operand) for operand in op.operands]
    passed = create("util.optimization_barrier", plain, [array.type for array in plain]).results
    results = []
    for before, after, result in zip(plain, passed, op.results, strict=True):
        sizes = [size for size in at.sizes_of(before) if not isinstance(size, int)]
        tied = create("flow.tensor.tie_shape", [after, *sizes], [after.type]).results[0] if sizes else after
        results.append(at.restored(tied, result.type))
    return results


@register
@dataclass(frozen=True)
class LegalizeDynamicBarriers(PatternPass):
    """Tell IREE the sizes of results of barriers; runs after the passes that make barriers."""

    name: ClassVar[str] = "legalize-dynamic-barriers"
    patterns: ClassVar[tuple[Pattern, ...]] = with_known_sizes
