"""The types that arrays have in memory, which may be converted where they are read."""

from __future__ import annotations

from hloforge.dialect.mlir import SSAValue
from hloforge.dialect.operations import defining_op
from hloforge.dialect.values import Value


def element_in_memory(value: SSAValue) -> str:
    """The element type of an array, or of the one that it is converted from."""
    made = defining_op(value, "stablehlo.convert")
    return Value(made.operands[0] if made is not None else value).element_type.name
