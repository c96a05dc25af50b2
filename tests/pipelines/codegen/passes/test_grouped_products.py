"""Products of rows with the matrices of their groups, beside float64 of numpy."""

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
    terms, columns = data.draw(st.sampled_from([1, 3, 33, 70]), "terms"), data.draw(st.sampled_from([16, 48, 160]), "n")
    dtype = data.draw(st.sampled_from([np.float32, np.float32, jnp.bfloat16, np.float16, np.float64]), "type")
    is_transposed, is_known = data.draw(st.tuples(st.booleans(), st.booleans()), "form")
    share = data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]), "share")
    random = np.random.default_rng(groups * rows)
    mine = random.random((groups, rows)) < share
    x, w = normal(rows, terms).astype(dtype), normal(groups, terms, columns).astype(dtype)
    stored = np.ascontiguousarray(w.swapaxes(1, 2)) if is_transposed else w

    def product(x: Any, mine: Any, stored: Any) -> Any:
        masked = jnp.where(mine[:, :, None], x[None], jnp.zeros((), x.dtype))
        matrices = jnp.swapaxes(stored, 1, 2) if is_transposed else stored
        wide = jnp.float64 if x.dtype == np.float64 else jnp.float32
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
    got = np.asarray(compiled(program).load()(*arguments))
    np.testing.assert_allclose(got, want, rtol=0, atol=_TOLERANCES[dtype] * scale)


@pytest.mark.parametrize("sizes", [[5, 0, 60, 31], [0, 0, 0, 96], [10, 10, 10, 10], [96, 0, 0, 0]], ids=str)
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
