"""Arrays as text: ``2x3xf32=[1 2 3][4 5 6]``, as IREE's tools write them and ``inputs.parse_input`` reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect.element_types import ElementType, Kind, element_type

# An array of more elements shows the ends of its dimensions.
LIMIT = 1024
_EDGE = 3


def format_array(array: Any, *, limit: int | None = LIMIT) -> str:
    """The array with its type, e.g. ``2x2xf32=[1 2][3 4]``, ``f32=1.5``, ``1xc64=[1+2j]``.

    Args:
        limit: with more elements, only the first and last few of each dimension are shown around ``…``; None shows all.
            Text without ``…`` reads back as the same array, bit for bit except for the payload of a NaN.
    """
    array = np.asarray(array)
    row = element_type(array.dtype)
    elide = limit is not None and array.size > limit
    if not array.ndim:
        return f"{row}={format_element(array[()], row)}"
    return f"{type_text(array)}={_nested(array, row, elide, outermost=True)}"


def type_text(array: Any) -> str:
    """IREE's spelling of an array's type: ``2x3xf32``."""
    array = np.asarray(array)
    return "x".join([*map(str, array.shape), element_type(array.dtype).name])


def _nested(array: np.ndarray[Any, Any], row: ElementType, elide: bool, *, outermost: bool = False) -> str:
    """The outermost brackets are left out where inner ones separate the rows: IREE's style."""
    if array.ndim == 1:
        parts = _edges(array, elide, lambda element: format_element(element, row))
        return "[" + " ".join(parts) + "]"
    text = "".join(_edges(array, elide, lambda member: _nested(member, row, elide)))
    return text if outermost and text else f"[{text}]"


def _edges(array: np.ndarray[Any, Any], elide: bool, show: Any) -> list[str]:
    if not elide or len(array) <= 2 * _EDGE:
        return [show(member) for member in array]
    return [*map(show, array[:_EDGE]), "…", *map(show, array[-_EDGE:])]


def format_element(value: Any, row: ElementType) -> str:
    """The shortest text that reads back as the same number of the element type."""
    if row.kind is Kind.PRED:
        return "true" if value else "false"
    if row.is_integer:
        return str(int(value))
    if row.is_complex:
        real, imaginary = (_float(part) for part in (value.real, value.imag))
        return f"{real}{imaginary if imaginary[0] in '+-' else '+' + imaginary}j"
    return _float(value)


def _float(value: Any) -> str:
    # numpy writes its own floats as short as they read back; nine digits hold any narrower one exactly enough.
    text = str(value) if isinstance(value, np.floating) else f"{float(value):.9g}"
    return text.removesuffix(".0")
