"""``legalize-host-scalars``: scalars that IREE would compute on the host as floats, which its host cannot.

Before, in a loop that counts with %i::

    %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f64>
    %r = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f64>) -> tensor<9xf64>

After::

    %j = stablehlo.optimization_barrier %i : tensor<i32>
    %f = stablehlo.convert %j : (tensor<i32>) -> tensor<f64>
    %r = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f64>) -> tensor<9xf64>

IREE 3.13 computes on the host what follows from a loop's counter or from a dimension's size, fills arrays there with
patterns of at most 64 bits, and knows no f16, bf16 and f64 ("failed to legalize operation 'arith.sitofp'"). Behind the
barrier the number is in memory, and the conversion in a dispatch. Loops in one dispatch have no host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import is_made_by
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.convert")
def from_memory(op: ir.Operation) -> Replacement:
    """Convert the number after a barrier."""
    element = op.results[0].type.element_type
    if isinstance(element, ir.IntegerType | ir.F32Type):
        return NoMatch("the host computes such numbers")
    if op.results[0].type.rank or not _is_on_host(op.operands[0]):
        return NoMatch("computed in a dispatch")
    if _is_hidden(op.operands[0]):
        return NoMatch("its operand is read from memory")
    op.operands[0] = ops.optimization_barrier(Value(op.operands[0])).ir
    return REWRITTEN


def _is_hidden(value: Any) -> bool:
    return is_made_by(value, "stablehlo.optimization_barrier")


def _is_on_host(value: SSAValue) -> bool:
    """Whether a number follows from others that IREE has on the host: what a loop carries, and sizes."""
    pending, seen = [value], set()
    while pending:
        number = pending.pop()
        if isinstance(number.owner, ir.Block):
            if number.owner.owner.name == "stablehlo.while":
                return True
            continue
        op = number.owner.operation
        if op.name == "stablehlo.get_dimension_size":
            return True
        if op not in seen:
            seen.add(op)
            pending += [operand for operand in op.operands if _has_one_element(operand)]
    return False


def _has_one_element(value: Any) -> bool:
    type_ = value.type
    return isinstance(type_, ir.RankedTensorType) and type_.has_static_shape and all(n == 1 for n in type_.shape)


@register
@dataclass(frozen=True)
class LegalizeHostScalars(PatternPass):
    """Put barriers before conversions of induction variables and sizes; runs after the passes that fuse loops."""

    name: ClassVar[str] = "legalize-host-scalars"
    patterns: ClassVar[tuple[Pattern, ...]] = from_memory
