"""Batches of uneven products of 16 bits on NVIDIA's GPUs; ``tests/cuda_emulator/cuda_sessions.py`` runs some."""

from __future__ import annotations

import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.program import Program
from hloforge.runtime.compile.uneven_products import has_uneven_narrow_products

_BATCH = ops.DotDimensionNumbers([2], [1], [0], [0])


def _product(batch: int, rows: int, columns: int, terms: int, element: str = "bf16", multiplied: str = "") -> Program:
    def factor(number: int, *sizes: int) -> Value:
        return builder.parameter(number, hloforge.Shape.array(element, *sizes), f"p{number}")

    with hloforge.Builder("program") as builder:
        factors = factor(0, batch, rows, terms), factor(1, batch, terms, columns)
        if multiplied:
            factors = (
                ops.convert_element_type(factors[0], multiplied),
                ops.convert_element_type(factors[1], multiplied),
            )
        return builder.build(ops.dot_general(*factors, _BATCH))


@pytest.mark.parametrize(
    ("program", "uneven"),
    [
        (_product(8, 1, 4, 128), True),
        (_product(8, 16, 4, 128), True),
        (_product(8, 16, 16, 120), True),
        (_product(8, 16, 16, 40, "f16"), True),
        (_product(8, 1, 4, 128, "bf16", "f32"), True),
        (_product(5, 16, 32, 48), False),
        (_product(1, 3, 5, 40), False),
        (_product(8, 1, 4, 128, "f32"), False),
        (_product(8, 1, 4, 128, "s8", "s32"), False),
    ],
)
def test_which_products_are_kept_from_padding(program: Program, uneven: bool) -> None:
    assert has_uneven_narrow_products(program.module) == uneven
