"""Elements of random arrays: ordinary ones, all of a type's range, and those that break careless code."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from hloforge.dialect.element_types import ElementType, Kind, element_type
from hloforge.runtime.data.numbers import integer_range
from hloforge.runtime.data.random_inputs import special_values

Array = np.ndarray[Any, Any]


def array_of(random: Random, element: str, dims: tuple[int, ...]) -> Array:
    """An array of an element type."""
    row = element_type(element)
    generator = np.random.default_rng(random.getrandbits(64))
    with np.errstate(all="ignore"):
        array = _ordinary(generator, row, dims)
        if random.random() < 0.25:
            special = _special(row)
            chosen = special[generator.integers(0, len(special), dims)]
            array = np.where(generator.random(dims) < 0.2, chosen, array)
    return np.asarray(array).astype(row.dtype)


def _special(row: ElementType) -> Array:
    """``special_values`` without subnormals, which engines round to zero at places of their own."""
    values = special_values(row)
    if row.is_float and row.bits >= 16:
        wide = np.abs(values.astype(np.float64))
        values = values[(wide == 0) | ~(wide < 1e-7)]
    return values


def _ordinary(generator: np.random.Generator, row: ElementType, dims: tuple[int, ...]) -> Array:
    if row.kind is Kind.PRED:
        return np.asarray(generator.integers(0, 2, dims)).astype(np.bool_)
    if row.is_integer:
        least, greatest = integer_range(row)
        if generator.random() < 0.6:
            least, greatest = max(least, -3), min(greatest, 5)
        kind = np.int64 if least < 0 else np.uint64
        return np.asarray(generator.integers(least, greatest, dims, dtype=kind, endpoint=True))
    if row.is_complex:
        return np.asarray(_reals(generator, dims) + 1j * _reals(generator, dims))
    if row.name == "f8e8m0fnu":
        return np.asarray(np.exp2(generator.integers(-4, 5, dims)))
    return _reals(generator, dims)


def _reals(generator: np.random.Generator, dims: tuple[int, ...]) -> Array:
    choice = generator.random()
    if choice < 0.25:
        return np.asarray(generator.integers(-3, 6, dims)).astype(np.float64)
    scale = 8.0 if choice < 0.4 else 1.0
    return np.asarray(generator.standard_normal(dims)) * scale
