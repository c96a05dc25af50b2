"""What an element type is to the functions of elements: its class, and its types in registers and in memory.

Names are MLIR's. Half precision is a ``float`` in registers that the narrow type can represent: processors compute in
f32, and every result is rounded, as XLA's CPU client does. A complex number is a pair of its parts.
"""

from __future__ import annotations

from functools import cache
from math import inf
from typing import NamedTuple, TypeAlias

from hloforge.dialect.element_types import Kind, element_type
from hloforge.pipelines.codegen.lang.values import Value

# A number, or the real and the imaginary part of one.
Element: TypeAlias = Value | tuple[Value, Value]

# A letter for each class of types that share functions.
PRED, SIGNED, UNSIGNED, HALF, SINGLE, DOUBLE, COMPLEX_SINGLE, COMPLEX_DOUBLE = "bsuhfdcz"
INTEGERS, REALS, COMPLEX = SIGNED + UNSIGNED, HALF + SINGLE + DOUBLE, COMPLEX_SINGLE + COMPLEX_DOUBLE

_NAMES = {
    "i1": PRED,
    **dict.fromkeys(("i8", "i16", "i32", "i64"), SIGNED),
    **dict.fromkeys(("ui8", "ui16", "ui32", "ui64"), UNSIGNED),
    "f16": HALF,
    "bf16": HALF,
    "f32": SINGLE,
    "f64": DOUBLE,
    "complex<f32>": COMPLEX_SINGLE,
    "complex<f64>": COMPLEX_DOUBLE,
}
_REGISTERS = {HALF: "float", SINGLE: "float", DOUBLE: "double", COMPLEX_SINGLE: "float", COMPLEX_DOUBLE: "double"}
_STORAGE = {"i1": "i8", "bf16": "i16", "f16": "half"}


class Range(NamedTuple):
    """What a number may be.

    Attributes:
        low, high: unless it is NaN, it is not below the one, and not above the other.
        is_number: whether it is neither NaN nor infinite.
    """

    low: float = -inf
    high: float = inf
    is_number: bool = False


ANY = Range()


def class_of(element: str) -> str:
    """The letter of an element type's class; empty for a type that has no functions here."""
    return _NAMES.get(element, "")


def is_complex(element: str) -> bool:
    return class_of(element) in tuple(COMPLEX)


def part_of(element: str) -> str:
    """The type of a complex number's parts; any other type itself."""
    return {"complex<f32>": "f32", "complex<f64>": "f64"}.get(element, element)


@cache
def register(element: str) -> str:
    """The LLVM type of a number, or of a part, in registers."""
    return _REGISTERS.get(class_of(element)) or f"i{element_type(element).bits}"


def storage(element: str) -> str:
    """The LLVM type of a number, or of a part, in memory."""
    return _STORAGE.get(element) or register(element)


@cache
def width(element: str) -> int:
    """Bits of an element."""
    return element_type(element).bits


def is_signed(element: str) -> bool:
    return element_type(element).kind is Kind.SIGNED


def single(value: Element) -> Value:
    """An element that is one number."""
    if isinstance(value, tuple):
        raise TypeError("a complex number where a real one is needed")
    return value


def pair(value: Element) -> tuple[Value, Value]:
    """The parts of a complex number."""
    if isinstance(value, Value):
        raise TypeError("a real number where a complex one is needed")
    return value
