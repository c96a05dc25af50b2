"""Transposition of a square of numbers in vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hloforge.dialect.mlir import ir
from hloforge.pipelines.framework.builders import create


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
            made[number], made[number + step] = _shuffled(one, other, upper), _shuffled(one, other, lower)
        step *= 2
    return made


def _shuffled(one: Any, other: Any, order: Sequence[int]) -> Any:
    mask = ir.DenseI64ArrayAttr.get(list(order))
    return create("vector.shuffle", [one, other], [one.type], mask=mask).results[0]
