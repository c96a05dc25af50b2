"""``legalize-bf16``: bf16 arithmetic in f32, rounded after every operation, as XLA's CPU client rounds.

Before::

    %0 = stablehlo.subtract %x, %m : tensor<4xbf16>
    %1 = stablehlo.convert %0 : (tensor<4xbf16>) -> tensor<4xf32>
    %2 = stablehlo.exponential %0 : tensor<4xbf16>

After::

    %0 = stablehlo.subtract (convert %x), (convert %m) : tensor<4xf32>         // uses of %1 are uses of %0
    %r = stablehlo.reduce_precision %0, format = e8m7 : tensor<4xf32>
    %2 = stablehlo.exponential %r : tensor<4xf32>                              // rounded in turn

Processors have no bf16 arithmetic: every operation widens its operands and rounds its result. Where the program itself
goes on in f32, XLA hands the value on as it was before the rounding.

A rounding between two sums or products is a conversion to bf16 and back, which IREE folds where both are in one
dispatch, as XLA's library fusions do (xla_allow_excess_precision): those are around products, convolutions and
reductions of floats. In a program without such, and around a transcendental function in any, where a lost rounding
shows in the result, XLA rounds: there it is a ``reduce_precision``, which nothing folds. So is the rounding of a square
that is subtracted from something, as in a variance: an infinite one would be finite on the way in a fused multiply-add;
and each rounding whose reader is in f16, f64 or complex. Source: XLA's FloatNormalization.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.marks import ROUNDED
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations, stands_in, types_of
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import ROUNDING, computes_in_bf16, is_integer_to_bf16
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern
from hloforge.pipelines.workarounds.bf16_signs import keep_signs_of_nan, once_rounded, rounded_in_f32, rounds_to_bf16

_ARITHMETIC = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs",
        "add",
        "compare",
        "divide",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "rsqrt",
        "sqrt",
        "subtract",
    )
)


# What XLA hands to a library, together with the arithmetic around it.
_LIBRARY = frozenset(f"stablehlo.{name}" for name in ("convolution", "dot_general", "reduce", "reduce_window"))
# What hands numbers on as they are.
_CHOOSING = frozenset(
    f"stablehlo.{name}" for name in ("broadcast_in_dim", "reshape", "reverse", "select", "slice", "transpose")
)


@pattern(*ROUNDING)
def in_f32_by_library(op: ir.Operation) -> Replacement:
    """In f32; roundings around transcendental functions, and of squares that are subtracted, are kept."""
    return _in_f32(op, pinned=_touches_a_function(op) or _is_subtracted_square(op))


@pattern(*ROUNDING)
def in_f32(op: ir.Operation) -> Replacement:
    """In f32; every rounding is kept."""
    return _in_f32(op, pinned=True)


def _in_f32(op: ir.Operation, *, pinned: bool) -> Replacement:
    """The operation on f32, its result rounded to bf16 except for conversions back to f32."""
    if not computes_in_bf16(op):
        return NoMatch("not bf16 arithmetic on whole arrays")
    result = Value(op.results[0])
    operands = [Value(operand) for operand in op.operands]
    wide = [
        ops.convert_element_type(operand, "f32") if operand.element_type.name == "bf16" else operand
        for operand in operands
    ]
    is_float = result.element_type.name == "bf16"
    type_ = ir.RankedTensorType.get(result.type.shape, ir.F32Type.get()) if is_float else result.type
    created = ir.Operation.create(
        op.name,
        results=[type_],
        operands=[operand.ir for operand in wide],
        attributes={name: op.attributes[name] for name in op.attributes},
    )
    for use in list(result.ir.uses):
        if use.owner.operation.name != "stablehlo.convert" or ROUNDED in use.owner.operation.attributes:
            continue
        if use.owner.operation.results[0].type == type_:
            use.owner.operation.results[0].replace_all_uses_with(created.result)
    value = Value(created.result)
    return ops.convert_element_type(rounded_in_f32(value) if is_float and pinned else value, result.element_type)


@pattern("stablehlo.convert")
def integer_by_f32(op: ir.Operation) -> Replacement:
    """An integer by f32 to bf16: the processor has no such conversion, and IREE's own calls a library.

    The rounding between the two conversions keeps IREE from folding them into one.
    """
    if not is_integer_to_bf16(op):
        return NoMatch("not from an integer to bf16")
    return ops.convert_element_type(rounded_in_f32(ops.convert_element_type(Value(op.operands[0]), "f32")), "bf16")


@pattern("stablehlo.iota", "stablehlo.dynamic_iota")
def iota_by_integers(op: ir.Operation) -> Replacement:
    """An iota of bf16 by one of integers, for the same reason."""
    type_ = op.results[0].type
    if not isinstance(type_.element_type, ir.BF16Type):
        return NoMatch("not of bf16")
    counted = ir.RankedTensorType.get(type_.shape, ir.IntegerType.get_signless(32))
    attributes = {name: op.attributes[name] for name in op.attributes}
    created = ir.Operation.create(op.name, results=[counted], operands=list(op.operands), attributes=attributes)
    return ops.convert_element_type(Value(created.result), "bf16")


def _is_of_floats(op: ir.Operation) -> bool:
    return not isinstance(op.operands[0].type.element_type, ir.IntegerType)


def _is_of_bf16(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, ir.BF16Type)


def _touches_a_function(op: ir.Operation) -> bool:
    """Whether the operation, or a bf16 operation that uses its result, is more than arithmetic."""
    users = [use.owner.operation for use in op.results[0].uses]
    if any(ROUNDED in user.attributes for user in users):
        return True
    return any(name in ROUNDING and name not in _ARITHMETIC for name in (op.name, *(user.name for user in users)))


def _round_for_other_types(module: ir.Module) -> None:
    """Round in f32 what is converted to bf16, maybe selected and moved, and converted on to another type than f32.

    IREE folds the two conversions.
    """
    pending = [op.operands[0] for op in operations(module, {"stablehlo.convert"}) if _widens_beyond_f32(op)]
    seen = set()
    while pending:
        value = pending.pop()
        if value in seen or isinstance(value.owner, ir.Block) or not isinstance(value.type.element_type, ir.BF16Type):
            continue
        seen.add(value)
        op = value.owner.operation
        if op.name in _CHOOSING:
            pending += [operand for operand in op.operands if isinstance(operand.type, ir.RankedTensorType)]
        elif op.name == "stablehlo.convert" and rounds_to_bf16(op):
            with ir.InsertionPoint(op), op.location:
                op.operands[0] = once_rounded(Value(op.operands[0])).ir


def _round_in_loops(module: ir.Module) -> None:
    """Round what passes before have converted to bf16, as CHLO's functions do; outside of loops and branches
    ``keep_signs_of_nan`` does."""
    for op in operations(module, {"stablehlo.convert"}):
        if not stands_in(op, "func.func") and rounds_to_bf16(op):
            with ir.InsertionPoint(op), op.location:
                op.operands[0] = once_rounded(Value(op.operands[0])).ir


def _widens_beyond_f32(op: ir.Operation) -> bool:
    is_other = isinstance(op.results[0].type.element_type, (ir.F16Type, ir.F64Type, ir.ComplexType))
    return is_other and isinstance(op.operands[0].type.element_type, ir.BF16Type)


def _is_subtracted_square(op: ir.Operation) -> bool:
    if op.name != "stablehlo.multiply" or op.operands[0] != op.operands[1]:
        return False
    uses = [(use.owner.operation.name, use.operand_number) for use in op.results[0].uses]
    return ("stablehlo.subtract", 1) in uses


@register
@dataclass(frozen=True)
class LegalizeBf16(Pass):
    """Compute bf16 in f32, and round after every operation."""

    name: ClassVar[str] = "legalize-bf16"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            if not any(map(_is_of_bf16, types_of(module))):
                return
            by_library = any(_is_of_floats(op) for op in operations(module, _LIBRARY))
        arithmetic = in_f32_by_library if by_library else in_f32
        apply_patterns(module, (*arithmetic, *integer_by_f32, *iota_by_integers))
        with in_context(module):
            _round_for_other_types(module)
            if not by_library:
                _round_in_loops(module)
            keep_signs_of_nan(module, everywhere=not by_library)
