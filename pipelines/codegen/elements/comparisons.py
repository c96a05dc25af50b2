"""Comparisons, selections and extremes.

Floats compare as IEEE 754 says, or in total order: -NaN < -inf < … < -0 < +0 < … < inf < NaN. Complex numbers are
compared for equality, and in lexicographic order for their extremes.
"""

from __future__ import annotations

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
    word = bits_of_bfloat(x) if element == "bf16" else x.bits()
    width = bits_of(word.kind)
    return word ^ word.shifted_right(width - 1, signed=True).shifted_right(1)


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
    return x.maximum(other, signed=signed) if greatest else x.minimum(other, signed=signed)
