"""``keep-roundings``: conversions to bf16 that the program itself has, rounded before, so that IREE may fold them.

Before::

    %y = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
    %z = stablehlo.convert %y : (tensor<4xbf16>) -> tensor<4xf32>      // or any other use than the program's result

After::

    %r = stablehlo.reduce_precision %x, format = e8m7 : tensor<4xf32>
    %y = stablehlo.convert %r : (tensor<4xf32>) -> tensor<4xbf16>
    %z = stablehlo.convert %y : (tensor<4xbf16>) -> tensor<4xf32>

bf16 is computed in f32, and IREE 3.13 folds a conversion to bf16 and back where both are in one dispatch, silently:
``sum(x.astype(bf16).astype(f32))`` added what was not rounded, and ``x.astype(bf16) == y.astype(bf16)`` compared it.
XLA rounds. Runs before every pass that makes such conversions of its own accord, some of which may fold
(``legalize-bf16``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.workarounds.bf16_signs import once_rounded


@register
@dataclass(frozen=True)
class KeepRoundings(Pass):
    """Keep the roundings of the program's own conversions to bf16."""

    name: ClassVar[str] = "keep-roundings"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.convert"}):
                if _may_fold(op):
                    with ir.InsertionPoint(op), op.location:
                        op.operands[0] = _rounded(Value(op.operands[0])).ir


def _may_fold(op: ir.Operation) -> bool:
    """Whether a conversion rounds to bf16 what IREE may read as it was."""
    source, target = (Value(value).element_type.name for value in (op.operands[0], op.results[0]))
    if target != "bf16" or source not in {"f16", "f32", "f64"}:
        return False
    return any(use.owner.operation.name != "func.return" for use in op.results[0].uses)


def _rounded(x: Value) -> Value:
    """x in f32 or f64, with the numbers of bf16."""
    return once_rounded(ops.convert_element_type(x, "f32") if x.element_type.name == "f16" else x)
