"""Constants that repeat one element."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.mlir import ir
from hloforge.pipelines.codegen.graph import Op

# Element types whose constants the bindings read one by one.
_PLAIN = frozenset({"f32", "f64", "i32", "i64"})


def splat_of(op: Op) -> Any:
    """The element that a constant repeats, as a number of Python."""
    if op.result.element in _PLAIN:
        value = op.attribute("value")
        if isinstance(value, ir.DenseIntElementsAttr | ir.DenseFPElementsAttr) and len(value):
            return value[0]
    array = np.asarray(constant_of(op.mlir))
    return array.reshape(-1)[0].item() if array.size else 0
