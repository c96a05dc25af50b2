"""Factors of products before a conversion that changes no number: products widen elements as they read them."""

from __future__ import annotations

from hloforge.pipelines.codegen.graph import Array

# Operations that multiply elements of any types.
PRODUCTS = frozenset({"dot_general", "convolution"})
# How many bits of an integer a type holds exactly.
_FLOATS = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}
_INTEGERS = {f"{sign}i{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}
# Floats whose numbers all are numbers of another type.
_WIDER = frozenset({("bf16", "f32"), ("bf16", "f64"), ("f16", "f32"), ("f16", "f64"), ("f32", "f64")})


def unwidened(array: Array) -> Array:
    """What an array is converted from, where that changes no number; else the array."""
    while array.op is not None and array.op.name == "convert" and is_exact(array.op.operands[0].element, array.element):
        (array,) = array.op.operands
    return array


def is_exact(narrow: str, wide: str) -> bool:
    """Whether a conversion between these element types changes no number."""
    if narrow in _FLOATS:
        return (narrow, wide) in _WIDER
    if narrow not in _INTEGERS:
        return False
    bits = _INTEGERS[narrow]
    if wide in _FLOATS:
        return bits <= _FLOATS[wide]
    is_signed = not narrow.startswith("u")
    return wide in _INTEGERS and bits < _INTEGERS[wide] and not (is_signed and wide.startswith("u"))
