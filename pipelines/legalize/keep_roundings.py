"""``keep-roundings``: conversions to bf16 and on that the program itself has, as roundings that IREE does not fold.

Before::

    %y = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
    %z = stablehlo.convert %y : (tensor<4xbf16>) -> tensor<4xf32>

After::

    %z = stablehlo.reduce_precision %x, format = e8m7 : tensor<4xf32>

IREE 3.13 folds the two conversions where both stand in one dispatch, silently: ``sum(x.astype(bf16).astype(f32))``
added what was not rounded. XLA rounds. Stands before every pass that makes such conversions of its own accord, some of
which may fold (``legalize-bf16``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.reduce_precision import rounded
from hloforge.pipelines.legalize.bf16_signs import rounded_in_f32
from hloforge.pipelines.passes import Pass, register
from hloforge.pipelines.patterns import NoMatch, Replacement, apply_patterns, pattern

_READERS = frozenset({"f16", "f32", "f64", "c64", "c128"})


@pattern("stablehlo.convert")
def by_precision(op: Any) -> Replacement:
    """convert(convert(x, bf16), T) -> convert(reduce_precision(x), T)."""
    half, result = Value(op.operands[0]), Value(op.results[0])
    if half.element_type.name != "bf16" or result.element_type.name not in _READERS:
        return NoMatch("not from bf16 to another type of floats")
    if isinstance(half.ir.owner, ir.Block) or half.ir.owner.name != "stablehlo.convert":
        return NoMatch("not rounded by a conversion")
    source = Value(half.ir.owner.operands[0])
    if source.element_type.name == "f64":
        return ops.convert_element_type(rounded(source, 8, 7), result.element_type)
    if source.element_type.name not in {"f16", "f32"}:
        return NoMatch("bf16 has each number of its type, or the type has no fractions")
    return ops.convert_element_type(rounded_in_f32(ops.convert_element_type(source, "f32")), result.element_type)


@register
@dataclass(frozen=True)
class KeepRoundings(Pass):
    """Round where the program converts to bf16 and back."""

    name: ClassVar[str] = "keep-roundings"

    def run(self, module: Any) -> None:
        apply_patterns(module, by_precision)
