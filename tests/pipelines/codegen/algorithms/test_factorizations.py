"""Factorizations and triangular systems against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.cholesky import Cholesky
from hloforge.pipelines.codegen.algorithms.lu import LU, Factorization
from hloforge.pipelines.codegen.algorithms.qr import QR, Orthogonal
from hloforge.pipelines.codegen.algorithms.triangular_solve import TriangularSolve
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from tests.pipelines.codegen.jit import address_room, compiled

pytestmark = pytest.mark.wide(2)

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
    # Of small matrices there are some beside those that fill vectors.
    count = 37 if n < 12 else 3
    a = _random(random, element, (count, n, n))
    a = (a @ _adjoint(a) + n * np.eye(n)).astype(_TYPES[element])
    given = np.where(np.tril(np.ones((n, n), bool)) if lower else np.triu(np.ones((n, n), bool)), a, np.nan)
    given = given.astype(a.dtype)
    if bad is not None:
        given[1, bad, bad] = -1
    plan = Cholesky(count, n, element, lower, vector_bytes)

    def write(function: Function, pointers: list[Value]) -> None:
        arrays = [Elements(pointer, element) for pointer in pointers[:2]]
        plan.write(function, *arrays, pointers[2], Elements(pointers[3], "i32"))

    actual, failed, room = np.zeros_like(a), np.full(count, -1, np.int32), address_room(plan.scratch + 64)
    compiled(write, 4)(given, actual, room, failed)
    assert (room[plan.scratch :] == 0xA5).all()
    expected = np.linalg.cholesky(a)
    expected = expected if lower else _adjoint(expected)
    if bad is not None:
        assert np.isnan(actual[1]).all()
        assert list(failed) == [0, n if bad else 1, *[0] * (count - 2)]
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
        plan.write(function, *(Elements(pointer, element) for pointer in pointers[:3]), pointers[3])

    actual, room = np.zeros_like(b), address_room(plan.scratch + 64)
    compiled(write, 4)(np.where(is_read, a, np.nan).astype(a.dtype), b, actual, room)
    assert (room[plan.scratch :] == 0xA5).all()
    triangle = np.where(is_read, a, np.eye(n) if unit else 0)
    full = {"N": triangle, "T": triangle.swapaxes(1, 2), "H": _adjoint(triangle)}[op]
    np.testing.assert_allclose(full @ actual if left else actual @ full, b, **_close(element))


@given(_ELEMENTS, _SIZES, _SIZES, _BYTES, st.sampled_from(["random", "ones", "nan"]))
@settings(max_examples=15, deadline=None)
def test_lu(element: str, m: int, n: int, vector_bytes: int, kind: str) -> None:
    random = np.random.default_rng(m * n)
    a = _random(random, element, (2, m, n))
    if kind == "ones":
        a[1] = 1
    if kind == "nan":
        a[1, m // 2, n // 2] = np.nan
    plan = LU(2, m, n, element, vector_bytes)

    def write(function: Function, pointers: list[Value]) -> None:
        factors, *numbers = (Elements(p, e) for p, e in zip(pointers[1:5], (element, "i32", "i32", "i32"), strict=True))
        plan.write(function, Elements(pointers[0], element), Factorization(factors, *numbers), pointers[5])

    count = min(m, n)
    factors, exchanges, order = np.zeros_like(a), np.full((2, count), -1, np.int32), np.full((2, m), -1, np.int32)
    failed, room = np.full(2, -1, np.int32), address_room(plan.scratch + 64)
    compiled(write, 6)(a, factors, exchanges, order, failed, room)
    assert (room[plan.scratch :] == 0xA5).all()
    for number in range(2 if kind == "random" else 1):
        lower = np.tril(factors[number], -1)[:, :count] + np.eye(m, count)
        np.testing.assert_allclose(
            lower @ np.triu(factors[number])[:count], a[number][order[number]], **_close(element)
        )
        assert abs(lower).max() < (1.5 if "complex" in element else 1.0001)
    for row in range(2):
        rows = list(range(m))
        for one, other in enumerate(exchanges[row]):
            rows[one], rows[other] = rows[other], rows[one]
        assert rows == list(order[row])
    assert failed[0] == 0
    if kind == "ones":
        assert failed[1] == (2 if count > 1 else 0)
        assert list(exchanges[1]) == list(range(count))


@given(_ELEMENTS, _SIZES, _SIZES, _BYTES, st.sampled_from([1.0, 1e30, 1e-30]))
@settings(max_examples=50, deadline=None)
def test_qr(element: str, m: int, n: int, vector_bytes: int, size: float) -> None:
    random = np.random.default_rng(m * n)
    a = (_random(random, element, (2, m, n)) * size).astype(_TYPES[element])
    a[1, :, n // 2] = 0
    factors, taus, q = _qr(a, element, vector_bytes)
    tolerance = _close(element)
    np.testing.assert_allclose(q @ np.triu(factors) / size, a / size, **tolerance)
    np.testing.assert_allclose(_adjoint(q) @ q, np.broadcast_to(np.eye(m), q.shape), **tolerance)
    raw, scales = np.linalg.qr(a[0], mode="raw") if size == 1.0 else (factors[0].T, taus[0])
    np.testing.assert_allclose(factors[0], raw.T, **tolerance)
    np.testing.assert_allclose(taus[0], scales, **tolerance)


@pytest.mark.parametrize("element", sorted(_TYPES))
def test_qr_of_columns_of_all_sizes(element: str) -> None:
    """Squares of their numbers and inverses underflow; what a column of few dimensions leaves is rounding alone."""
    finfo = np.finfo(_TYPES[element])
    random = np.random.default_rng(1)
    sizes = 10.0 ** random.uniform(np.log10(finfo.tiny) + 2, np.log10(finfo.max) - 3, 30)
    a = _random(random, "complex<f64>", (2, 40, 30))
    a[1, :, 3:] = a[1, :, :3] @ _random(random, "f64", (3, 27))
    a = (a if "complex" in element else a.real) * np.where([[[0]], [[1]]], 100 * finfo.tiny / finfo.eps, sizes)
    a = a.astype(_TYPES[element])
    factors, _, q = _qr(a, element, 32)
    np.testing.assert_allclose(_adjoint(q) @ q, np.broadcast_to(np.eye(40), q.shape), **_close(element))
    norms = abs(a).max(1, keepdims=True)
    np.testing.assert_allclose(q @ (np.triu(factors) / norms), a / norms, **_close(element))


def _qr(a: Any, element: str, vector_bytes: int) -> tuple[Any, Any, Any]:
    """The factors, the taus and the square orthogonal factor of a batch."""
    batch, m, n = a.shape
    count = min(m, n)
    plan, product = QR(batch, m, n, element, vector_bytes), Orthogonal(batch, m, count, m, element, vector_bytes)

    def write(function: Function, pointers: list[Value]) -> None:
        plan.write(function, *(Elements(pointer, element) for pointer in pointers[:3]), pointers[3])

    def write_product(function: Function, pointers: list[Value]) -> None:
        product.write(function, *(Elements(pointer, element) for pointer in pointers[:3]), pointers[3])

    factors, taus, q = np.zeros_like(a), np.zeros((batch, count), a.dtype), np.zeros((batch, m, m), a.dtype)
    for code, one, arrays in ((write, plan, (a, factors, taus)), (write_product, product, None)):
        room = address_room(one.scratch + 64)
        compiled(code, 4)(*(arrays or (np.ascontiguousarray(factors[:, :, :count]), taus, q)), room)
        assert (room[one.scratch :] == 0xA5).all()
    return factors, taus, q


@pytest.mark.parametrize("element", ["f32", "complex<f64>"])
def test_matrices_without_elements(element: str) -> None:
    def write(function: Function, pointers: list[Value]) -> None:
        array = Elements(pointers[0], element)
        Cholesky(2, 0, element, True).write(function, array, array, pointers[0])
        TriangularSolve(2, (3, 0), element, True, True, False).write(function, array, array, array, pointers[0])
        LU(2, 0, 3, element).write(function, array, Factorization(array, array, array, array), pointers[0])
        QR(2, 3, 0, element).write(function, array, array, array, pointers[0])
        Orthogonal(2, 0, 0, 3, element).write(function, array, array, array, pointers[0])

    compiled(write, 1)(np.zeros(1))
