"""legalize-complex-constants: which constants become their parts, and the numbers of those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge import ops
from hloforge.dialect.operations import operations
from hloforge.pipelines.workarounds.complex_constants import LegalizeComplexConstants, is_complex_array
from tests.engines import interpret

ARRAY = np.array([2, 2j, complex(-0.0, np.inf)])


@pytest.mark.parametrize(
    ("values", "arrays", "parts"),
    [
        (ARRAY.astype(np.complex64), True, True),
        (ARRAY.astype(np.complex64), False, False),
        (np.full(3, 2j, np.complex64), True, False),
        (ARRAY.astype(np.complex128), False, True),
        (np.full(3, 2j), True, True),
    ],
)
def test_constants(values: np.ndarray[Any, Any], arrays: bool, parts: bool) -> None:
    with hloforge.Builder("constants") as builder:
        z = ops.constant(values)
        module = builder.build([ops.real(z), ops.imag(z)]).module
    LegalizeComplexConstants(arrays=arrays).run(module)
    left = operations(module, ["stablehlo.complex"])
    assert bool(left) == parts
    assert not (arrays and any(map(is_complex_array, operations(module, ["stablehlo.constant"]))))
    for got, want in zip(interpret(module), (values.real, values.imag), strict=True):
        np.testing.assert_array_equal(got, want)
