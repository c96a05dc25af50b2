"""dispatch-factorizations: factors and solutions satisfy their equations in float64, in every form and batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge import Builder, Value, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.dialect.values import leaves
from hloforge.pipelines.named import lower

RANDOM = np.random.default_rng(0)
Array = np.ndarray[Any, Any]
DTYPES = [np.float32, np.float64]


@pytest.fixture(autouse=True)
def same_numbers_in_any_order_of_tests() -> None:
    RANDOM.bit_generator.state = np.random.default_rng(0).bit_generator.state


def program_of(arrays: Sequence[Array], body: Callable[..., Sequence[Value]]) -> Program:
    with Builder("factorizations") as builder:
        values = [
            builder.parameter(n, hloforge.Shape.array(array.dtype, *array.shape), f"x{n}")
            for n, array in enumerate(arrays)
        ]
        return builder.build(tuple(body(*values)))


def run(
    arrays: Sequence[Array], body: Callable[..., Sequence[Value]], without: frozenset[str] = frozenset()
) -> list[Array]:
    session = hloforge.compile(program_of(arrays, body), without=without).load()
    return [np.asarray(value) for value in session(*arrays)]


def bound(n: int, array: Array) -> float:
    """LAPACK's backward errors stay below it in the Frobenius norm."""
    return float(4 * n * np.finfo(array.dtype).eps)


def error(found: Array, expected: Array) -> float:
    expected = expected.astype(np.float64)
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def positive(dims: tuple[int, ...], dtype: Any) -> Array:
    a = RANDOM.normal(size=dims)
    return (a @ a.swapaxes(-1, -2) + np.eye(dims[-1])).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
def test_cholesky(dtype: Any) -> None:
    arrays = [positive(dims, dtype) for dims in ((16, 16), (2, 3, 40, 40), (1, 131, 131))]
    below = [np.where(np.tri(a.shape[-1], dtype=bool), a, np.nan) for a in arrays]
    above = [array.swapaxes(-1, -2).copy() for array in below]

    def body(*values: Value) -> list[Value]:
        return [ops.cholesky(value, number < len(below)) for number, value in enumerate(values)]

    factors = run([*below, *above], body)
    for number, (factor, a) in enumerate(zip(factors, arrays * 2, strict=True)):
        lower_ = factor if number < len(below) else factor.swapaxes(-1, -2)
        assert not np.triu(lower_, 1).any()
        lower_ = lower_.astype(np.float64)
        assert error(lower_ @ lower_.swapaxes(-1, -2), a) < bound(a.shape[-1], a)


def test_a_matrix_that_is_not_positive_definite_makes_nan_of_its_factor_alone() -> None:
    a = np.stack([np.eye(48), np.eye(48), np.eye(48)]).astype(np.float32)
    a[1, 20, 20], a[1, 30, 30], a[2, 47, 47] = -1, -2, np.nan

    def body(value: Value) -> list[Value]:
        called = ops.custom_call(
            "lapack_spotrf_ffi", [value], "(f32[3,48,48], s32[3])", backend_config={"uplo": ord("L")}
        )
        return [*leaves(called), ops.cholesky(value, lower=False)]

    lower_, failed, upper = run([a], body)
    for factor in (lower_, upper.swapaxes(1, 2)):
        np.testing.assert_array_equal(factor[0], a[0])
        assert np.isnan(factor[1:][:, np.tri(48, dtype=bool)]).all()
    assert failed.tolist() == [0, 21, 48]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
def test_triangular_systems(dtype: Any) -> None:
    forms = [
        (left, lower_, unit, form)
        for left in (True, False)
        for lower_ in (True, False)
        for unit in (True, False)
        for form in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
    ]
    n = 36
    whole = RANDOM.normal(size=(2, n, n)) / n + 2 * np.eye(n)
    inside = {True: np.tri(n, dtype=bool), False: np.tri(n, dtype=bool).T}
    a = {lower_: np.where(inside[lower_], whole, np.nan).astype(dtype) for lower_ in inside}
    wide, tall = (RANDOM.normal(size=dims).astype(dtype) for dims in ((2, n, 21), (2, 21, n)))

    def body(low: Value, up: Value, wide: Value, tall: Value) -> list[Value]:
        return [
            ops.triangular_solve(
                low if lower_ else up,
                wide if left else tall,
                left_side=left,
                lower=lower_,
                unit_diagonal=unit,
                transpose_a=form,
            )
            for left, lower_, unit, form in forms
        ]

    solutions = run([a[True], a[False], wide, tall], body)
    for (left, lower_, unit, form), x in zip(forms, solutions, strict=True):
        matrix = np.where(inside[lower_], a[lower_], 0).astype(np.float64)
        if unit:
            matrix[:, range(n), range(n)] = 1
        matrix = matrix if form == "NO_TRANSPOSE" else matrix.swapaxes(1, 2)
        image = matrix @ x if left else x @ matrix
        assert error(image, wide if left else tall) < bound(n, x), (left, lower_, unit, form)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
