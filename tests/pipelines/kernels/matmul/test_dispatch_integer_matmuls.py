"""dispatch-integer-matmuls: products of 8-bit integers are exact, in every arrangement of their factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge import Builder, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.named import lower
from tests.pipelines.widths import WIDTHS, compiled_for

RANDOM = np.random.default_rng(0)
Array = np.ndarray[Any, Any]

# Letters of the left factor, the right one and the result, and the sizes.
FORMS = [
    ("mk,kn->mn", {"m": 64, "k": 64, "n": 64}),
    ("mk,kn->mn", {"m": 97, "k": 333, "n": 203}),  # nothing divides: rows, columns, and an odd depth
    ("mk,kn->mn", {"m": 4, "k": 2051, "n": 16}),  # several packed parts
    ("mk,nk->mn", {"m": 300, "k": 48, "n": 1000}),  # several groups of rows and columns
    ("bmk,bkn->bmn", {"b": 3, "m": 33, "k": 40, "n": 50}),
    ("kbm,nbk->bmn", {"b": 2, "m": 17, "k": 129, "n": 96}),
    ("mkj,kjpn->mpn", {"m": 16, "k": 3, "j": 64, "p": 4, "n": 20}),
]


def program_of(forms: list[str], arrays: list[Array], result: str = "s32") -> Program:
    with Builder("products") as builder:
        values = [
            builder.parameter(n, hloforge.Shape.array(array.dtype, *array.shape), f"x{n}")
            for n, array in enumerate(arrays)
        ]
        results = []
        for form, lhs, rhs in zip(forms, values[::2], values[1::2], strict=True):
            (left, right), out = form.partition("->")[0].split(","), form.partition("->")[2]
            batch, summed = [d for d in out if d in left and d in right], [d for d in left if d not in out]
            numbers = ops.DotDimensionNumbers(
                *([side.index(d) for d in dims] for dims in (summed, batch) for side in (left, right))
            )
            results.append(ops.dot_general(lhs, rhs, numbers, preferred_element_type=result))
        return builder.build(tuple(results))


def factors(form: str, sizes: dict[str, int], dtype: Any = np.int8) -> list[Array]:
    letters = form.partition("->")[0].split(",")
    shapes = [[sizes[d] for d in side] for side in letters]
    return [RANDOM.integers(np.iinfo(dtype).min, 1 + np.iinfo(dtype).max, shape).astype(dtype) for shape in shapes]


def dispatches(program: Program) -> int:
    copy = program.clone()
    lower(copy.module)
    return sum(op.name == "flow.dispatch" for op in operations(copy.module))


@pytest.mark.parametrize("machine", WIDTHS)
def test_products_of_every_form_are_exact(machine: Machine) -> None:
    arrays = [array for form in FORMS for array in factors(*form)]
    program = program_of([form for form, _ in FORMS], arrays)
    assert dispatches(program) == len(FORMS)
    executable = compiled_for(program, machine)
    for device in ("local-sync", "local-task"):
        results = executable.load(device=device)(*arrays)
        for (form, _), lhs, rhs, got in zip(FORMS, arrays[::2], arrays[1::2], results, strict=True):
            np.testing.assert_array_equal(got, np.einsum(form, lhs.astype(np.int64), rhs.astype(np.int64)), form)


@pytest.mark.parametrize("machine", WIDTHS)
def test_sums_of_the_largest_products_are_exact_and_wrap(machine: Machine) -> None:
    """A pair of -128 · -128 fills 16 bits twice over, and 2¹⁷ of them 32."""
    arrays = [
        np.full(dims, value, np.int8)
        for depth, value in ((1025, -128), (1 << 17, -128), (1025, 127))
        for dims in ((4, depth), (depth, 32))
    ]
    results = compiled_for(program_of(["mk,kn->mn"] * 3, arrays), machine).load()(*arrays)
    for got, want in zip(results, (1025 << 14, -(1 << 31), 1025 * 127 * 127), strict=True):
        np.testing.assert_array_equal(got, np.full((4, 32), want, np.int32))


def test_factors_that_were_widened_are_read_before() -> None:
    text = """func.func @main(%x: tensor<33x64xi8>, %w: tensor<64x96xi8>) -> tensor<33x96xi32> {
      %wide = stablehlo.convert %x : (tensor<33x64xi8>) -> tensor<33x64xi32>
      %factor = stablehlo.convert %w : (tensor<64x96xi8>) -> tensor<64x96xi32>
      %y = stablehlo.dot %wide, %factor : (tensor<33x64xi32>, tensor<64x96xi32>) -> tensor<33x96xi32>
      return %y : tensor<33x96xi32>
    }"""
    program = hloforge.read(text)
    assert dispatches(program) == 1
    x, w = factors("mk,kn->mn", {"m": 33, "k": 64, "n": 96})
    np.testing.assert_array_equal(hloforge.compile(program)(x, w), x.astype(np.int32) @ w.astype(np.int32))


@pytest.mark.parametrize(
    ("sizes", "dtype", "result"),
    [
        ({"m": 16, "k": 64, "n": 64}, np.int8, "s32"),  # no dispatch's worth
        ({"m": 512, "k": 512, "n": 8}, np.int8, "s32"),  # no strip
        ({"m": 64, "k": 64, "n": 64}, np.uint8, "u32"),
        ({"m": 64, "k": 64, "n": 64}, np.int8, "s8"),
        ({"m": 64, "k": 64, "n": 64}, np.int16, "s32"),
        ({"m": 0, "k": 64, "n": 64}, np.int8, "s32"),
    ],
)
def test_other_products_stay_iree_s(sizes: dict[str, int], dtype: Any, result: str) -> None:
    assert not dispatches(program_of(["mk,kn->mn"], factors("mk,kn->mn", sizes, dtype), result))
