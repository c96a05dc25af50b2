"""Squares of vectors with rows and lanes exchanged."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from hloforge.pipelines.codegen.products.shuffles import square_transposed
from tests.pipelines.codegen.jit import compiled

_KINDS = {"float": np.float32, "double": np.float64, "i16": np.uint16, "i8": np.uint8}


@pytest.mark.parametrize(
    ("kind", "lanes"), [("float", 4), ("float", 16), ("double", 8), ("i16", 8), ("i16", 16), ("i8", 16)]
)
def test_rows_and_lanes_change_places(kind: str, lanes: int) -> None:
    def write(function: Function, pointers: list[Value]) -> None:
        vector = f"<{lanes} x {kind}>"
        rows = [function.load(function.offset(pointers[0], kind, row * lanes), vector) for row in range(lanes)]
        for row, found in enumerate(square_transposed(function, rows)):
            function.store(found, function.offset(pointers[1], kind, row * lanes))

    given = np.arange(lanes * lanes).reshape(lanes, lanes).astype(_KINDS[kind])
    found = np.zeros_like(given)
    compiled(write, 2)(given, found)
    assert np.array_equal(found, given.T)
