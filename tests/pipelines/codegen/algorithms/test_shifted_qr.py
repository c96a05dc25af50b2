"""Eigenvalues and singular values of two diagonals against numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.shifted_qr import BidiagonalQR, TridiagonalQL
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from tests.pipelines.codegen.jit import compiled

_TYPES: dict[str, Any] = {"f32": np.float32, "f64": np.float64}


@given(
    st.sampled_from(sorted(_TYPES)),
    st.one_of(st.integers(1, 20), st.sampled_from([33, 50])),
    st.integers(0, 20),
    st.booleans(),
    st.sampled_from(["random", "apart", "zero", "equal"]),
)
@settings(max_examples=60, deadline=None)
def test_diagonals(element: str, n: int, extra: int, symmetric: bool, kind: str) -> None:
    random, dtype = np.random.default_rng(n), _TYPES[element]
    d, e = (random.standard_normal((2, n)).astype(dtype) / 4 for _ in range(2))
    if kind == "equal":
        d[:], e[:] = 0.5, 0.25
    if kind == "zero":
        d[1, n // 2] = 0
    if kind == "apart":
        e[0, n // 2] = 0
    e[:, -1] = 0
    width = n + extra
    start = random.standard_normal((2, n, width)).astype(dtype)
    plan = (TridiagonalQL if symmetric else BidiagonalQR)(2, n, element, width)
    count = 1 if symmetric else 2

    def write(function: Function, pointers: list[Value]) -> None:
        d, e, *vectors = (Elements(pointer, element) for pointer in pointers)
        plan.write(function, d, e, vectors)

    values, left, vectors = d.copy(), e.copy(), [start.copy() for _ in range(count)]
    compiled(write, 2 + count)(values, left, *vectors)
    tolerance = 1e-5 if element == "f32" else 1e-13
    assert not left.any()
    for number in range(2):
        above = np.diag(e[number, :-1].astype(float), 1)
        matrix = np.diag(d[number].astype(float)) + above + (above.T if symmetric else 0)
        found = np.sort(values[number] if symmetric else abs(values[number]))
        expected = np.linalg.eigvalsh(matrix) if symmetric else np.linalg.svd(matrix, compute_uv=False)[::-1]
        np.testing.assert_allclose(found, expected, atol=5 * tolerance)
        # The rotations that made the values, as they were applied to the rows.
        turns = [array[number] @ np.linalg.pinv(start[number].astype(float)) for array in vectors]
        first, last = turns[0], turns[-1]
        np.testing.assert_allclose(first @ matrix @ last.T, np.diag(values[number]), atol=100 * tolerance)


@pytest.mark.parametrize("plan", [TridiagonalQL(2, 7, "f64"), BidiagonalQR(2, 7, "f64")])
def test_values_alone(plan: TridiagonalQL | BidiagonalQR) -> None:
    d = np.random.default_rng(1).standard_normal((2, 7)) / 4
    e = np.full((2, 7), 0.1)
    e[:, -1] = 0
    matrices = [np.diag(one) + np.diag(other[:-1], 1) for one, other in zip(d, e, strict=True)]

    def write(function: Function, pointers: list[Value]) -> None:
        own = [Elements(pointer, "f64") for pointer in pointers]
        for rows in ((0, 1), (1, 2)):
            plan.write(function, own[0], own[1], [], rows)

    compiled(write, 2)(d, e)
    for found, matrix in zip(d, matrices, strict=True):
        if isinstance(plan, TridiagonalQL):
            np.testing.assert_allclose(np.sort(found), np.linalg.eigvalsh(matrix.T), atol=1e-13)
        else:
            np.testing.assert_allclose(np.sort(abs(found))[::-1], np.linalg.svd(matrix, compute_uv=False), atol=1e-13)
