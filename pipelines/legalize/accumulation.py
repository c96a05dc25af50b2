"""``legalize-accumulation``: accumulate sums of 16-bit floats in f32 and round once.

Before::

    %0 = stablehlo.dot_general %a, %b, ... : (tensor<64x512xbf16>, tensor<512x64xbf16>) -> tensor<64x64xbf16>

After::

    %1 = stablehlo.dot_general %a, %b, ... : (tensor<64x512xbf16>, tensor<512x64xbf16>) -> tensor<64x64xf32>
    %0 = stablehlo.convert %1 : (tensor<64x64xf32>) -> tensor<64x64xbf16>

IREE rounds the partial sums to the result's type (a bf16 matmul was off by 0.66 where XLA was off by 0.25); XLA's CPU
client accumulates in f32. The same holds for convolutions and for reductions whose computation is one sum or product.
XLA rounds each step of a window's sum; code generation does so (``windows=False``), IREE computes them in f32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.computations import fill_region
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import combiner, has_16_bit_float_result, sums_16_bit_floats
from hloforge.pipelines.framework.facts import NORMALIZED, Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, apply_patterns, pattern


@pattern("stablehlo.dot_general", "stablehlo.convolution")
def contraction_in_f32(op: ir.Operation) -> Replacement:
    """The contraction with an f32 result, rounded to the result's type."""
    if not has_16_bit_float_result(op):
        return NoMatch("not a 16-bit float")
    result = Value(op.results[0])
    wide = ir.Operation.create(
        op.name,
        results=[_as_f32(result.type)],
        operands=list(op.operands),
        attributes=_attributes(op),
    )
    return ops.convert_element_type(Value(wide.result), result.element_type)


@pattern("stablehlo.reduce")
def reduction_in_f32(op: ir.Operation) -> Replacement:
    """The reduction of the converted operands, rounded to the result's type."""
    if not sums_16_bit_floats(op):
        return NoMatch("not one sum or product of 16-bit floats")
    return carried_in_f32(op)


@pattern("stablehlo.reduce_window")
def windows_in_f32(op: ir.Operation) -> Replacement:
    """The same for windows."""
    return reduction_in_f32[0].rewrite(op)


def carried_in_f32(op: ir.Operation) -> Value:
    """The result of a reduction as of ``reduction_in_f32``."""
    result = Value(op.results[0])
    wide = ir.Operation.create(
        op.name,
        results=[_as_f32(result.type)],
        operands=[ops.convert_element_type(Value(operand), "f32").ir for operand in op.operands],
        attributes=_attributes(op),
        regions=1,
    )
    scalar = ir.RankedTensorType.get([], ir.F32Type.get())
    fill_region(wide.regions[0], [scalar, scalar], lambda a, b: emit(combiner(op), [a, b], scalar))
    return ops.convert_element_type(Value(wide.results[0]), result.element_type)


def _as_f32(type_: ir.RankedTensorType) -> ir.RankedTensorType:
    return ir.RankedTensorType.get(type_.shape, ir.F32Type.get())


def _attributes(op: ir.Operation) -> dict[str, Any]:
    return {name: op.attributes[name] for name in op.attributes}


@register
@dataclass(frozen=True)
class LegalizeAccumulation(PatternPass):
    """Widen the accumulators of 16-bit dots, convolutions and sums to f32.

    Attributes:
        windows: whether sums of windows, too.
    """

    name: ClassVar[str] = "legalize-accumulation"
    requires: ClassVar[Facts] = NORMALIZED | frozenset({Fact.NO_CHLO})
    establishes: ClassVar[Facts] = frozenset({Fact.WIDE_SUMS})
    patterns: ClassVar[tuple[Pattern, ...]] = (*contraction_in_f32, *reduction_in_f32, *windows_in_f32)
    windows: bool = True

    def run(self, module: ir.Module) -> None:
        apply_patterns(module, self.patterns if self.windows else (*contraction_in_f32, *reduction_in_f32))
