"""Elementwise StableHLO on single numbers.

Numbers are signless: whether an integer is unsigned is in the operation's own types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.dialect.element_types import ElementType, Kind
from hloforge.dialect.mlir import AnyOp, SSAValue, arith, ir, math_dialect, stablehlo
from hloforge.dialect.operations import defining_op, is_made_by
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import Builder, constant

NUMBERS = frozenset(("f32", "f64", "s32", "s64", "u32", "u64"))
# Operations on floats, on signed and on unsigned integers; None where there is none.
_ARITHMETIC: dict[str, tuple[Builder | None, Builder | None, Builder | None]] = {
    "add": (arith.addf, arith.addi, arith.addi),
    "subtract": (arith.subf, arith.subi, arith.subi),
    "multiply": (arith.mulf, arith.muli, arith.muli),
    "maximum": (arith.maximumf, arith.maxsi, arith.maxui),
    "minimum": (arith.minimumf, arith.minsi, arith.minui),
    "divide": (arith.divf, None, None),
    "negate": (arith.negf, None, None),
    "abs": (math_dialect.absf, math_dialect.absi, None),
    "and": (None, arith.andi, arith.andi),
    "or": (None, arith.ori, arith.ori),
    "xor": (None, arith.xori, arith.xori),
    "sqrt": (math_dialect.sqrt, None, None),
    "floor": (math_dialect.floor, None, None),
    "ceil": (math_dialect.ceil, None, None),
    "round_nearest_even": (math_dialect.roundeven, None, None),
}
# Functions that IREE has as polynomials on vectors of f32.
_FUNCTIONS: dict[str, Builder] = {
    "exponential": math_dialect.exp,
    "exponential_minus_one": math_dialect.expm1,
    "log": math_dialect.log,
    "log_plus_one": math_dialect.log1p,
    "rsqrt": math_dialect.rsqrt,
    "tanh": math_dialect.tanh,
}
# Shifts by a number below the width, on any integers.
_SHIFTS: dict[str, Builder] = {
    "shift_left": arith.shli,
    "shift_right_arithmetic": arith.shrsi,
    "shift_right_logical": arith.shrui,
}


def arithmetic(name: str, row: ElementType) -> Builder | None:
    """What an operation of StableHLO is on numbers of a type; None if there is none."""
    of_float, of_signed, of_unsigned = _ARITHMETIC.get(name.removeprefix("stablehlo."), (None, None, None))
    if row.is_float:
        return of_float
    return of_unsigned if row.kind is Kind.UNSIGNED else of_signed


def has_code(op: AnyOp) -> bool:
    """Whether ``on_numbers`` takes an operation: elementwise, of ``NUMBERS`` and flags."""
    if len(op.results) != 1 or not all(map(_is_number, (*op.results, *op.operands))):
        return False
    row, name = Value(op.results[0]).element_type, op.name.removeprefix("stablehlo.")
    match name:
        case "constant":
            return ir.DenseElementsAttr(op.attributes["value"]).is_splat and row.name != "pred"
        case "compare":
            return Value(op.operands[0]).element_type.name != "pred" and not _is_total(op)
        case "convert":
            return bool(_conversion(op))
        case "not" | "bitcast_convert":
            return not row.is_float or name == "bitcast_convert"
        case "select" | "clamp":
            return name == "select" or row.name != "pred"
    if name in _SHIFTS:
        return _is_constant_below(op.operands[1], row.bits)
    if row.name == "pred":
        return name in ("and", "or", "xor")
    return bool(arithmetic(name, row)) or (name in (*_FUNCTIONS, "logistic") and row.name == "f32")


def filling(value: SSAValue) -> AnyOp | None:
    """The constant of one number that fills an array; None if there is none."""
    if spread := defining_op(value, "stablehlo.broadcast_in_dim"):
        value = spread.operands[0]
    op = defining_op(value, "stablehlo.constant")
    if op is None or not isinstance(op.attributes["value"], ir.DenseElementsAttr):
        return None
    return op if has_code(op) else None


def is_elementwise(op: AnyOp) -> bool:
    """Whether each number of the result is made of those at its position."""
    sizes = {tuple(value.type.shape) for value in (*op.operands, *op.results) if isinstance(value.type, ir.ShapedType)}
    return op.name != "stablehlo.constant" and len(op.operands) > 0 and len(sizes) == 1 and has_code(op)


def _is_number(value: SSAValue) -> bool:
    if not isinstance(value.type, ir.RankedTensorType) or not value.type.has_static_shape:
        return False
    return Value(value).element_type.name in (*NUMBERS, "pred")


def _is_total(op: AnyOp) -> bool:
    return "compare_type" in op.attributes and "TOTALORDER" in str(op.attributes["compare_type"])


def _is_constant_below(value: Any, bits: int) -> bool:
    """Whether a value is a constant of equal numbers from 0 to below the width, or made of one."""
    while is_made_by(value, "stablehlo.broadcast_in_dim"):
        value = value.owner.operands[0]
    if not is_made_by(value, "stablehlo.constant"):
        return False
    dense = value.owner.attributes["value"]
    return bool(dense.is_splat) and 0 <= dense.get_splat_value().value < bits


def _conversion(op: AnyOp) -> Builder | None:
    """What converts numbers; None if there is none. Floats that become integers are in range by now."""
    source, target = Value(op.operands[0]).element_type, Value(op.results[0]).element_type
    if target.name == "pred":
        return None
    is_unsigned = source.kind in (Kind.UNSIGNED, Kind.PRED)
    if source.is_float and target.is_float:
        return arith.extf if target.bits > source.bits else arith.truncf
    if source.is_float:
        return None if target.kind is Kind.UNSIGNED else arith.fptosi
    if target.is_float:
        return arith.uitofp if is_unsigned else arith.sitofp
    if target.bits == source.bits:
        return arith.bitcast
    if target.bits < source.bits:
        return arith.trunci
    return arith.extui if is_unsigned else arith.extsi


def number_type(value: SSAValue) -> Any:
    """The signless type of an array's numbers."""
    row = Value(value).element_type
    if row.is_float:
        return value.type.element_type
    return ir.IntegerType.get_signless(1 if row.kind is Kind.PRED else row.bits)


