"""``legalize-complex-constants``: constants of c128, and arrays of c64 for Vulkan, from their parts.

Before::

    %c = stablehlo.constant dense<(1.0, 2.0)> : tensor<4xcomplex<f64>>

After::

    %c = stablehlo.complex (constant 1.0), (optimization_barrier (constant 2.0))

IREE 3.13 fills arrays with patterns of at most 64 bits, and crashes on constants of 128. The barrier keeps it from
folding the parts together again. It has no SPIR-V for complex constants of unequal numbers.
Source: StableHLO spec "constant".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_wide_complex
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern


@pattern("stablehlo.constant")
def from_parts(op: ir.Operation) -> Replacement:
    """complex(real part, imaginary part)."""
    if not is_wide_complex(op):
        return NoMatch("not c128")
    return _of_parts(op)


@pattern("stablehlo.constant")
def array_from_parts(op: ir.Operation) -> Replacement:
    """The same, of arrays of unequal c64."""
    if not is_complex_array(op):
        return NoMatch("no array of unequal complex numbers")
    return _of_parts(op)


def is_complex_array(op: AnyOp) -> bool:
    """Whether a ``constant`` is an array of complex numbers that are not all the same."""
    if not isinstance(op.results[0].type.element_type, ir.ComplexType):
        return False
    values = constant_of(op)
    return values.tobytes() != values.ravel()[:1].tobytes() * values.size


def _of_parts(op: ir.Operation) -> Value:
    values = constant_of(op)
    element = "f64" if is_wide_complex(op) else "f32"
    return ops.complex(constant(values.real, element), ops.optimization_barrier(constant(values.imag, element)))


@register
@dataclass(frozen=True)
class LegalizeComplexConstants(Pass):
    """Build constants of c128 from constants of f64.

    Attributes:
        arrays: and arrays of unequal c64 from constants of f32.
    """

    arrays: bool = False
    name: ClassVar[str] = "legalize-complex-constants"
    establishes: ClassVar[Facts] = frozenset({Fact.SPLIT_CONSTANTS})

    def run(self, module: ir.Module) -> None:
        apply_patterns(module, (*from_parts, *array_from_parts) if self.arrays else from_parts)
