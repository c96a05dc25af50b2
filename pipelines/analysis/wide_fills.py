"""Fills for which IREE's devices have no command."""

from __future__ import annotations

import numpy as np

from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.mlir import SSAValue
from hloforge.dialect.operations import defining_op
from hloforge.dialect.values import Value


def is_wide_fill(scalar: SSAValue) -> bool:
    """Whether an array of this number is a fill of 64 bits: its two halves differ, or are not known."""
    element = Value(scalar).element_type
    if element.bits != 64 or element.is_complex:
        return False
    source = defining_op(scalar, "stablehlo.constant")
    if source is None:
        return True
    low, high = np.frombuffer(constant_of(source).tobytes()[:8], np.uint32)
    return bool(low != high)
