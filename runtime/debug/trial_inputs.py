"""Arguments for the trials of a program: plausible, random and special values, within ranges that a user declares."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hloforge.dialect.abi import crosses
from hloforge.dialect.element_types import Kind
from hloforge.dialect.errors import ArgumentError, OptionError
from hloforge.dialect.program import Parameter, Program, Signature
from hloforge.dialect.shapes import Shape
from hloforge.runtime.data.numbers import integer_range
from hloforge.runtime.data.plausible_inputs import plausible_inputs
from hloforge.runtime.data.random_inputs import random_inputs
from hloforge.runtime.session.convention import leaf_values, nest_results

KINDS = ("plausible", "random", "special")


@dataclass(frozen=True)
class ValueRange:
    """The numbers that a parameter takes: from ``low`` to ``high``, both included.

    Attributes:
        name: of a parameter, or of a leaf of one (``x{1}``); empty for every one that has no range of its own.
    """

    name: str
    low: float
    high: float

    @classmethod
    def parse(cls, text: str) -> ValueRange:
        """``x=0:1``, or ``-1:1`` for all. Raises OptionError."""
        name, _, bounds = text.rpartition("=")
        low, colon, high = bounds.partition(":")
        try:
            found = cls(name.strip(), float(low), float(high))
        except ValueError:
            raise _malformed(text) from None
        if not colon or not np.isfinite([found.low, found.high]).all() or found.low > found.high:
            raise _malformed(text)
        return found


def _malformed(text: str) -> OptionError:
    return OptionError(f"{text!r} is no range", hint="write NAME=LOW:HIGH, as in x=0:1, or LOW:HIGH for all")


def check_ranges(signature: Signature, ranges: Sequence[ValueRange]) -> None:
    """Raises ArgumentError for a range of no parameter."""
    names = {leaf.name for leaf in signature.flat_parameters} | {leaf.name for leaf in signature.parameters}
    for entry in ranges:
        if entry.name and entry.name not in names:
            raise ArgumentError(f"no parameter is called {entry.name!r}", hint=f"signature: {signature}")


def kind_of_trial(number: int, kinds: Sequence[str] = KINDS) -> str:
    """What the arguments of a trial are, in turn."""
    return kinds[number % len(kinds)]


def trial_arguments(
    program: Program, kind: str, seed: int, ranges: Sequence[ValueRange] = ()
) -> tuple[np.ndarray[Any, Any] | Any, ...]:
    """The arguments of one trial, one a parameter, in nested tuples as its shape says.

    Args:
        kind: ``plausible`` (``runtime.plausible_inputs``), ``random`` or ``special`` (``runtime.random_inputs``).
        ranges: parameters that take evenly distributed numbers instead; complex ones in both parts.

    Raises:
        ArgumentError: a parameter has dynamic sizes, or a range lies outside of its element type.
    """
    signature = program.signature
    if kind == "plausible":
        given = plausible_inputs(program, seed)
    else:
        given = random_inputs(signature, seed, special=kind == "special")
    if not ranges:
        return given
    leaves = [leaf for leaf in signature.flat_parameters if crosses(leaf.shape)]
    values = [
        value if (found := _range_of(leaf, ranges)) is None else _drawn(leaf, found, seed)
        for leaf, value in zip(leaves, leaf_values(signature, given), strict=True)
    ]
    return tuple(nest_results(Shape.tuple_of(*(parameter.shape for parameter in signature.parameters)), values))


def _range_of(leaf: Parameter, ranges: Sequence[ValueRange]) -> ValueRange | None:
    """The last range of the leaf's name, else of its parameter's, else of all."""
    for name in (leaf.name, leaf.name.partition("{")[0], ""):
        found = [entry for entry in ranges if entry.name == name]
        if found:
            return found[-1]
    return None


def _drawn(leaf: Parameter, within: ValueRange, seed: int) -> np.ndarray[Any, Any]:
    shape = leaf.shape
    if shape.element is None:
        raise ValueError(f"{shape} is not an array")
    row, sizes = shape.element, shape.dimensions
    generator = np.random.default_rng([seed, zlib.crc32(leaf.name.encode()), 1])
    if row.kind is Kind.PRED:
        return np.asarray(generator.integers(int(within.low > 0), int(within.high > 0) + 1, sizes)).astype(np.bool_)
    if row.is_integer:
        least, greatest = integer_range(row)
        low, high = int(np.ceil(within.low)), int(np.floor(within.high))
        if not within.name:
            # A range for all is cut to what each type holds.
            low, high = max(low, least), min(high, greatest)
        if low > high or low < least or high > greatest:
            raise ArgumentError(f"parameter {leaf.name!r} ({shape}) has no value in {within.low:g}:{within.high:g}")
        return _integers(generator, low, high, sizes).astype(row.dtype)
    numbers = np.asarray(generator.uniform(within.low, within.high, sizes))
    if row.is_complex:
        numbers = numbers + 1j * generator.uniform(within.low, within.high, sizes)
    return np.asarray(numbers).astype(row.dtype)


def _integers(generator: np.random.Generator, low: int, high: int, sizes: tuple[int, ...]) -> np.ndarray[Any, Any]:
    kind = np.int64 if low < 0 else np.uint64
    return np.asarray(generator.integers(low, high, sizes, dtype=kind, endpoint=True))
