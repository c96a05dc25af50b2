"""Conversions between element types.

Floats become integers towards zero, within the integer's range, and NaN becomes 0: LLVM's instruction is undefined
there. f64 is rounded to half precision by way of f32, complex numbers become real ones by their real part, anything
becomes a flag by not being zero. Source: XLA "ConvertElementType".
"""

from __future__ import annotations

from hloforge.pipelines.codegen.elements.kinds import (
    ANY,
    COMPLEX,
    PRED,
    REALS,
    UNSIGNED,
    Element,
    Range,
    class_of,
    is_complex,
    is_signed,
    part_of,
    register,
    width,
)
from hloforge.pipelines.codegen.elements.narrow import bfloat_of_bits, bits_of_bfloat, rounded
from hloforge.pipelines.codegen.lang.values import FLOAT, I32, I64, Value, element_of, is_float, lanes_of, vector_of

# Whole numbers below it in magnitude are no less of 32 bits if bounds are not exact to the last place.
_SURELY_WIDE = 2.0**30


def convert(value: Element, source: str, target: str, known: Range = ANY) -> Element:
    """A number as another element type; what is known of it may leave steps out."""
    if source == target:
        return value
    if is_complex(target):
        parts = value if isinstance(value, tuple) else (value, None)
        real, part = _real(parts[0], part_of(source), part_of(target)), part_of(target)
        imaginary = parts[1]
        return real, real.like(0.0) if imaginary is None else _real(imaginary, part_of(source), part)
    return _real(value[0] if isinstance(value, tuple) else value, part_of(source), target, known)


def _real(x: Value, source: str, target: str, known: Range = ANY) -> Value:
    if source == target:
        return x
    if class_of(target) == PRED:
        return x.differs(0)
    signed = class_of(source) not in (PRED, UNSIGNED)
    if not is_float(x.kind):
        if class_of(target) not in tuple(REALS):
            return x.as_(register(target), signed=signed)
        return rounded(x.as_(register(target), signed=signed), target)
    if class_of(target) in tuple(REALS):
        return rounded(x.as_(register(target)), target)
    return to_integer(x, target, known)


def to_integer(x: Value, target: str, known: Range = ANY) -> Value:
    """A float as an integer, towards zero and within its range; 0 for NaN."""
    bits, signed = width(target), is_signed(target)
    least, limit = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    is_near = known.is_number and known.low > -_SURELY_WIDE and known.high < _SURELY_WIDE
    if bits < 32:
        # Bounded again as an integer, because processors narrow bounded ones by one instruction.
        inside = x if is_near else _between(x, least, limit - 1)
        number = x.function.cast("fptosi", inside, I32)
        return number.maximum(least).minimum(limit - 1).as_(f"i{bits}")
    if is_near and signed:
        return x.function.cast("fptosi", x, f"i{bits}")
    digits = 24 if element_of(x.kind) == FLOAT else 53
    exact = limit - 1 < 1 << digits
    # The largest float below the integer's limit; what is above is set afterwards, where they differ.
    greatest = limit - 1 if exact else limit - (1 << (limit.bit_length() - 1 - digits))
    low = (x < float(least)).where(float(least), x)
    inside = (low > float(greatest)).where(float(greatest), low)
    number = x.function.cast("fptosi" if signed else "fptoui", inside, I64 if bits == 64 else I32)
    if not exact:
        number = (x > float(greatest)).where(limit - 1 if signed else -1, number)
    return x.is_nan().where(0, number)


def _between(x: Value, least: int, most: int) -> Value:
    """A float near bounds, whose integer is bounded still; that of NaN becomes 0."""
    if least:
        x = x.compare("ord", 0.0).where(x, 0.0)
    # A comparison with NaN chooses the bound. LLVM makes a comparison and a logical operation of one by 0.
    lowest = float(least) if least else -1.0
    low = (x > lowest).where(x, lowest)
    return (low < float(most)).where(low, float(most))


def to_nearest(x: Value) -> Value:
    """The nearest i32 of an f32 within its range that is no NaN; of two that are as near the even one."""
    lanes = lanes_of(x.kind)
    names = f"v{lanes}i32.v{lanes}f32" if lanes else "i32.f32"
    kind = vector_of(I32, lanes)
    return x.function.emit(f"call {kind} @llvm.lrint.{names}({x})", kind)


def bitcast(value: Element, source: str, target: str) -> Element:
    """The bits of a number as another type of the same width."""
    if isinstance(value, tuple) or source == target:
        return value
    word = value
    if source == "bf16":
        word = bits_of_bfloat(value)
    elif source == "f16":
        word = value.as_("half").bits()
    elif is_float(value.kind):
        word = value.bits()
    if target == "bf16":
        return bfloat_of_bits(word)
    if target == "f16":
        return word.function.cast("bitcast", word, "half").as_(FLOAT)
    kind = register(target)
    return word.function.cast("bitcast", word, kind) if is_float(kind) else word


def can_bitcast(source: str, target: str) -> bool:
    if class_of(source) in (*COMPLEX, PRED) or class_of(target) in (*COMPLEX, PRED):
        return source == target
    return width(source) == width(target)


def reduce_precision(x: Value, exponent_bits: int, mantissa_bits: int, element: str) -> Value:
    """The nearest number of a format, ties to even; its subnormal numbers are zero, too large ones infinite.

    With no bit of the mantissa NaN cannot be told from infinity, and becomes it, positive. Source: XLA
    "ReducePrecision".
    """
    mantissa, exponent = {"f16": (10, 5), "bf16": (7, 8), "f32": (23, 8), "f64": (52, 11)}[element]
    if element == "bf16":
        word = bits_of_bfloat(x)
    else:
        word = x.as_("half").bits() if element == "f16" else x.bits()
    bits = mantissa + exponent + 1
    sign = 1 << (bits - 1)
    infinity = ((1 << exponent) - 1) << mantissa
    result = word
    dropped = mantissa - mantissa_bits
    if dropped > 0:
        even = word.shifted_right(dropped) & 1
        result = (word + even + ((1 << (dropped - 1)) - 1)) & -(1 << dropped)
    if exponent_bits < exponent:
        bias, reach = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        power = result & infinity
        signed = word & -sign
        result = (power > ((bias + reach) << mantissa)).where(signed | infinity, result)
        result = (power <= ((bias - reach) << mantissa)).where(signed, result)
    not_a_number = (word & (sign - 1)) > infinity
    kept: Value | int = infinity if mantissa_bits == 0 else word
    chosen = not_a_number.where(kept, result)
    if element == "bf16":
        return bfloat_of_bits(chosen)
    if element == "f16":
        return x.function.cast("bitcast", chosen, "half").as_(FLOAT)
    return x.function.cast("bitcast", chosen, element_of(x.kind))
