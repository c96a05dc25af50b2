"""``legalize-half-factorizations``: factorizations and triangular systems of 16-bit floats in f32.

Before::

    %l = stablehlo.cholesky %a, lower = true : tensor<4x4xbf16>

After::

    %w = stablehlo.cholesky (stablehlo.convert %a), lower = true : tensor<4x4xf32>
    %l = stablehlo.convert %w : (tensor<4x4xf32>) -> tensor<4x4xbf16>

The algorithms of code generation are written for f32 and wider.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.pipelines.decompose import cholesky, triangular_solve
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import Pattern


@register
@dataclass(frozen=True)
class LegalizeHalfFactorizations(PatternPass):
    """Compute factorizations of 16-bit floats in f32."""

    name: ClassVar[str] = "legalize-half-factorizations"
    patterns: ClassVar[tuple[Pattern, ...]] = (*cholesky.in_f32, *triangular_solve.in_f32)
