"""Factors of products that are narrower in memory: products widen what is converted, and compute others as they go.

A conversion that changes no number is left out (``unwidened``). A factor that costs a few operations and is computed of
half of its bytes at most has no memory either (``panels.py``).
"""

from __future__ import annotations

from collections.abc import Callable

from hloforge.dialect.mlir import stablehlo
from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.access import Accesses
from hloforge.pipelines.codegen.elements.memory import size as element_size
from hloforge.pipelines.codegen.graph import Array, Op

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


def free_dims(op: Op, side: int) -> list[int]:
    """The dimensions of a factor of more than one element that are columns or rows of the result."""
    numbers = stablehlo.DotDimensionNumbers(op.attribute("dot_dimension_numbers"))
    gone = (
        (*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions)
        if side
        else (*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions)
    )
    return [d for d, size in enumerate(op.operands[side].shape) if d not in gone and size > 1]


def reads_less(array: Array, in_memory: Callable[[Array], bool]) -> bool:
    """Whether what an array is computed of takes half of its bytes at most."""
    found = Accesses(in_memory)
    found.element(array, tuple(places.counter(size) for size in array.shape))
    # Arrays that several elements read, such as scales, are small beside these.
    read = {loaded: element_size(loaded.element) * loaded.elements for loaded, _ in found.loads}
    return 2 * sum(read.values()) <= element_size(array.element) * array.elements


def has_batch(op: Op) -> bool:
    """Whether a product is one of several matrices."""
    return bool(list(stablehlo.DotDimensionNumbers(op.attribute("dot_dimension_numbers")).lhs_batching_dimensions))
