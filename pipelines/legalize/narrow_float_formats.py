"""Floats of at most 8 bits as arithmetic on their codes: exact to f32, rounded to nearest even from it.

Source: OCP "8-bit Floating Point" and "Microscaling Formats"; StableHLO spec "Types"; ml_dtypes for what a format
without infinity or NaN gives for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.element_types import ElementType
from hloforge.dialect.values import Value

_F32_BIAS = 127
_F32_MANTISSA = 23
_INFINITY = 0x7F800000
_NAN = 0x7FC00000


@dataclass(frozen=True)
class Format:
    """A sign, ``exponent`` bits with ``bias`` and ``mantissa`` bits.

    Attributes:
        special: ``ieee`` has infinities and NaNs, ``fn`` one NaN and no infinity, ``fnuz`` also no negative zero,
            whose code is the NaN, and ``finite`` none of them: what overflows saturates.
    """

    exponent: int
    mantissa: int
    bias: int
    special: Literal["ieee", "fn", "fnuz", "finite"]

    @property
    def sign(self) -> int:
        """The code of the sign bit."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def infinity(self) -> int:
        """The code of infinity, where there is one."""
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def largest(self) -> int:
        """The largest magnitude that a finite number has."""
        return {"ieee": self.infinity - 1, "fn": self.sign - 2}.get(self.special, self.sign - 1)


_FORMATS = {
    "f4e2m1fn": Format(2, 1, 1, "finite"),
    "f6e2m3fn": Format(2, 3, 1, "finite"),
    "f6e3m2fn": Format(3, 2, 3, "finite"),
    "f8e3m4": Format(3, 4, 3, "ieee"),
    "f8e4m3": Format(4, 3, 7, "ieee"),
    "f8e4m3fn": Format(4, 3, 7, "fn"),
    "f8e4m3b11fnuz": Format(4, 3, 11, "fnuz"),
    "f8e4m3fnuz": Format(4, 3, 8, "fnuz"),
    "f8e5m2": Format(5, 2, 15, "ieee"),
    "f8e5m2fnuz": Format(5, 2, 16, "fnuz"),
}


def decode(codes: Value, row: ElementType) -> Value:
    """The f32 values of codes (u8) of the narrow float ``row``."""
    wide = ops.convert_element_type(codes, "u32")
    if row.name == "f8e8m0fnu":
        return _decode_scale(wide)
    form = _FORMATS[row.name]
    magnitude = wide & (form.sign - 1)
    normal = (magnitude << (_F32_MANTISSA - form.mantissa)) + ((_F32_BIAS - form.bias) << _F32_MANTISSA)
    # Converted as an integer, so that no subnormal f32 arises, which a machine may flush.
    small = ops.bitcast_convert_type(
        ops.convert_element_type(ops.convert_element_type(magnitude, "s32"), "f32")
        * 2.0 ** (1 - form.bias - form.mantissa),
        "u32",
    )
    bits = ops.select(magnitude < (1 << form.mantissa), small, normal)
    if form.special == "ieee":
        bits = ops.select(magnitude.eq(form.infinity), _INFINITY, bits)
    if form.special in ("ieee", "fn"):
        bits = ops.select(magnitude > form.largest + (form.special == "ieee"), _NAN, bits)
    bits = bits | ((wide & form.sign) << (31 - form.exponent - form.mantissa))
    if form.special == "fnuz":
        bits = ops.select(wide.eq(form.sign), _NAN, bits)
    return ops.bitcast_convert_type(bits, "f32")


