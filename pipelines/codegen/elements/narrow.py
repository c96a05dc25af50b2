"""Half precision in ``float`` registers: rounding after an operation, and the bits of bfloat16.

bfloat16 is rounded by integer arithmetic, because instructions exist on few processors and flush subnormal numbers;
vectors of products whose own instructions do that are rounded by these (``Function.rounds_bfloat``).
Source: XLA "EmitF32ToBF16".
"""

from __future__ import annotations

from hloforge.pipelines.codegen.lang.values import BFLOAT, I16, I32, Value, lanes_of, vector_of

_HIGH_HALF = -(1 << 16)
# The sign, and the bits of the NaN that XLA makes of any.
_SIGN, _NAN = -(1 << 31), 0x7FC00000


def rounded(value: Value, element: str) -> Value:
    """A float as the nearest number of an element type, ties to even; NaN stays NaN. Wider types leave it alone."""
    if element == "f16":
        return value.as_("half").as_("float")
    return _as_bfloat(value) if element == "bf16" else value


def _as_bfloat(value: Value) -> Value:
    lanes = lanes_of(value.kind)
    if value.function.rounds_bfloat and lanes in (8, 16):
        kind, words = vector_of(BFLOAT, lanes), vector_of(I16, lanes)
        call = f"call {kind} @llvm.x86.avx512bf16.cvtneps2bf16.{32 * lanes}({value})"
        found = value.function.emit(f"bitcast {value.function.emit(call, kind)} to {words}", words)
        return bfloat_of_bits(found)
    word = value.bits()
    even = word.shifted_right(16) & 1
    nearest = word + 0x7FFF + even
    chosen = value.is_nan().where((word & _SIGN) | _NAN, nearest & _HIGH_HALF)
    return value.function.cast("bitcast", chosen, "float")


def bits_of_bfloat(value: Value) -> Value:
    """The 16 bits of a bfloat16 in a float register."""
    return value.bits().shifted_right(16).as_(I16)


def bfloat_of_bits(word: Value) -> Value:
    """The bfloat16 of 16 bits as a float."""
    return word.function.cast("bitcast", word.as_(I32, signed=False) << 16, "float")
