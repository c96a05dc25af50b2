"""``legalize-bf16-constants``: arrays of bf16 are constants of f32.

Before::

    %c = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xbf16>

After::

    %c = stablehlo.convert (constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>) : (tensor<3xf32>) -> tensor<3xbf16>

IREE 3.13 puts small constants into the code of a dispatch, and has no SPIR-V for those of bf16: it reads f32 where it
has written 16 bits ("'spirv.Bitcast' op mismatch"). The conversion is exact. Source: StableHLO spec "constant".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.mlir import ir
from hloforge.pipelines.framework.passes import VULKAN, PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.constant")
def from_f32(op: ir.Operation) -> Replacement:
    """The same numbers of f32, converted."""
    if not isinstance(op.results[0].type.element_type, ir.BF16Type):
        return NoMatch("not bf16")
    values = constant_of(op)
    if values.size < 2 or values.tobytes() == values.ravel()[:1].tobytes() * values.size:
        return NoMatch("one number")
    return ops.convert_element_type(constant(values.astype(np.float32), "f32"), "bf16")


@register
@dataclass(frozen=True)
class LegalizeBf16Constants(PatternPass):
    """Convert constants of f32 instead of arrays of bf16."""

    name: ClassVar[str] = "legalize-bf16-constants"
    targets: ClassVar[frozenset[str]] = VULKAN
    patterns: ClassVar[tuple[Pattern, ...]] = from_f32
