"""Builders of operations below StableHLO.

By name are built the dialects of which jaxlib ships no functions (``tensor``, ``linalg``, IREE's own, all unverified),
and also ``arith.constant``: jaxlib overrides its function with other parameters, which a type checker does not see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hloforge.dialect.mlir import SSAValue, ir

# What builds an operation from its operands, such as ``arith.addf``; a conversion takes the type of its result first.
Builder: TypeAlias = Callable[..., Any]


def create(name: str, operands: Sequence[Any], types: Sequence[Any], regions: int = 0, **attributes: Any) -> Any:
    """An operation at the insertion point, from and to ``ir`` objects."""
    return ir.Operation.create(
        name, results=list(types), operands=list(operands), attributes=attributes, regions=regions
    )


def constant(value: Any) -> Any:
    """A constant of an attribute that has a type: a number, or a vector of numbers."""
    return ir.Operation.create("arith.constant", results=[value.type], attributes={"value": value}).result


def index(number: int) -> Any:
    """A constant of type ``index``."""
    return constant(ir.IntegerAttr.get(ir.IndexType.get(), number))


def element_of(scalar_tensor: SSAValue) -> Any:
    """The scalar in a 0-d tensor."""
    return create("tensor.extract", [scalar_tensor], [scalar_tensor.type.element_type]).result
