"""Factorizations and triangular systems against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.cholesky import Cholesky
from hloforge.pipelines.codegen.algorithms.triangular_solve import TriangularSolve
from hloforge.pipelines.codegen.elements import memory
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from tests.pipelines.codegen.jit import address_room, compiled

_TYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}
_ELEMENTS = st.sampled_from(sorted(_TYPES))
_SIZES = st.one_of(st.integers(1, 20), st.sampled_from([31, 33, 70]))
_BYTES = st.sampled_from([16, 32, 64])


def _random(random: Any, element: str, shape: tuple[int, ...]) -> Any:
    found = random.standard_normal(shape)
    if "complex" in element:
        found = found + 1j * random.standard_normal(shape)
    return found.astype(_TYPES[element])


def _adjoint(array: Any) -> Any:
    return array.conj().swapaxes(-1, -2)


def _close(element: str) -> dict[str, float]:
    tolerance = 2e-4 if "32" in element else 1e-11
    return {"rtol": tolerance, "atol": tolerance}


@given(_ELEMENTS, _SIZES, st.booleans(), _BYTES, st.sampled_from([None, 0, -1]))
@settings(max_examples=40, deadline=None)
def test_cholesky(element: str, n: int, lower: bool, vector_bytes: int, bad: int | None) -> None:
    random = np.random.default_rng(n)
    a = _random(random, element, (3, n, n))
    a = (a @ _adjoint(a) + n * np.eye(n)).astype(_TYPES[element])
    given = np.where(np.tril(np.ones((n, n), bool)) if lower else np.triu(np.ones((n, n), bool)), a, np.nan)
    given = given.astype(a.dtype)
    if bad is not None:
        given[1, bad, bad] = -1
    plan = Cholesky(3, n, element, lower, vector_bytes)

    def write(function: Function, pointers: list[Value]) -> None:
        arrays = [Elements(pointer, element) for pointer in pointers[:2]]
        plan.write(function, *arrays, pointers[2], Elements(pointers[3], "i32"))

    actual, failed, room = np.zeros_like(a), np.full(3, -1, np.int32), address_room(plan.scratch + 64)
    compiled(write, 4)(given, actual, room, failed)
    assert (room[plan.scratch :] == 0xA5).all()
    expected = np.linalg.cholesky(a)
    expected = expected if lower else _adjoint(expected)
    if bad is not None:
        assert np.isnan(actual[1]).all()
        assert list(failed) == [0, n if bad else 1, 0]
        actual, expected = np.delete(actual, 1, 0), np.delete(expected, 1, 0)
    else:
        assert not failed.any()
    np.testing.assert_allclose(actual, expected, **_close(element))


@given(_ELEMENTS, _SIZES, _SIZES, st.booleans(), st.booleans(), st.booleans(), st.sampled_from("NTH"), _BYTES)
@settings(max_examples=60, deadline=None)
def test_triangular_systems(
    element: str, n: int, rights: int, left: bool, lower: bool, unit: bool, op: str, vector_bytes: int
) -> None:
    random = np.random.default_rng(n * rights)
    shape = (n, rights) if left else (rights, n)
    a = (_random(random, element, (2, n, n)) / np.sqrt(n) / 2 + 2 * np.eye(n)).astype(_TYPES[element])
    b = _random(random, element, (2, *shape))
    ones = np.ones((n, n), bool)
    is_read = np.tril(ones, -int(unit)) if lower else np.triu(ones, int(unit))
    plan = TriangularSolve(2, shape, element, left, lower, unit, op == "T", op == "H", vector_bytes)

    def write(function: Function, pointers: list[Value]) -> None:
        plan.write(function, *(Elements(pointer, element) for pointer in pointers[:3]), pointers[3])  # type: ignore[call-arg,arg-type,misc]

    actual, room = np.zeros_like(b), address_room(plan.scratch + 64)
    compiled(write, 4)(np.where(is_read, a, np.nan).astype(a.dtype), b, actual, room)
    assert (room[plan.scratch :] == 0xA5).all()
    triangle = np.where(is_read, a, np.eye(n) if unit else 0)
    full = {"N": triangle, "T": triangle.swapaxes(1, 2), "H": _adjoint(triangle)}[op]
    np.testing.assert_allclose(full @ actual if left else actual @ full, b, **_close(element))


@pytest.mark.parametrize("element", ["f32", "complex<f64>"])
def test_matrices_without_elements(element: str) -> None:
    def write(function: Function, pointers: list[Value]) -> None:
        array = Elements(pointers[0], element)
        Cholesky(2, 0, element, True).write(function, array, array, pointers[0])
        TriangularSolve(2, (3, 0), element, True, True, False).write(function, array, array, array, pointers[0])
        assert memory.size(element)

    compiled(write, 1)(np.zeros(1))
