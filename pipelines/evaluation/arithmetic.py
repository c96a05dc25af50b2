"""Rules for elementwise operations whose results IEEE 754 or two's complement fixes to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect.element_types import ElementType, Kind
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.pipelines.evaluation.plan import EXACT_FLOATS, Array, Kernel, Planner, Rule, UnplannedError, element


def _is_integer(row: ElementType) -> bool:
    return row.is_integer or row.kind is Kind.PRED


def _integers_only(kernel: Kernel, *, pred: Kernel | None = None) -> Rule:
    """A rule for integers, and for ``pred`` where its kernel is given."""

    def rule(_: Planner, op: ir.Operation) -> Kernel:
        row = element(op.operands[0])
        if row.kind is Kind.PRED and pred is not None:
            return pred
        if not row.is_integer:
            raise UnplannedError(op.name)
        return kernel

    return rule


def _also_floats(integers: Kernel | None, floats: Kernel, *, pred: Kernel | None = None) -> Rule:
    """A rule for integers, f32 and f64."""

    def rule(_: Planner, op: ir.Operation) -> Kernel:
        row = element(op.operands[0])
        chosen = floats if row.name in EXACT_FLOATS else pred if row.kind is Kind.PRED else None
        if row.is_integer:
            chosen = integers
        if chosen is None:
            raise UnplannedError(op.name)
        return chosen

    return rule


def _adding(integers: Kernel, *, pred: Kernel | None = None) -> Rule:
    rule = _also_floats(integers, integers, pred=pred)

    def noted(planner: Planner, op: ir.Operation) -> Kernel:
        planner.adds |= element(op.operands[0]).is_float
        return rule(planner, op)

    return noted


def _multiplying(planner: Planner, op: ir.Operation) -> Kernel:
    planner.multiplies |= element(op.operands[0]).is_float
    return _also_floats(np.multiply, np.multiply, pred=np.logical_and)(planner, op)


def _maximum(a: Array, b: Array) -> Any:
    """As IEEE 754's maximum: NaN wins, and -0 is less than 0."""
    found = np.maximum(a, b)
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, a + b, found) if zeros.any() else found


def _minimum(a: Array, b: Array) -> Any:
    found = np.minimum(a, b)
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, -(-a - b), found) if zeros.any() else found


def _divide(a: Array, b: Array) -> Any:
    """Integers, towards zero; by zero all bits are set, and the least number by -1 is itself."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    if a.dtype.kind == "i":
        # The least number has no positive one.
        least = (a == np.iinfo(a.dtype).min) & (b == -1)
        safe = np.where(least, a.dtype.type(1), safe)
    quotient = np.floor_divide(a, safe)
    if a.dtype.kind == "i":
        quotient = quotient + ((quotient * safe != a) & ((a < 0) != (safe < 0))).astype(a.dtype)
    return np.where(b == 0, np.invert(b.dtype.type(0)), quotient)


def _remainder(a: Array, b: Array) -> Any:
    """Integers, with the sign of the dividend; by zero the dividend."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    if a.dtype.kind == "i":
        safe = np.where(safe == -1, a.dtype.type(1), safe)
    return np.where(b == 0, a, np.fmod(a, safe))


def _shift(kind: str) -> Rule:
    def rule(_: Planner, op: ir.Operation) -> Kernel:
        row = element(op.operands[0])
        if not row.is_integer:
            raise UnplannedError(op.name)
        unsigned = np.dtype(f"u{row.bits // 8}")
        most = unsigned.type(row.bits - 1)

        def shifted(x: Array, by: Array) -> Any:
            """By the width and more, nothing of a number is left but its sign."""
            count = np.asarray(by).view(unsigned)
            if kind == "arithmetic":
                signed = np.asarray(x).view(np.dtype(f"i{row.bits // 8}"))
                return np.right_shift(signed, np.minimum(count, most).view(signed.dtype)).view(x.dtype)
            bits = np.asarray(x).view(unsigned)
            function = np.left_shift if kind == "left" else np.right_shift
            found = np.where(count > most, unsigned.type(0), function(bits, np.minimum(count, most)))
            return found.view(x.dtype)

        return shifted

    return rule


_COMPARISONS = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip


def _total_order(row: ElementType) -> Kernel:
    """Integers in the order of floats: -NaN, numbers with -0 before 0, NaN."""
    signed = np.dtype(f"i{row.bits // 8}")
    most = signed.type(np.iinfo(signed).max)

    def key(x: Array) -> Any:
        bits = np.asarray(x).view(signed)
        return np.where(bits < 0, bits ^ most, bits)

    return key


def _compare(_: Planner, op: ir.Operation) -> Kernel:
    row = element(op.operands[0])
    direction = stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value
    if "compare_type" in op.attributes and "TOTALORDER" in str(op.attributes["compare_type"]):
        comparison, key = _COMPARISONS[direction], _total_order(row)
        return lambda a, b: comparison(key(a), key(b))
    if row.is_complex and direction not in ("EQ", "NE"):
        raise UnplannedError(op.name)
    return _COMPARISONS[direction]


