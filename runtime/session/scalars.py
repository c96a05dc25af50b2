"""Python numbers as arguments: which of them fit an element type, and as what value."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect.element_types import ElementType, Kind
from hloforge.runtime.data.numbers import integer_range


def is_of_kind(value: complex, element: ElementType) -> bool:
    """Whether a Python number means one of the element type: no bool is a number, and no float an integer."""
    if isinstance(value, bool):
        return element.kind is Kind.PRED
    if isinstance(value, int):
        return element.is_integer or element.is_float or element.is_complex
    return element.is_complex or (element.is_float and isinstance(value, float))


def converted(value: complex, element: ElementType) -> np.ndarray[Any, Any] | None:
    """The number as an array of rank 0; None if it is out of range, or an integer that the floats skip."""
    if element.is_integer:
        low, high = integer_range(element)
        return np.array(value).astype(element.dtype) if low <= value.real <= high else None
    try:
        array = np.asarray(complex(value) if element.is_complex else value).astype(element.dtype)
    except OverflowError:
        return None
    if isinstance(value, int):
        return array if complex(array) == value else None
    return array if np.isfinite(array) or not np.isfinite(value) else None


def brief(value: complex) -> str:
    """A number for a message; Python refuses to print integers of thousands of digits."""
    is_long = isinstance(value, int) and value.bit_length() > 128
    return f"an integer of {value.bit_length()} bits" if isinstance(value, int) and is_long else repr(value)