def test_lu(dtype: Any) -> None:
    arrays = [RANDOM.normal(size=dims).astype(dtype) for dims in ((2, 48, 48), (1, 130, 37), (3, 20, 70))]
    arrays.append(RANDOM.normal(size=(1, 9000, 16)).astype(dtype))  # more rows than the stack has room for
    arrays[0][1, :, 5] = 0  # no pivot
    arrays[0][0] = np.round(arrays[0][0])  # many equal elements

    def body(*values: Value) -> list[Value]:
        return [result for value in values for result in eliminated(value)]

    def eliminated(value: Value) -> list[Value]:
        (batch, m, n), element = value.dims, value.element_type.name
        exchanges = f"{element}[{batch},{m},{n}], s32[{batch},{min(m, n)}]"
        decomposed = ops.custom_call("LuDecomposition", [value], f"({exchanges}, s32[{batch},{m}])")
        target = f"lapack_{'s' if element == 'f32' else 'd'}getrf_ffi"
        called = ops.custom_call(target, [value], f"({exchanges}, s32[{batch}])", api_version=4)
        return [*leaves(decomposed), leaves(called)[2]]

    found = run(arrays, body)
    for number, a in enumerate(arrays):
        factors, exchanges, rows, info = found[4 * number : 4 * number + 4]
        _, m, n = a.shape
        k = min(m, n)
        for matrix, factor, exchange, order in zip(a, factors, exchanges, rows, strict=True):
            lower_ = np.tril(factor[:, :k], -1).astype(np.float64) + np.eye(m, k)
            upper = np.triu(factor[:k])
            assert np.abs(lower_).max() <= 1
            assert error(lower_ @ upper, matrix[order]) < bound(max(m, n), a)
            expected = np.arange(m)
            for row, other in enumerate(exchange):
                expected[[row, other]] = expected[[other, row]]
            np.testing.assert_array_equal(order, expected)
        assert info.tolist() == ([0, 6] if number == 0 else [0] * len(a))


def test_real_matrices_of_some_size_alone_become_dispatches_of_vectors() -> None:
    def body(*values: Value) -> list[Value]:
        return [ops.cholesky(value) for value in values]

    def dispatches(*arrays: Array) -> int:
        program = program_of(arrays, body)
        lower(program.module)
        return len(operations(program.module, {"flow.dispatch.workgroups"}))

    assert dispatches(np.eye(16, dtype=np.float32), np.eye(30)) == 2
    assert dispatches(np.eye(15, dtype=np.float32)) == 0
    assert dispatches(np.eye(64, dtype=np.complex64)) == 0


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
def test_qr(dtype: Any) -> None:
    arrays = [RANDOM.normal(size=dims).astype(dtype) for dims in ((2, 48, 48), (1, 130, 37), (3, 20, 70))]
    largest = np.finfo(dtype).max
    arrays[0][1] *= largest / 100  # squares overflow
    # Squares vanish; products with reflectors do not, which are flushed to zero below the least normal number.
    arrays[0][0, :, 7] *= np.finfo(dtype).tiny / np.finfo(dtype).eps * 1e3
    arrays[1][0, 9:, 8] = 0
    arrays[1][0, :, 9] = 0

    def body(*values: Value) -> list[Value]:
        return [result for value in values for result in factored(value)]

    def factored(value: Value) -> list[Value]:
        (batch, m, n), element = value.dims, value.element_type.name
        shapes = f"({element}[{batch},{m},{n}], {element}[{batch},{min(m, n)}])"
        factors, taus = leaves(ops.custom_call("Qr", [value], shapes))
        columns = factors[:, :, : min(m, n)]
        target = "ProductOfElementaryHouseholderReflectors"
        return [factors, ops.custom_call(target, [columns, taus], columns.shape)]

    found = run(arrays, body)
    for number, a in enumerate(arrays):
        factors, q = (value.astype(np.longdouble) for value in found[2 * number : 2 * number + 2])
        r, size = np.triu(factors[:, : q.shape[2]]), max(a.shape[1:])
        gram = q.swapaxes(1, 2) @ q - np.eye(q.shape[2])
        assert np.sqrt((gram**2).sum()) < bound(size, a) * np.sqrt(size)
        rest = np.sqrt(((q @ r - a) ** 2).sum(1))
        # Columns have an error of their own, whatever the size of the others.
        assert (rest <= bound(size, a) * np.sqrt((a.astype(np.longdouble) ** 2).sum(1))).all()


@pytest.mark.slow
def test_the_loops_for_any_target_find_the_same() -> None:
    a, spd = RANDOM.normal(size=(1, 70, 70)), positive((1, 70, 70), np.float64)

    def body(a: Value, spd: Value) -> list[Value]:
        lower_ = ops.cholesky(spd, True)
        decomposed = ops.custom_call("LuDecomposition", [a], "(f64[1,70,70], s32[1,70], s32[1,70])")
        return [lower_, ops.triangular_solve(lower_, a), *leaves(decomposed)]

    code, loops = (run([a, spd], body, frozenset(left_out)) for left_out in ((), ("keep-factorizations",)))
    for one, other in zip(code, loops, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_factors_that_nobody_reads_need_no_stack() -> None:
    a = positive((2, 72, 72), np.float64)

    def body(value: Value) -> list[Value]:
        shapes = "(f64[2,72,72], s32[2,72], s32[2,72])"
        factors = [
            ops.custom_call("LuDecomposition", [value], shapes),
            ops.custom_call("Qr", [value], "(f64[2,72,72], f64[2,72])"),
            ops.custom_call("lapack_dpotrf_ffi", [value], "(f64[2,72,72], s32[2])", backend_config={"uplo": ord("L")}),
        ]
        return [leaves(factor)[1] for factor in factors]

    exchanges, taus, info = run([a], body)
    both = run([a], lambda value: list(leaves(ops.custom_call("Qr", [value], "(f64[2,72,72], f64[2,72])"))))
    np.testing.assert_array_equal(taus, both[1])
    assert exchanges.shape == (2, 72)
    assert (np.arange(72) <= exchanges).all()
    assert not info.any()
