"""``decompose-wide-functions``: functions of f64 for which code generation has no code of its own, as arithmetic.

Before::

    %s = stablehlo.cbrt %x : tensor<4xf64>

After: what ``decompose-cube-root`` makes of it::

    %b = stablehlo.bitcast_convert %x : (tensor<4xf64>) -> tensor<4xui64>
    %r = stablehlo.divide %n, %square : tensor<4xf64>

Functions of narrower floats stay: ``codegen/elements`` has shorter ones for them. So do all that it learns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from hloforge.dialect.mlir import ir
from hloforge.pipelines.codegen.elements.table import supports
from hloforge.pipelines.decompose.arctangent import by_octant
from hloforge.pipelines.decompose.cube_root import by_newton
from hloforge.pipelines.decompose.power import by_logarithm
from hloforge.pipelines.decompose.remainder import by_modular_powers
from hloforge.pipelines.decompose.trigonometric import by_quadrant
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement

_PATTERNS = (*by_octant, *by_newton, *by_logarithm, *by_modular_powers, *by_quadrant)


def _unless_supported(pattern: Pattern) -> Pattern:
    """The pattern for operations that the table of elements refuses."""

    def rewrite(op: ir.Operation) -> Replacement:
        types = [str(operand.type.element_type) for operand in op.operands]
        name, result = op.name.removeprefix("stablehlo."), str(op.results[0].type.element_type)
        if supports(name, types, result, is_alone=_is_one(op)):
            return NoMatch("code generation has code for it")
        return pattern.rewrite(op)

    return replace(pattern, rewrite=rewrite)


def _is_one(op: ir.Operation) -> bool:
    type_ = op.results[0].type
    return bool(type_.has_static_shape and prod(type_.shape) == 1)


@register
@dataclass(frozen=True)
class DecomposeWideFunctions(PatternPass):
    """Replace functions of f64 that ``codegen/elements`` lacks."""

    name: ClassVar[str] = "decompose-wide-functions"
    patterns: ClassVar[tuple[Pattern, ...]] = tuple(map(_unless_supported, _PATTERNS))
