"""``decompose-reverse-scan``: a scan from the end as one from the start of the reversed arrays.

Before::

    %0:2 = chlo.scan(%x) inits (%c) dimension=0 attributes {is_reverse = true} {...}

After::

    %1:2 = chlo.scan(reverse %x) inits (%c) dimension=0 attributes {is_reverse = false} {...}
    %0#0 = reverse %1#0

jaxlib's expansion of scans takes no notice of ``is_reverse``, and makes invalid IR of scans of nothing: their outputs
have no elements, and their carries are the initial ones. Source: CHLO "scan".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.idioms import zeros
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integer
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_reverse_scan
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("chlo.scan")
def of_nothing(op: ir.Operation) -> Replacement:
    """Without turns there are empty outputs and initial carries."""
    inputs, carries = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    dimension, outputs = integer(op, "dimension"), len(op.results) - carries
    if not inputs or Value(op.operands[0]).dims[dimension]:
        return NoMatch("it has turns")
    results = [Value(result) for result in list(op.results)[:outputs]]
    return [zeros(str(one.element_type), one.dims) for one in results] + [Value(x) for x in list(op.operands)[inputs:]]


@pattern("chlo.scan")
def from_the_start(op: ir.Operation) -> Replacement:
    """Reverse the inputs, scan, reverse the outputs; the carries stay as they are."""
    if not is_reverse_scan(op):
        return NoMatch("it starts at the start")
    dimension = integer(op, "dimension")
    inputs, carries = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    operands = [Value(operand) for operand in op.operands]
    turned = [ops.rev(operand, [dimension]) for operand in operands[:inputs]] + operands[inputs:]
    forward = op.clone()
    for number, operand in enumerate(turned):
        forward.operands[number] = operand.ir
    forward.attributes["is_reverse"] = ir.BoolAttr.get(False)
    results = [Value(result) for result in forward.results]
    outputs = len(results) - carries
    return [ops.rev(result, [dimension]) for result in results[:outputs]] + results[outputs:]


@register
@dataclass(frozen=True)
class DecomposeReverseScan(PatternPass):
    """Replace reverse scans by scans of reversed arrays."""

    name: ClassVar[str] = "decompose-reverse-scan"
    patterns: ClassVar[tuple[Pattern, ...]] = (*of_nothing, *from_the_start)
