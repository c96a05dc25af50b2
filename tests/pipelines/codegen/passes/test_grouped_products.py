"""Products of rows with the matrices of their groups, and over the rows of each group, beside float64 of numpy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hloforge
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.pipelines.codegen.lowering import lower
from tests.pipelines.codegen.jax_programs import normal
from tests.pipelines.codegen.whole_programs import compiled

_TOLERANCES = {np.float32: 2e-6, jnp.bfloat16: 2e-6, np.float16: 2e-6, np.float64: 1e-13}


# Half of the distance between neighbouring numbers, of the larger one.
_ROUNDED = {jnp.bfloat16: 2.0**-8, np.float16: 2.0**-11}


def _check(got: Any, want: Any, scale: float, dtype: Any) -> None:
    """Sums in f32 or f64 of a type's terms, rounded once where results are narrower."""
    error = abs(np.float64(np.asarray(got)) - want) - _TOLERANCES[dtype] * scale
    narrow = _ROUNDED.get(np.asarray(got).dtype.type, 0.0)
    assert (error <= narrow * abs(want)).all(), error.max()


def _program(function: Any, *arguments: Any) -> Program:
    return hloforge.as_program(jax.jit(function).lower(*arguments))


def _calls(program: Program) -> tuple[int, int]:
    """How many grouped products and how many other products a lowered program has."""
    module = program.clone().module
    lower(module)
    calls = operations(module, {"stablehlo.custom_call"})
    return len(calls), len(operations(module, {"stablehlo.dot_general"}))


def _expected(x: Any, w: Any, mine: Any) -> Any:
    return np.einsum("gm,mk,gkn->mn", mine.astype(np.float64), np.float64(x), np.float64(w))


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_rows_in_any_groups(data: st.DataObject) -> None:
    """Masks of any form: rows in no group, in one, in several; few and many rows; arguments and constants."""
    groups, rows = data.draw(st.integers(1, 9), "groups"), data.draw(st.sampled_from([1, 2, 7, 40, 150]), "rows")
    terms, columns = (
        data.draw(st.sampled_from([1, 3, 33, 70, 512]), "terms"),
        data.draw(st.sampled_from([16, 48, 160]), "n"),
    )
    dtype = data.draw(st.sampled_from([np.float32, np.float32, jnp.bfloat16, np.float16, np.float64]), "type")
    is_transposed, is_known = data.draw(st.tuples(st.booleans(), st.booleans()), "form")
    share, is_narrow = data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]), "share"), data.draw(st.booleans(), "narrow")
    random = np.random.default_rng(groups * rows)
    mine = random.random((groups, rows)) < share
    x, w = normal(rows, terms).astype(dtype), normal(groups, terms, columns).astype(dtype)
    stored = np.ascontiguousarray(w.swapaxes(1, 2)) if is_transposed else w

    def product(x: Any, mine: Any, stored: Any) -> Any:
        masked = jnp.where(mine[:, :, None], x[None], jnp.zeros((), x.dtype))
        matrices = jnp.swapaxes(stored, 1, 2) if is_transposed else stored
        wide = x.dtype if is_narrow or x.dtype == np.float64 else jnp.float32
        return jax.lax.dot_general(masked, matrices, (((2, 0), (1, 0)), ((), ())), preferred_element_type=wide)

    with jax.enable_x64(dtype == np.float64):
        if is_known:
            program, arguments = _program(lambda x, mine: product(x, mine, stored), x, mine), (x, mine)
        else:
            arguments = (x, mine, stored)
            program = _program(product, *arguments)
    assert _calls(program) == (1, 0)
    want = _expected(x, w, mine)
    scale = np.einsum("gm,mk,gkn->mn", mine.astype(np.float64), abs(np.float64(x)), abs(np.float64(w))).max(initial=1)
    _check(compiled(program).load()(*arguments), want, scale, dtype)


