"""Transposition of a square of numbers in vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.dialect.mlir import vector_dialect


def transposed(rows: Sequence[Any]) -> list[Any]:
    """The columns of a square, whose size is a power of two: log2(n) exchanges between pairs of vectors.

    Source: Eklundh, A fast computer method for matrix transposing, 1972.
    """
    size, step, made = len(rows), 1, list(rows)
    while step < size:
        for number in (number for number in range(size) if not number & step):
            one, other = made[number], made[number + step]
            upper = [lane + size - step if lane & step else lane for lane in range(size)]
            lower = [lane + size if lane & step else lane + step for lane in range(size)]
            made[number], made[number + step] = (vector_dialect.shuffle(one, other, lanes) for lanes in (upper, lower))
        step *= 2
    return made
