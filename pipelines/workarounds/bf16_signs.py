"""The sign of NaN where f32 becomes bf16, for ``legalize-bf16``.

Before::

    %r = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>

After, on the bits of %x::

    %b = (%x + 0x7fff + ((%x >> 16) & 1)) >> 16                     // to nearest, ties to even
    %r = select %x is NaN, ((%x >> 16) & 0x8000) | 0x7fc0, %b        // 16 bits of it, as bf16

IREE 3.13 rounds by the same arithmetic, but takes 0x7fc0 for every NaN. XLA keeps the sign, which bitcasts, top-k and
what a program returns show. Where f32 follows, the number is rounded in f32, which keeps NaN as it is. Programs with
products and reductions keep IREE's, except where bits are read: the code for those knows conversions.
Source: XLA "EmitF32ToBF16".
"""

from __future__ import annotations

from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import AnyOp, SSAValue, ir
from hloforge.dialect.operations import integer, operations, stands_in
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.reduce_precision import rounded

_READS_BITS = "stablehlo.bitcast_convert"


def keep_signs_of_nan(module: ir.Module, *, everywhere: bool) -> None:
    """Round f32 to bf16 by bits outside of loops and branches, ``everywhere`` or where bits are read.

    Args:
        module: of StableHLO; its context is entered.
        everywhere: also where results of conversions are returned, selected, moved or converted back.
    """
    for op in operations(module, {"stablehlo.select"} if everywhere else frozenset()):
        if stands_in(op, "func.func") and isinstance(op.results[0].type.element_type, ir.BF16Type):
            _select_bits(op)
    for op in operations(module, {"stablehlo.convert"}):
        if not stands_in(op, "func.func") or not rounds_to_bf16(op):
            continue
        uses = [use for use in op.results[0].uses if use.owner.operation.parent.name == "func.func"]
        shown = [use for use in uses if _shows_a_sign(use.owner.operation, everywhere=everywhere)]
        widened = [use.owner.operation.results[0] for use in uses if everywhere and _is_to_f32(use.owner.operation)]
        with ir.InsertionPoint(op), op.location:
            if shown:
                bits = _by_bits(_before_rounding(op.operands[0])).ir
                for use in shown:
                    use.owner.operation.operands[use.operand_number] = bits
            if widened:
                wide = once_rounded(Value(op.operands[0])).ir
                for result in widened:
                    result.replace_all_uses_with(wide)


def _select_bits(op: AnyOp) -> None:
    """A selection of integers: IREE selects in f32, and rounds the result."""
    with ir.InsertionPoint(op), op.location:
        pred, *branches = (Value(operand) for operand in op.operands)
        chosen = ops.select(pred, *(ops.bitcast_convert_type(branch, "u16") for branch in branches))
        op.results[0].replace_all_uses_with(ops.bitcast_convert_type(chosen, "bf16").ir)
    op.erase()


def rounds_to_bf16(op: ir.Operation) -> bool:
    """Whether a ``stablehlo.convert`` is one of f32 to bf16."""
    source, target = (value.type.element_type for value in (op.operands[0], op.results[0]))
    return isinstance(source, ir.F32Type) and isinstance(target, ir.BF16Type)


def _is_to_f32(op: ir.Operation) -> bool:
    return op.name == "stablehlo.convert" and isinstance(op.results[0].type.element_type, ir.F32Type)


def _shows_a_sign(user: ir.Operation, *, everywhere: bool) -> bool:
    return user.name == _READS_BITS or (everywhere and user.name != "stablehlo.convert")


def _is_rounded(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "stablehlo.reduce_precision":
        return False
    return [integer(owner, f"{part}_bits") for part in ("exponent", "mantissa")] == [8, 7]


def _before_rounding(value: Any) -> Value:
    """What an f32 value was rounded from where it is rounded to bf16 already."""
    return Value(value.owner.operands[0] if _is_rounded(value) else value)


def once_rounded(x: Value) -> Value:
    """A value of f32 or f64 rounded to the precision of bf16 in its type, unless it is so already."""
    return x if _is_rounded(x.ir) else rounded_in_f32(x)


def _by_bits(x: Value) -> Value:
    word = ops.bitcast_convert_type(x, "u32")
    high = word >> full(word, 16)
    nearest = (word + ((high & 1) + 0x7FFF)) >> full(word, 16)
    half = ops.select(ops.ne(x, x), (high & 0x8000) | 0x7FC0, nearest)
    return ops.bitcast_convert_type(ops.convert_element_type(half, "u16"), "bf16")


def rounded_in_f32(value: Value) -> Value:
    """A value rounded to the precision of bf16 in its own type: IREE folds a conversion to bf16 and back to nothing."""
    if not value.shape.is_static:
        return rounded(value, 8, 7)
    bits = ir.IntegerType.get_signless(32)
    return emit(
        "stablehlo.reduce_precision",
        [value],
        value.type,
        exponent_bits=ir.IntegerAttr.get(bits, 8),
        mantissa_bits=ir.IntegerAttr.get(bits, 7),
    )