@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_sums_over_rows_of_any_groups(data: st.DataObject) -> None:
    """Either factor masked or both; groups before or behind rows; rows in no group, in one, in several; batches."""
    batch, groups = data.draw(st.sampled_from([0, 0, 1, 3]), "batch"), data.draw(st.integers(2, 7), "groups")
    rows = data.draw(st.sampled_from([1, 2, 7, 40, 150]), "rows")
    m, n = data.draw(st.sampled_from([(1, 3), (5, 1), (16, 33), (70, 100), (129, 64)]), "sizes")
    dtype = data.draw(st.sampled_from([np.float32, np.float32, jnp.bfloat16, np.float16, np.float64]), "type")
    masked = data.draw(st.sampled_from(["left", "right", "both"]), "masked")
    share, is_narrow = data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]), "share"), data.draw(st.booleans(), "narrow")
    lead = (batch,) if batch else ()
    mine = np.random.default_rng(groups * rows).random((*lead, groups, rows)) < share
    x, y = normal(*lead, rows, m).astype(dtype), normal(*lead, rows, n).astype(dtype)
    wide = dtype if is_narrow or dtype == np.float64 else np.float32

    def contraction(x: Any, y: Any, mine: Any) -> Any:
        def left(factor: Any) -> Any:
            return jnp.where(mine[..., None], factor[None], jnp.zeros((), dtype))

        if masked == "both":
            return jax.lax.dot_general(left(x), left(y), (((1,), (1,)), ((0,), (0,))), preferred_element_type=wide)
        lhs, rhs = (left(x), y) if masked == "left" else (x, left(y))
        numbers = (((1,), (0,)), ((), ())) if masked == "left" else (((0,), (1,)), ((), ()))
        found = jax.lax.dot_general(lhs, rhs, numbers, preferred_element_type=wide)
        return found if masked == "left" else jnp.swapaxes(found, 0, 1)

    with jax.enable_x64(dtype == np.float64):
        program = _program(jax.vmap(contraction) if batch else contraction, x, y, mine)
    assert _calls(program) == (1, 0)
    want = _over_rows(x, y, mine)
    scale = _over_rows(abs(x), abs(y), mine).max(initial=1)
    _check(compiled(program).load()(x, y, mine), want, scale, dtype)


def _over_rows(x: Any, y: Any, mine: Any) -> Any:
    return np.einsum("...gr,...ri,...rj->...gij", mine.astype(np.float64), np.float64(x), np.float64(y))


_SIZES = [[5, 0, 60, 31], [0, 0, 0, 96], [10, 10, 10, 10], [96, 0, 0, 0]]


@pytest.mark.wide(2)
@pytest.mark.parametrize("sizes", _SIZES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.float64])
def test_gradients_of_experts(sizes: list[int], dtype: Any) -> None:
    """Rows behind the last group have no part in any; beside numpy, and beside XLA, which masks all."""
    with jax.enable_x64(dtype == np.float64):
        x, w, dy = normal(96, 40).astype(dtype), normal(4, 40, 80).astype(dtype), normal(96, 80).astype(dtype)
        given = np.array(sizes, np.int32)

        def gradients(x: Any, w: Any, dy: Any, sizes: Any) -> Any:
            return jax.vjp(lambda x, w: jax.lax.ragged_dot(x, w, sizes), x, w)[1](dy)

        program = _program(gradients, x, w, dy, given)
        by_xla = jax.tree.map(np.float64, jax.jit(gradients)(x, w, dy, given))
    assert _calls(program) == (2, 0)
    mine = np.pad(np.repeat(np.arange(4), sizes), (0, 96 - sum(sizes)), constant_values=4) == np.arange(4)[:, None]
    wants = [_expected(dy, np.swapaxes(w, 1, 2), mine), _over_rows(x, dy, mine)]
    for got, want, other in zip(compiled(program).load()(x, w, dy, given), wants, by_xla, strict=True):
        for one in (want, other):
            atol = (0.01 if dtype == jnp.bfloat16 else 2e-6) * abs(one).max()
            np.testing.assert_allclose(np.float64(np.asarray(got)), one, rtol=0, atol=atol)


def test_batches_of_groups() -> None:
    """As ``vmap`` makes them, of the product and both gradients."""
    x, w, dy = normal(3, 50, 24), normal(3, 4, 24, 32), normal(3, 50, 32)
    sizes = np.array([[10, 0, 30, 10], [0, 0, 0, 50], [1, 2, 3, 4]], np.int32)

    def gradients(x: Any, w: Any, dy: Any, sizes: Any) -> Any:
        result, back = jax.vjp(lambda x, w: jax.lax.ragged_dot(x, w, sizes), x, w)
        return (result, *back(dy))

    program = _program(jax.vmap(gradients), x, w, dy, sizes)
    assert _calls(program) == (3, 0)
    got = compiled(program).load()(x, w, dy, sizes)
    for n, of_one in enumerate(sizes):
        mine = np.pad(np.repeat(np.arange(4), of_one), (0, 50 - of_one.sum()), constant_values=4)
        mine = mine == np.arange(4)[:, None]
        wants = (
            _expected(x[n], w[n], mine),
            _expected(dy[n], w[n].swapaxes(1, 2), mine),
            _over_rows(x[n], dy[n], mine),
        )
        for one, want in zip(got, wants, strict=True):
            np.testing.assert_allclose(np.asarray(one)[n], want, rtol=0, atol=3e-6 * abs(want).max())


