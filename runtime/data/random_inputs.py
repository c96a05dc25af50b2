"""Seeded random arguments for a program."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from hloforge.dialect.element_types import ElementType, Kind
from hloforge.dialect.errors import ArgumentError
from hloforge.dialect.program import Signature
from hloforge.dialect.shapes import Shape
from hloforge.runtime.data.numbers import integer_range

Array = np.ndarray[Any, Any]

# Integers from 0 to here: small enough to be an index into nearly any dimension and to multiply without overflow.
LARGEST_INTEGER = 3
# One element in so many is a special value, where those are asked for.
_SPECIAL_EVERY = 5


def random_inputs(signature: Signature, seed: int = 0, *, special: bool = False) -> tuple[Any, ...]:
    """One argument a parameter, in nested tuples as the parameter's shape says; None for a token.

    Floats are drawn from the normal distribution N(0, 1), complex numbers with such parts, ``f8e8m0fnu`` as powers of
    two near 1; integers evenly from 0 to ``LARGEST_INTEGER`` (less where the type is narrower), so that they serve as
    indices; booleans evenly. An array depends on the seed and on its parameter's name alone, so ``random:7`` on a
    command line gives the same one.

    Args:
        special: put special values at a fifth of the places: ±0, ±inf, NaN, the least subnormal and the largest number
            of floats; least, greatest, -1 and 0 of integers.

    Raises:
        ArgumentError: a parameter has dynamic sizes.
    """
    leaves = iter(signature.flat_parameters)

    def build(shape: Shape) -> Any:
        if shape.elements is not None:
            return tuple(build(member) for member in shape.elements)
        leaf = next(leaves)
        return random_array(shape, leaf.name, seed, special=special) if shape.is_array else None

    return tuple(build(parameter.shape) for parameter in signature.parameters)


def random_array(shape: Shape, name: str, seed: int = 0, *, special: bool = False) -> Array:
    """The random argument of an array parameter called ``name``; see ``random_inputs``."""
    if shape.element is None or not shape.is_static:
        raise ArgumentError(f"no random values for {name!r} ({shape}): its sizes are not known", hint="give an array")
    generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
    array = _ordinary(generator, shape.element, shape.dimensions)
    if special and array.size:
        values = special_values(shape.element)
        places = generator.random(shape.dimensions) < 1 / _SPECIAL_EVERY
        chosen = values[generator.integers(0, len(values), shape.dimensions)]
        array = np.where(places, chosen, array)
    return array


def _ordinary(generator: np.random.Generator, row: ElementType, sizes: tuple[int, ...]) -> Array:
    if row.kind is Kind.PRED:
        return np.asarray(generator.integers(0, 2, sizes)).astype(np.bool_)
    if row.is_integer:
        largest = min(LARGEST_INTEGER, integer_range(row)[1])
        return np.asarray(generator.integers(0, largest + 1, sizes)).astype(row.dtype)
    normal = np.asarray(generator.standard_normal(sizes))
    if row.is_complex:
        return np.asarray(normal + 1j * generator.standard_normal(sizes)).astype(row.dtype)
    if row.name == "f8e8m0fnu":
        return np.asarray(np.exp2(np.round(normal))).astype(row.dtype)
    return normal.astype(row.dtype)


def special_values(row: ElementType) -> Array:
    """The values of an element type that break careless code, as a vector; those that the type has."""
    if row.kind is Kind.PRED:
        return np.array([False, True])
    if row.is_integer:
        low, high = integer_range(row)
        wide = np.uint64 if row.kind is Kind.UNSIGNED else np.int64
        return np.array([low, high, 0, *([-1] if low else [])], wide).astype(row.dtype)
    if row.is_complex:
        parts = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0])
        return np.array([complex(a, b) for a in parts for b in parts]).astype(row.dtype)
    # Every code of a narrow type is at hand; the least and greatest codes hold its extremes.
    bits = row.bits
    quiet = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0])
    with np.errstate(all="ignore"):
        common = quiet.astype(row.dtype)
    smallest = np.array([1], f"u{row.dtype.itemsize}").view(row.dtype)
    largest = np.array([_largest_code(row, bits)], f"u{row.dtype.itemsize}").view(row.dtype)
    return np.concatenate([common, smallest, largest])


def _largest_code(row: ElementType, bits: int) -> int:
    """The bit pattern of the greatest finite number."""
    codes = np.arange(2 ** min(bits, 8), dtype=np.uint8)
    if bits <= 8:
        values = codes.view(row.dtype).astype(np.float64)
        return int(np.nanargmax(np.where(np.isfinite(values), values, -np.inf)))
    mantissa: int = {"bf16": 7, "f16": 10, "f32": 23, "f64": 52}[row.name]
    exponent_bits = bits - 1 - mantissa
    return (((1 << exponent_bits) - 1) << mantissa) - 1
