"""Comparisons, selections and extremes.

Floats compare as IEEE 754 says, or in total order: -NaN < -inf < … < -0 < +0 < … < inf < NaN. Complex numbers are
compared for equality, and in lexicographic order for their extremes.
"""

from __future__ import annotations

from math import nan

from hloforge.pipelines.codegen.elements.arithmetic import from_bits
from hloforge.pipelines.codegen.elements.kinds import PRED, UNSIGNED, Element, class_of, pair, single
from hloforge.pipelines.codegen.elements.narrow import bits_of_bfloat
from hloforge.pipelines.codegen.lang.values import Value, bits_of, is_float

_SIGNED = {"EQ": "eq", "NE": "ne", "GE": "sge", "GT": "sgt", "LE": "sle", "LT": "slt"}
_UNSIGNED = {"EQ": "eq", "NE": "ne", "GE": "uge", "GT": "ugt", "LE": "ule", "LT": "ult"}
_FLOAT = {"EQ": "oeq", "NE": "une", "GE": "oge", "GT": "ogt", "LE": "ole", "LT": "olt"}


def compare(x: Element, y: Element, element: str, direction: str, kind: str = "NOTYPE") -> Value:
    """Flags of a comparison.

    Args:
        x: of the type ``element``, as is ``y``.
        direction: EQ, NE, GE, GT, LE or LT.
        kind: TOTALORDER, or anything else for the usual order of the type.
    """
    if isinstance(x, tuple):
        (a, b), (c, d) = x, pair(y)
        predicate = _FLOAT[direction]
        parts = a.compare(predicate, c), b.compare(predicate, d)
        return parts[0] & parts[1] if direction == "EQ" else parts[0] | parts[1]
    other = single(y)
    if not is_float(x.kind):
        unsigned = class_of(element) in (PRED, UNSIGNED)
        return x.compare((_UNSIGNED if unsigned else _SIGNED)[direction], other)
    if kind == "TOTALORDER":
        return ordered_bits(x, element).compare(_SIGNED[direction], ordered_bits(other, element))
    return x.compare(_FLOAT[direction], other)


def ordered_bits(x: Value, element: str) -> Value:
    """Integers whose order is the total order of floats."""
    return _ordered(bits_of_bfloat(x) if element == "bf16" else x.bits())


def order_of_float(x: Value) -> Value:
    """The same of what a register holds, which is a wider float for those of 16 bits."""
    return _ordered(x.bits())


def float_of_order(word: Value) -> Value:
    """Back from ``order_of_float``."""
    return from_bits(_ordered(word))


def _ordered(word: Value) -> Value:
    """The bits of a float as an integer of the same order, and back."""
    width = bits_of(word.kind)
    # By a mask and not by a shift: AVX-512 has an instruction for both operations together.
    return word ^ (word.shifted_right(width - 1, signed=True) & ((1 << (width - 1)) - 1))


def select(flag: Value, yes: Element, no: Element) -> Element:
    """One of two elements by a flag."""
    if isinstance(yes, tuple):
        (a, b), (c, d) = yes, pair(no)
        return flag.where(a, c), flag.where(b, d)
    return flag.where(yes, single(no))


def extreme(x: Element, y: Element, element: str, *, greatest: bool) -> Element:
    """The maximum or the minimum: NaN if one of two floats is NaN, and -0 is less than +0."""
    if isinstance(x, tuple):
        y = pair(y)
        (a, b), (c, d) = (x, y) if greatest else (y, x)
        follows = (a.equals(c) & (b > d)) | (a > c)
        return select(follows, x, y)
    other, signed = single(y), class_of(element) not in (PRED, UNSIGNED)
    if element == "f16":
        return _extreme_of_bits(x, other, greatest)
    return x.maximum(other, signed=signed) if greatest else x.minimum(other, signed=signed)


def _extreme_of_bits(x: Value, y: Value, greatest: bool) -> Value:
    """Of f16 in float registers. LLVM makes extremes of f16 of those of f32, and then no vectors of two."""
    keys = _ordered(x.bits()), _ordered(y.bits())
    key = keys[0].maximum(keys[1]) if greatest else keys[0].minimum(keys[1])
    return x.compare("uno", y).where(nan, from_bits(_ordered(key)))