def test_more_rows_than_a_strip_has() -> None:
    """Sums wait between blocks of rows; several workers share the result."""
    x, y = normal(70000, 9), normal(70000, 37)
    mine = np.random.default_rng(0).integers(0, 2, 70000) == np.arange(2)[:, None]

    def contraction(x: Any, y: Any, mine: Any) -> Any:
        return jnp.einsum("grk,rn->gkn", jnp.where(mine[:, :, None], x, 0.0), y)

    program = _program(contraction, x, y, mine)
    assert _calls(program) == (1, 0)
    want = _over_rows(x, y, mine)
    for threads in (1, 3):
        got = np.asarray(compiled(program).load(device="local-task", threads=threads)(x, y, mine))
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-3)


@pytest.mark.parametrize("rows", [1, 33])
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16])
def test_large_sums_over_few_rows(rows: int, dtype: Any) -> None:
    """Results are written row by row; a group has an odd number of rows, and what is infinite stays in its group."""
    x, y = normal(rows, 300).astype(dtype), normal(rows, 451).astype(dtype)
    x[0, 0] = np.inf
    mine = np.zeros((7, rows), bool)
    mine[3, 0] = mine[5, ::2] = mine[6] = True
    mine[5, 0] = mine[6, 0] = False

    def contraction(x: Any, y: Any, mine: Any) -> Any:
        return jnp.einsum("grk,rn->gkn", jnp.where(mine[:, :, None], x, jnp.zeros((), dtype)), y)

    program = _program(contraction, x, y, mine)
    assert _calls(program) == (1, 0)
    want = np.stack([np.float64(x)[one].T @ np.float64(y)[one] for one in mine])
    finite = np.isfinite(want)
    assert finite[[0, 1, 2, 4, 5, 6]].all()
    assert not finite[3, 0].any()
    for threads in (1, 3):
        got = np.asarray(compiled(program).load(device="local-task", threads=threads)(x, y, mine))
        assert (got[3, 0] == want[3, 0]).all()
        got = np.where(finite, got, 0)
        _check(got.astype(dtype), np.where(finite, want, 0), 100, dtype)


@pytest.mark.parametrize("sizes", _SIZES, ids=str)
def test_ragged_products(sizes: list[int]) -> None:
    """Two layers of experts, also in a loop, where rows behind the last group are zeros."""
    x, w, v = normal(96, 64), normal(4, 64, 128) / 8, normal(4, 128, 64) / 11
    given = np.array(sizes, np.int32)

    def experts(x: Any, w: Any, v: Any, sizes: Any) -> Any:
        hidden = jax.nn.silu(jax.lax.ragged_dot(x, w, sizes))
        return jax.lax.ragged_dot(hidden, v, sizes)

    def layers(x: Any, w: Any, v: Any, sizes: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, x: x + experts(x, w, v, sizes), x)

    mine = np.zeros((4, 96), bool)
    for group, (start, size) in enumerate(zip(np.cumsum([0, *sizes]), sizes, strict=False)):
        mine[group, start : start + size] = True

    def expected(x: Any) -> Any:
        hidden = _expected(x, w, mine)
        return _expected(hidden / (1 + np.exp(-hidden)), v, mine)

    for function, want in ((experts, expected(x)), (layers, None)):
        program = _program(function, x, w, v, given)
        assert _calls(program)[0] == 2
        if want is None:
            want = np.float64(x)
            for _ in range(3):
                want = want + expected(want)
        got = np.asarray(compiled(program).load()(x, w, v, given))
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * abs(want).max())


def test_several_workers_share_columns() -> None:
    x, w = normal(300, 200), normal(6, 200, 640)
    sizes = np.array([100, 0, 7, 93, 60, 33], np.int32)
    program = _program(jax.lax.ragged_dot, x, w, sizes)
    mine = np.repeat(np.arange(6), sizes)[None] == np.arange(6)[:, None]
    got = np.asarray(compiled(program).load(device="local-task", threads=3)(x, w, sizes))
    np.testing.assert_allclose(got, _expected(x, w, np.pad(mine, ((0, 0), (0, 7)))), rtol=0, atol=3e-4)
