"""legalize-complex-products: a barrier where both parts are products, and the numbers of a real transform as before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.operations import operations
from hloforge.pipelines.workarounds.complex_products import LegalizeComplexProducts
from tests.engines import interpret

_ROWS = ops.DotDimensionNumbers([1], [0])


def _module(is_product: bool, is_summed: bool = False) -> Any:
    """The parts of a complex array again, so that the interpreter's results can be read."""
    with hloforge.Builder("parts") as builder:
        x, y = (builder.parameter(n, hloforge.Shape.array("f32", 3, 3), f"p{n}") for n in range(2))

        def part(left: Value, right: Value) -> Value:
            made = ops.dot_general(left, right, _ROWS) if is_product else left + right
            return ops.transpose(made + made if is_summed else made, [1, 0])

        z = ops.complex(part(x, y), part(y, x))
        return builder.build([ops.real(z), ops.imag(z)]).module


@pytest.mark.parametrize("is_product", [True, False])
def test_parts(is_product: bool) -> None:
    x, y = (np.random.default_rng(seed).integers(-9, 9, (3, 3)).astype(np.float32) for seed in range(2))
    module = _module(is_product)
    LegalizeComplexProducts().run(module)
    assert len(operations(module, ["stablehlo.optimization_barrier"])) == is_product
    real, imaginary = interpret(module, x, y)
    np.testing.assert_array_equal(real, (x @ y if is_product else x + y).T)
    np.testing.assert_array_equal(imaginary, (y @ x if is_product else y + x).T)


def test_what_is_computed_from_products() -> None:
    module = _module(is_product=True, is_summed=True)
    LegalizeComplexProducts().run(module)
    assert len(operations(module, ["stablehlo.optimization_barrier"])) == 1


@pytest.mark.parametrize("columns", [1, 2])
def test_products_with_a_vector_are_of_real_numbers(columns: int) -> None:
    with hloforge.Builder("rows") as builder:
        x, y = (builder.parameter(n, hloforge.Shape.array("f32", 3, (3, columns)[n]), f"p{n}") for n in range(2))
        z = ops.dot_general(ops.complex(x, x + x), ops.complex(y, y - 1.0), _ROWS)
        module = builder.build([ops.real(z), ops.imag(z)]).module
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, (3, size)).astype(np.float32) for size in (3, columns))
    want = (a + 2j * a) @ (b + 1j * (b - 1))
    LegalizeComplexProducts().run(module)
    products = operations(module, ["stablehlo.dot_general"])
    assert len(products) == (4 if columns == 1 else 1)
    for got, part in zip(interpret(module, a, b), (want.real, want.imag), strict=True):
        np.testing.assert_array_equal(got, part)