def encode(values: Value, row: ElementType) -> Value:
    """The codes (u8) of the narrow floats nearest to f32 values."""
    bits = ops.bitcast_convert_type(values, "u32")
    magnitude = bits & 0x7FFFFFFF
    if row.name == "f8e8m0fnu":
        return ops.convert_element_type(_encode_scale(bits, magnitude), "u8")
    form = _FORMATS[row.name]
    drop = _F32_MANTISSA - form.mantissa
    odd = (magnitude >> drop) & 1
    rounded = (magnitude + odd + ((1 << (drop - 1)) - 1)) >> drop
    normal = rounded - ((_F32_BIAS - form.bias) << form.mantissa)
    # Adding a number whose last place is the smallest subnormal rounds to a multiple of it.
    anchor = full(values, 2.0 ** (_F32_MANTISSA + 1 - form.bias - form.mantissa))
    small = ops.bitcast_convert_type(ops.abs(values) + anchor, "u32") - ops.bitcast_convert_type(anchor, "u32")
    code = ops.select(magnitude < ((_F32_BIAS - form.bias + 1) << _F32_MANTISSA), small, normal)
    # Compared before the subtraction above could wrap.
    too_large = (magnitude >= ((_F32_BIAS - form.bias + 1) << _F32_MANTISSA)) & (normal > form.largest)
    sign = (bits >> (31 - form.exponent - form.mantissa)) & form.sign
    is_nan = magnitude > _INFINITY
    return ops.convert_element_type(_with_specials(form, code, sign, too_large, is_nan), "u8")


def in_order(codes: Value, row: ElementType) -> Value:
    """Integers (s8) in the total order of the codes (u8) of the narrow float ``row``: by sign and magnitude."""
    if row.name == "f8e8m0fnu":
        return ops.bitcast_convert_type(codes ^ 128, "s8")
    return _fold(ops.bitcast_convert_type(codes << full(codes, 8 - row.bits), "s8"), row)


def from_order(keys: Value, row: ElementType) -> Value:
    """The codes of which ``in_order`` made ``keys``."""
    if row.name == "f8e8m0fnu":
        return ops.bitcast_convert_type(keys, "u8") ^ 128
    codes = ops.bitcast_convert_type(_fold(keys, row), "u8")
    return codes >> full(codes, 8 - row.bits)


def _fold(bits: Value, row: ElementType) -> Value:
    """From sign and magnitude (s8) to an order of integers, and back."""
    if _FORMATS[row.name].special == "fnuz":
        # What would be -0 is NaN, and the least.
        return ops.select((bits < 0) & bits.ne(-128), -128 - bits, bits)
    return bits ^ ((bits >> full(bits, 7)) & 127)


def _with_specials(form: Format, code: Value, sign: Value, too_large: Value, is_nan: Value) -> Value:
    if form.special == "finite":
        return ops.select(is_nan, sign ^ form.sign, sign | ops.select(too_large, form.largest, code))
    if form.special == "fnuz":
        signed = ops.select(code.eq(0), code, sign | code)
        return ops.select(too_large | is_nan, form.sign, signed)
    if form.special == "fn":
        return sign | ops.select(too_large | is_nan, form.largest + 1, code)
    quiet = form.infinity | (1 << (form.mantissa - 1))
    return sign | ops.select(is_nan, quiet, ops.select(too_large, form.infinity, code))


def _decode_scale(wide: Value) -> Value:
    """Powers of two from 2**-127; 255 is NaN."""
    bits = ops.select(wide.eq(0), 1 << (_F32_MANTISSA - 1), wide << _F32_MANTISSA)
    return ops.bitcast_convert_type(ops.select(wide.eq(255), _NAN, bits), "f32")


def _encode_scale(bits: Value, magnitude: Value) -> Value:
    """The nearest power of two, the larger one of two; zero, negative numbers and what overflows are NaN.

    So XLA's CPU client has it at run time; of a constant zero it makes 2**-127, as StableHLO's interpreter of each.
    What is above 2**-127 goes up to 2**-126.
    """
    half = 1 << (_F32_MANTISSA - 1)
    code = ops.select(magnitude <= half, 0, (magnitude + half) >> _F32_MANTISSA)
    invalid = bits.ne(magnitude) | magnitude.eq(0) | (code > 254)
    return ops.select(invalid, 255, code)


def small_scale(values: Value, codes: Value) -> Value:
    """``codes`` of f8e8m0fnu, corrected where f64 ``values`` are subnormal in f32, which machines flush.

    As in XLA's CPU client, what is below the least number is NaN, and what is above is no longer the least one.
    """
    least = 2.0**-_F32_BIAS
    code = ops.select(values > least, full(codes, 1), ops.select(values.eq(least), full(codes, 0), full(codes, 255)))
    return ops.select(values < 2 * least, code, codes)
