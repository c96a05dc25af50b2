"""Elements between memory and registers, and constants.

An ``i1`` is a byte of 0 or 1 in memory, the parts of a complex number lie next to each other.
"""

from __future__ import annotations

import numpy as np

from hloforge.dialect.element_types import element_type
from hloforge.pipelines.codegen.elements.kinds import (
    Element,
    is_complex,
    pair,
    register,
    single,
    storage,
    width,
)
from hloforge.pipelines.codegen.elements.narrow import bfloat_of_bits, bits_of_bfloat
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I1, I8, Number, Value, lanes_of, vector_of

__all__ = ["Element", "constant", "load", "size", "storage", "store"]


def size(element: str) -> int:
    """Bytes of an element in memory."""
    return max(width(element) // 8, 1)


def load(function: Function, pointer: Value, element: str, place: Number, lanes: int = 0) -> Element:
    """The element at a place of an array, or as many as ``lanes`` that follow each other."""
    kind = storage(element)
    if not is_complex(element):
        address = function.offset(pointer, kind, place)
        return _to_register(function.load(address, vector_of(kind, lanes)), element)
    if lanes:
        address = function.offset(pointer, kind, function.index(place) * 2)
        both = function.load(address, vector_of(kind, lanes * 2))
        return function.shuffle(both, None, range(0, lanes * 2, 2)), function.shuffle(
            both, None, range(1, lanes * 2, 2)
        )
    address = function.offset(pointer, f"[2 x {kind}]", place)
    return function.load(address, kind), function.load(function.offset(address, kind, 1), kind)


def store(function: Function, value: Element, pointer: Value, element: str, place: Number, align: int = 0) -> None:
    """Write an element, or a vector of them, to a place of an array, whose address may be known to be aligned."""
    kind = storage(element)
    if not is_complex(element):
        function.store(_to_memory(single(value), element), function.offset(pointer, kind, place), align)
        return
    real, imaginary = pair(value)
    lanes = lanes_of(real.kind)
    if lanes:
        both = function.shuffle(real, imaginary, [lane + part for lane in range(lanes) for part in (0, lanes)])
        function.store(both, function.offset(pointer, kind, function.index(place) * 2))
        return
    address = function.offset(pointer, f"[2 x {kind}]", place)
    function.store(real, address)
    function.store(imaginary, function.offset(address, kind, 1))


def constant(function: Function, element: str, number: float | complex) -> Element:
    """A Python number, rounded to an element type; integers wrap around."""
    kind = register(element)
    # Nearly all constants; the rest takes a hundred times as long.
    if element == "f32" and isinstance(number, float) and abs(number) < 3e38:
        return function.constant(number, kind)
    if element in ("i32", "i64") and isinstance(number, int) and -(1 << 31) <= number < 1 << 31:
        return function.constant(number, kind)
    if is_complex(element):
        parts = np.asarray(number, element_type(element).dtype)
        return function.constant(float(parts.real), kind), function.constant(float(parts.imag), kind)
    if isinstance(number, complex):
        raise TypeError(f"a complex number is no {element}")
    if element == "i1":
        return function.constant(bool(number), I1)
    if element_type(element).is_integer:
        bits = width(element)
        wrapped = int(number) & ((1 << bits) - 1)
        return function.constant(wrapped - (wrapped >> (bits - 1) << bits), kind)
    with np.errstate(over="ignore"):
        return function.constant(float(np.float64(number).astype(element_type(element).dtype)), kind)


def _to_register(value: Value, element: str) -> Value:
    if element == "i1":
        return value.compare("ne", 0)
    if element == "bf16":
        return bfloat_of_bits(value)
    return value.as_("float") if element == "f16" else value


def _to_memory(value: Value, element: str) -> Value:
    if element == "i1":
        return value.as_(I8, signed=False)
    if element == "bf16":
        return bits_of_bfloat(value)
    return value.as_("half") if element == "f16" else value
