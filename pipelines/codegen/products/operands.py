"""What a product multiplies: matrices in memory by their strides, and the types that sums are taken in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    HALF,
    I64,
    Value,
    bits_of,
    is_float,
)


class Stored(Protocol):
    """Elements in memory: LLVM's type of them, and whether integers narrower than the sums have a sign."""

    @property
    def kind(self) -> str: ...

    @property
    def signed(self) -> bool: ...


@dataclass(frozen=True)
class Matrix:
    """Matrices of equal sizes in memory; all strides count elements and may be 0 where a matrix is broadcast.

    Attributes:
        kind: LLVM's type of an element in memory.
        batch: the stride of each dimension of the batch.
        row: the stride between rows.
        column: the stride between columns.
        signed: whether an integer narrower than the sums has a sign.
    """

    kind: str
    batch: tuple[int, ...]
    row: int
    column: int
    signed: bool = True

    @property
    def bytes(self) -> int:
        """Of an element."""
        return bits_of(self.kind) // 8

    def transposed(self) -> Matrix:
        return replace(self, row=self.column, column=self.row)


def sum_kind(left: str, right: str, out: str) -> str:
    """The type in which the terms of a product are multiplied and added, for these element types in memory.

    Floats narrower than f32 are summed in f32, as XLA does; integers wrap around at the result's width.
    """
    if not is_float(out):
        return out
    widest = max((left, right, out), key=bits_of)
    return FLOAT if widest in (HALF, BFLOAT) else DOUBLE if widest == DOUBLE else FLOAT


def split_index(function: Function, flat: Value, sizes: Sequence[int]) -> list[Value]:
    """The indices, last fastest, of a position in row-major order."""
    found: list[Value] = []
    rest = flat
    for place, size in enumerate(reversed(sizes)):
        if size == 1:
            found.append(function.index(0))
        elif place == len(sizes) - 1:
            found.append(rest)
        else:
            found.append(rest.urem(size))
            rest = rest.udiv(size)
    return found[::-1]


def strided(function: Function, pointer: Value, kind: str, places: Sequence[Value], strides: Sequence[int]) -> Value:
    """The address of the element at these places."""
    total: Value | None = None
    for place, stride in zip(places, strides, strict=True):
        if stride == 0 or place.text == "0":
            continue
        term = place if stride == 1 else place * stride
        total = term if total is None else total + term
    return pointer if total is None else function.offset(pointer, kind, total)


def clamped(function: Function, place: Value, last: int) -> Value:
    """The place, or the last one if it lies beyond it."""
    if place.is_constant:
        return Value(function, I64, str(min(int(place.text), last)))
    return place.minimum(last)
