"""Numbers rounded to 8 bits as libraries round them: scaled, and cut to what the type holds."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.element_types import element_type
from hloforge.dialect.values import Value


def largest_size(value: Value) -> Value:
    """The greatest absolute value, a scalar; 0 of no numbers."""
    first = constant(0, value.element_type)
    return ops.reduce(ops.abs(value), first, ops.max, range(value.rank))


def narrowed(value: Value, element: Any, scale: Value | None = None) -> Value:
    """An f32 array in another type, scaled where that has 8 bits; numbers too large become the largest."""
    row = element_type(element)
    if row.bits > 8:
        return ops.convert_element_type(value, row)
    if scale is not None:
        value = value * ops.broadcast(scale, value.dims)
    most = float(ml_dtypes.finfo(row.dtype).max)
    return ops.convert_element_type(ops.clamp(full(value, -most), value, full(value, most)), row)
