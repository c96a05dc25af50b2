"""Operators of several steps, of 16-bit floats: f32 inside, rounded once.

ONNX says what an operator computes, not what its steps are, and ONNX Runtime computes 16-bit floats in f32. Steps
that are rounded each lose bits, and overflow: the squares of a row of f16 beyond 255, or the sum of its mean.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from hloforge.dialect.element_types import ElementType
from hloforge.dialect.values import Value
from hloforge.importers.onnx.graph import Outputs
from hloforge.importers.onnx.node import Node
from hloforge.importers.tensors import cast

Result = TypeVar("Result")


def rounds_once(function: Callable[[Node], Result]) -> Callable[[Node], Result]:
    """Decorate an operator's function that knows nothing of 16-bit floats: it sees f32, and its results are rounded.

    What reads factors as they are, as products do, rounds by itself (``sums_in``, ``rounded``).
    """

    @functools.wraps(function)
    def wide(node: Node) -> Any:
        row = node.narrow_row()
        if row is None:
            return function(node)
        found: Any = function(node.widened())
        return Outputs([_as(each, row) for each in found]) if isinstance(found, Outputs) else _as(found, row)

    return wide


def _as(found: Any, row: ElementType) -> Any:
    return cast(found, row) if isinstance(found, Value) and found.element_type.name == "f32" else found


def sums_in(x: Value) -> str | None:
    """The ``preferred_element_type`` of products of such factors; None where it is theirs."""
    return "f32" if x.element_type.is_float and x.element_type.bits == 16 else None


def widened(x: Value) -> Value:
    """Floats of fewer than 32 bits as f32."""
    return cast(x, "f32") if x.element_type.is_float and x.element_type.bits < 32 else x
