"""Numbers in text: the values of an array of any element type, checked to fit."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from hloforge.dialect.element_types import ElementType, Kind

_TRUTH = {"true": True, "false": False, "1": True, "0": False}
# XLA writes complex numbers as (1, -2); Python and numpy as 1-2j.
_PAIR = re.compile(r"\(\s*([^\s,()]+)\s*,\s*([^\s,()]+)\s*\)")
_SEPARATORS = re.compile(r"[\s,\[\]]+")


def parse_values(text: str, row: ElementType) -> np.ndarray[Any, Any]:
    """The numbers of a text, separated by spaces, commas or brackets, as a vector of the element type.

    Integers may be hexadecimal (``0x1f``), floats ``nan`` and ``-inf``, booleans ``true``, ``false``, ``1``, ``0``.

    Raises:
        ValueError: a word is no number, or an integer does not fit the type.
    """
    if row.is_complex:
        text = _PAIR.sub(lambda pair: _joined(pair[1], pair[2]), text)
    words = [word for word in _SEPARATORS.split(text) if word]
    numbers = [_number(word, row) for word in words]
    if row.is_integer:
        return _integers(numbers, row)
    with np.errstate(all="ignore"):
        return np.array(numbers, np.complex128 if row.is_complex else None).astype(row.dtype)


def _joined(real: str, imaginary: str) -> str:
    return f"{real}{imaginary if imaginary[0] in '+-' else '+' + imaginary}j"


def _number(word: str, row: ElementType) -> Any:
    try:
        if row.kind is Kind.PRED:
            return _TRUTH[word.lower()]
        if row.is_integer:
            return int(word, 0) if word.lower().lstrip("+-").startswith("0x") else int(word)
        return complex(word) if row.is_complex else float(word)
    except (KeyError, ValueError):
        raise ValueError(f"{word!r} is no {row.name}") from None


def _integers(numbers: list[int], row: ElementType) -> np.ndarray[Any, Any]:
    low, high = integer_range(row)
    for number in numbers:
        if not low <= number <= high:
            raise ValueError(f"{number} does not fit {row.name} ({low} to {high})")
    wide = np.uint64 if row.kind is Kind.UNSIGNED else np.int64
    return np.array(numbers, wide).astype(row.dtype)


def integer_range(row: ElementType) -> tuple[int, int]:
    """The least and greatest value of an integer type."""
    if row.kind is Kind.UNSIGNED:
        return 0, 2**row.bits - 1
    return -(2 ** (row.bits - 1)), 2 ** (row.bits - 1) - 1