def _clamp(_: Planner, op: ir.Operation) -> Kernel:
    row = element(op.operands[1])
    if row.name in EXACT_FLOATS:
        return lambda least, x, greatest: _minimum(_maximum(least, x), greatest)
    if not row.is_integer:
        raise UnplannedError(op.name)
    return lambda least, x, greatest: np.minimum(np.maximum(least, x), greatest)


def _convert(_: Planner, op: ir.Operation) -> Kernel:
    old, new = element(op.operands[0]), element(op.results[0])
    if old == new:
        return lambda x: x
    if new.kind is Kind.PRED and not old.is_complex:
        return lambda x: x != 0
    if _is_integer(old) and (new.is_integer or new.name in EXACT_FLOATS):
        return lambda x: x.astype(new.dtype)
    if old.is_float and new.is_float and _rounds_once(old, new):
        return lambda x: x.astype(new.dtype)
    if old.name in EXACT_FLOATS and new.is_integer:
        return _saturating(new)
    raise UnplannedError(op.name)


def _rounds_once(old: ElementType, new: ElementType) -> bool:
    """To f32 and f64 all do; f64 goes to 16 bits by way of f32 in some code, and f16 and bf16 to each other."""
    return new.name in EXACT_FLOATS or old.name == "f32"


def _saturating(new: ElementType) -> Kernel:
    """From floats to integers: towards zero, at most the greatest number, 0 for NaN."""
    limits = np.iinfo(new.dtype)
    low, high = int(limits.min), int(limits.max)

    def convert(x: Array) -> Any:
        # The greatest number plus one is a power of two, and exact.
        over, under = x >= float(high + 1), x < float(low)
        inside = np.where(over | under | np.isnan(x), x.dtype.type(0), x).astype(new.dtype)
        top, bottom = new.dtype.type(high), new.dtype.type(low)
        return np.where(over, top, np.where(under, bottom, inside))

    return convert


def _floats(kernel: Kernel) -> Rule:
    def rule(_: Planner, op: ir.Operation) -> Kernel:
        if element(op.operands[0]).name not in EXACT_FLOATS:
            raise UnplannedError(op.name)
        return kernel

    return rule


def _abs(_: Planner, op: ir.Operation) -> Kernel:
    row = element(op.operands[0])
    if row.is_complex:
        raise UnplannedError(op.name)
    return np.abs


def _negate(_: Planner, op: ir.Operation) -> Kernel:
    if not (element(op.operands[0]).is_integer or element(op.operands[0]).name in EXACT_FLOATS):
        raise UnplannedError(op.name)
    return np.negative


def _complex(_: Planner, op: ir.Operation) -> Kernel:
    dtype = element(op.results[0]).dtype

    def joined(real: Array, imaginary: Array) -> Any:
        made = np.empty(np.shape(real), dtype)
        made.real, made.imag = real, imaginary
        return made

    return joined


def _part(name: str) -> Rule:
    def rule(_: Planner, op: ir.Operation) -> Kernel:
        if not element(op.operands[0]).is_complex:
            raise UnplannedError(op.name)
        return lambda x: getattr(np.asarray(x), name)

    return rule


def _select(_: Planner, __: ir.Operation) -> Kernel:
    return np.where


def _popcnt(_: Planner, op: ir.Operation) -> Kernel:
    dtype = element(op.results[0]).dtype
    unsigned = np.dtype(f"u{dtype.itemsize}")
    return lambda x: np.bitwise_count(np.asarray(x).view(unsigned)).astype(dtype)


ARITHMETIC: dict[str, Rule] = {
    "stablehlo.abs": _abs,
    "stablehlo.add": _adding(np.add, pred=np.logical_or),
    "stablehlo.and": _integers_only(np.bitwise_and, pred=np.logical_and),
    "stablehlo.ceil": _floats(np.ceil),
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.complex": _complex,
    "stablehlo.convert": _convert,
    "stablehlo.divide": _also_floats(_divide, np.true_divide),
    "stablehlo.floor": _floats(np.floor),
    "stablehlo.imag": _part("imag"),
    "stablehlo.is_finite": _floats(np.isfinite),
    "stablehlo.maximum": _also_floats(np.maximum, _maximum, pred=np.logical_or),
    "stablehlo.minimum": _also_floats(np.minimum, _minimum, pred=np.logical_and),
    "stablehlo.multiply": _multiplying,
    "stablehlo.negate": _negate,
    "stablehlo.not": _integers_only(np.invert, pred=np.logical_not),
    "stablehlo.or": _integers_only(np.bitwise_or, pred=np.logical_or),
    "stablehlo.popcnt": _popcnt,
    "stablehlo.real": _part("real"),
    "stablehlo.remainder": _integers_only(_remainder),
    "stablehlo.round_nearest_even": _floats(np.rint),
    "stablehlo.select": _select,
    "stablehlo.shift_left": _shift("left"),
    "stablehlo.shift_right_arithmetic": _shift("arithmetic"),
    "stablehlo.shift_right_logical": _shift("logical"),
    "stablehlo.sign": _integers_only(np.sign),
    "stablehlo.sqrt": _floats(np.sqrt),
    "stablehlo.subtract": _adding(np.subtract),
    "stablehlo.xor": _integers_only(np.bitwise_xor, pred=np.logical_xor),
}
