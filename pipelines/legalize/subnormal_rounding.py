"""``legalize-subnormal-rounding``: ceil and floor of subnormal numbers.

Before::

    %r = stablehlo.floor %x : tensor<4xf32>

After::

    %n = select (%x is subnormal and negative, by its bits), -1.0, %x
    %r = stablehlo.floor %n {hloforge.normal}

IREE runs with subnormals flushed, where the floor of -1e-40 is -0. Truncations stay (``keep-truncations``).
Source: StableHLO spec "floor", "ceil".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import ml_dtypes

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.emission import emit
from hloforge.dialect.marks import NORMAL
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import may_flush_a_subnormal
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.legalize.keep_truncations import of_its_own


@pattern("stablehlo.ceil", "stablehlo.floor")
def of_normal_numbers(op: ir.Operation) -> Replacement:
    """A subnormal number is rounded as 1 or -1 where that is away from zero."""
    if not may_flush_a_subnormal(op):
        return NoMatch("no subnormal number is flushed")
    x = Value(op.operands[0])
    row = x.element_type
    word = ops.bitcast_convert_type(x, f"u{row.bits}")
    mantissas = 1 << int(ml_dtypes.finfo(row.dtype).nmant)
    first, away = (1, 1.0) if op.name == "stablehlo.ceil" else ((1 << (row.bits - 1)) + 1, -1.0)
    # The codes of subnormal numbers of one sign follow that of zero.
    subnormal = word - full(word, first) < mantissas - 1
    normal = ops.select(subnormal, full(x, away), x)
    return emit(op.name, [normal], x.type, **{NORMAL: ir.UnitAttr.get()})


@register
@dataclass(frozen=True)
class LegalizeSubnormalRounding(PatternPass):
    """Prevent ceil and floor from reading subnormal numbers as zero."""

    name: ClassVar[str] = "legalize-subnormal-rounding"
    patterns: ClassVar[tuple[Pattern, ...]] = (*of_its_own, *of_normal_numbers)
