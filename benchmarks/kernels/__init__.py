"""Single operations and small blocks of them."""

from __future__ import annotations

from benchmarks.cases import Case
from benchmarks.kernels import convolutions, indexing, linear_algebra, loops, order, products, random_numbers, rows

KERNELS: tuple[Case, ...] = (
    *products.CASES,
    *convolutions.CASES,
    *rows.CASES,
    *order.CASES,
    *indexing.CASES,
    *random_numbers.CASES,
    *loops.CASES,
    *linear_algebra.CASES,
)