def constant_number(op: Any) -> Any:
    """The number that fills a constant."""
    element = number_type(op.results[0])
    splat: Any = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
    if isinstance(splat, ir.FloatAttr):
        return constant(splat)
    return constant(ir.IntegerAttr.get(element, _signed(splat.value, element)))


def _signed(value: int, element: Any) -> int:
    """The number whose bits are those of a number of the same width, which may be unsigned."""
    width = int(element.width)
    return value - (1 << width) if value >= 1 << (width - 1) else value


def on_numbers(op: AnyOp, operands: Sequence[SSAValue]) -> Any:
    """The operation, no constant, on numbers."""
    row, name = Value(op.results[0]).element_type, op.name.removeprefix("stablehlo.")
    number, type_ = operands[-1], number_type(op.results[0])
    match name:
        case "compare":
            return _compared(op, operands)
        case "convert":
            if number.type == type_:
                return number
            conversion = _conversion(op)
            assert conversion is not None
            return conversion(type_, number)
        case "bitcast_convert":
            return number if number.type == type_ else arith.bitcast(type_, number)
        case "select":
            return arith.select(*operands)
        case "clamp":
            low, value, high = operands
            maximum, minimum = arithmetic("maximum", row), arithmetic("minimum", row)
            assert maximum is not None
            assert minimum is not None
            return minimum(maximum(low, value), high)
        case "not":
            return arith.xori(number, constant(ir.IntegerAttr.get(type_, -1)))
        case "logistic":
            one = constant(ir.FloatAttr.get(type_, 1))
            return arith.divf(one, arith.addf(math_dialect.exp(arith.negf(number)), one))
    build = _SHIFTS.get(name) or _FUNCTIONS.get(name) or arithmetic(name, row)
    assert build is not None
    return build(*operands)


def _compared(op: Any, operands: Sequence[Any]) -> Any:
    row = Value(op.operands[0]).element_type
    direction = stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value
    if row.is_float:
        # Ordered comparisons, and "unordered or not equal".
        return arith.cmpf(arith.CmpFPredicate["UNE" if direction == "NE" else f"O{direction}"], *operands)
    sign = "" if direction in ("EQ", "NE") else "u" if row.kind is Kind.UNSIGNED else "s"
    return arith.cmpi(arith.CmpIPredicate[f"{sign}{direction.lower()}"], *operands)
