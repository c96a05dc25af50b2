"""Logarithms and exponentials of one double by tables: few operations wait for each other.

A mantissa z near c is 1 + r with r = z/c - 1, exact because 1/c has few bits, and ln x = k ln 2 + ln c + ln(1 + r).
With e^x = 2^(k/128) e^r, |r| < 0.003, 2^(k/128) is another table's number. What their rounding leaves is kept too.
Source: S. Nagy, "Optimized routines" of Arm, pow.c (2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache
from struct import pack, unpack

from hloforge.pipelines.codegen.elements.arithmetic import from_bits, nearest_integer
from hloforge.pipelines.codegen.lang.values import DOUBLE, I32, I64, Value
from hloforge.pipelines.polynomials import estrin

_INDEX_BITS = 7
_PARTS = 1 << _INDEX_BITS
_SHIFT = 52 - _INDEX_BITS
# The bits of the least mantissa, about 0.7: 1 is inside of a part, whose r begins at 0 there.
_LOWEST = 0x3FE6955500000000
# The bits of 3/2 * 2^52.
_ORIGIN = 0x4338 << 48
# (ln(1 + r) - r + r^2/2) / r^3, as a series: r is below 0.008.
LOGARITHM_NEAR_ONE = (1 / 3, -1 / 4, 1 / 5, -1 / 6, 1 / 7, -1 / 8, 1 / 9)
_DIGITS = Context(prec=50)
_LN2 = _DIGITS.ln(Decimal(2))


@dataclass(frozen=True)
class Logarithm:
    """ln x as ``whole + rest + ln(1 + r)``.

    Attributes:
        whole: k ln 2 + ln c, as far as products and sums of it are exact.
        rest: what ``whole`` lacks.
        r: what the mantissa has beside c, relative to it; exact.
    """

    whole: Value
    rest: Value
    r: Value


def _double(word: int) -> float:
    number: float = unpack("<d", pack("<Q", word))[0]
    return number


def _cut(number: Decimal, bits: int) -> float:
    """To a multiple of ``2**-bits``."""
    return float(round(number * (1 << bits))) / (1 << bits)


def _rest(number: Decimal, part: float) -> float:
    return float(_DIGITS.subtract(number, Decimal(part)))


# Multiples of it by 11 bits, and sums of these with logarithms of 43 bits, are exact.
_LN2_HIGH = _cut(_LN2, 42)
_LN2_LOW = _rest(_LN2, _LN2_HIGH)
_STEP = float(_LN2 / _PARTS)
_STEP_LOW = _rest(_DIGITS.divide(_LN2, Decimal(_PARTS)), _STEP)
_STEPS = float(_PARTS / _LN2)


@cache
def _logarithms() -> list[float]:
    """1/c, ln c to 43 bits, its rest, and nothing, of each part."""
    numbers: list[float] = []
    for part in range(_PARTS):
        start = _LOWEST + (part << _SHIFT)
        center = (_double(start) + _double(start + (1 << _SHIFT))) / 2
        # The part of 1 is not centered, so that logarithms of numbers near 1 are those of 1 + r.
        steps = _PARTS if center < 1 else 2 * _PARTS
        inverse = 1.0 if _double(start) <= 1 < _double(start + (1 << _SHIFT)) else round(steps / center) / steps
        logarithm = -_DIGITS.ln(Decimal(inverse))
        high = _cut(logarithm, 43)
        numbers += [inverse, high, _rest(logarithm, high), 0.0]
    return numbers


@cache
def _powers() -> list[int]:
    """The bits of 2^(i/128), less i where k has it, and of its rest, relative to it."""
    words: list[int] = []
    for part in range(_PARTS):
        power = _DIGITS.power(Decimal(2), Decimal(part) / _PARTS)
        high = float(power)
        rest = float(_DIGITS.divide(Decimal(_rest(power, high)), power))
        (word,), (tail,) = unpack("<Q", pack("<d", high)), unpack("<Q", pack("<d", rest))
        words += [word - (part << _SHIFT), tail]
    return words


def logarithm_parts(word: Value) -> Logarithm:
    """Of a positive double by its bits, whose exponent may also lie below a double's."""
    function = word.function
    distance = word - _LOWEST
    place = (distance.shifted_right(_SHIFT) & (_PARTS - 1)) << 2
    mantissa = from_bits(word - (distance & -(1 << 52)))
    table = function.table(_logarithms(), DOUBLE)
    inverse, logarithm, rest = (function.lookup(table, DOUBLE, place + number) for number in range(3))
    k = distance.shifted_right(52, signed=True).as_(I32).as_(DOUBLE)
    r = mantissa.call("fma", inverse, -1.0)
    return Logarithm(k * _LN2_HIGH + logarithm, k * _LN2_LOW + rest, r)


def natural_logarithm(word: Value, correction: Value) -> Value:
    """Of a positive normal double by its bits, and a small number, within an ulp."""
    log = logarithm_parts(word)
    r = log.r
    return log.whole + (r + ((log.rest + correction) + (r * r) * (r * estrin(r, LOGARITHM_NEAR_ONE) - 0.5)))


def exponential_of_sum(high: Value, low: Value, *, scaled: bool = False) -> Value:
    """e^(high + low) for ``|high| < 800`` and a ``low`` far below 1.

    Args:
        scaled: the result may be no normal number.
    """
    function = high.function
    turns, word = nearest_integer(high * _STEPS)
    r = (-turns).call("fma", _STEP, high) + (low - turns * _STEP_LOW)
    place = (word & (_PARTS - 1)) << 1
    table = function.table(_powers(), I64)
    power = function.lookup(table, I64, place)
    tail = function.lookup(table, DOUBLE, place + 1)
    square = r * r
    value = (tail + r) + square * ((r * (1 / 6) + 0.5) + square * (r * (1 / 120) + 1 / 24))
    if not scaled:
        scale = from_bits(power + (word << _SHIFT))
        return scale * value + scale
    # By two powers of two, either of which is a normal number.
    turns_of_two = (word - _ORIGIN).shifted_right(_INDEX_BITS, signed=True)
    first = turns_of_two.shifted_right(1, signed=True)
    scale = from_bits(power + ((word & (_PARTS - 1)) << _SHIFT) + (first << 52))
    return (scale * value + scale) * from_bits((turns_of_two - first + 1023) << 52)
