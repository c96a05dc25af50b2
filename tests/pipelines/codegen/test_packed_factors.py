"""Products in loops whose right factor is packed before the loop, beside XLA's client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hloforge
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.codegen.products.packed import PackedGemm
from hloforge.pipelines.framework.machine import Machine
from tests.pipelines.codegen.jax_programs import check, normal

_TYPES = [np.float32, np.float32, np.float64, jnp.bfloat16, np.float16, np.int32]


def _packs(function: Callable[..., Any], *arguments: Any) -> int:
    """How many factors the code of a function packs."""
    found = []
    with pytest.MonkeyPatch.context() as patch, jax.enable_x64(True):
        own = PackedGemm.pack

        def pack(product: PackedGemm, *others: Any, **named: Any) -> None:
            found.append(product)
            own(product, *others, **named)

        patch.setattr(PackedGemm, "pack", pack)
        program = hloforge.as_program(jax.jit(function, keep_unused=True).lower(*arguments)).clone()
        lower(program.module)
        generate(program.module, Machine())
    return len(found)


def _integers(*shape: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Small ones, whose sums are exact in any order."""
    return np.random.default_rng(len(shape)).integers(-3, 4, shape).astype(dtype)


def _lstm(x: Any, w: Any, u: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(row @ w.T + h @ u.T, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[1], u.shape[1]), x.dtype)
    return jax.lax.scan(step, (zero, zero), x)


@pytest.mark.wide(4)
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16])
@pytest.mark.parametrize(("rows", "width"), [(1, 24), (2, 24), (5, 33), (9, 50)])
def test_recurrent_layers(rows: int, width: int, dtype: Any) -> None:
    arguments = [normal(7, rows, 13), normal(4 * width, 13) * 0.3, normal(4 * width, width) * 0.3]
    arguments = [argument.astype(dtype) for argument in arguments]
    check(_lstm, *arguments)
    assert (_packs(_lstm, *arguments) > 0) == (rows > 1)


def test_a_factor_that_the_outer_loop_changes_is_packed_in_it() -> None:
    def function(x: Any, w: Any, v: Any) -> Any:
        def outer(_: Any, state: Any) -> Any:
            y, w = state
            y = jax.lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y @ w.T + (y @ v.T)), y)
            return y, w * 0.9 + 0.01 * (y.T @ y)

        return jax.lax.fori_loop(0, 4, outer, (x, w))

    arguments = normal(6, 40), normal(40, 40) * 0.2, normal(40, 40) * 0.2
    check(function, *arguments)
    assert _packs(function, *arguments) == 2


def test_loops_that_do_not_run() -> None:
    def function(x: Any, w: Any, count: Any) -> Any:
        return jax.lax.fori_loop(0, count, lambda _, y: jnp.tanh(y @ w.T), x)

    for count in (0, 1, 5):
        check(function, normal(8, 30), normal(30, 30) * 0.1, np.int32(count))


def test_a_left_factor_of_products_with_few_columns() -> None:
    def function(x: Any, w: Any) -> Any:
        return jax.lax.fori_loop(0, 4, lambda _, y: jnp.tanh(w @ y), x)

    check(function, normal(90, 3), normal(90, 90) * 0.1)
    check(function, normal(90, 2), normal(90, 90) * 0.1)
    check(function, normal(90), normal(90, 90) * 0.1)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_random_loops(data: st.DataObject) -> None:
    batch = data.draw(st.sampled_from([(), (), (2,), (3, 2)]))
    m, k = data.draw(st.sampled_from([1, 2, 3, 5, 8, 13, 30, 70, 300])), data.draw(st.integers(1, 90))
    dtype, is_transposed = data.draw(st.sampled_from(_TYPES)), data.draw(st.booleans())
    is_left, inner = data.draw(st.booleans()), data.draw(st.booleans())
    w, v = (_integers(*batch, k, k, dtype=dtype) for _ in range(2))
    x = _integers(*batch, m, k, dtype=dtype)

    def bounded(y: Any) -> Any:
        return jnp.clip(y, -2, 2).astype(dtype)

    def step(_: Any, y: Any) -> Any:
        factor = jnp.swapaxes(w, -1, -2) if is_transposed else w
        y = bounded(jnp.swapaxes(factor @ jnp.swapaxes(y, -1, -2), -1, -2) if is_left else y @ factor)
        return jax.lax.fori_loop(0, 2, lambda _, y: bounded(y @ jnp.swapaxes(v, -1, -2) + 1), y) if inner else y

    check(lambda x, w, v: jax.lax.fori_loop(0, 2, lambda n, y: step(n, y), x) + w.sum() * 0 + v.sum() * 0, x, w, v)
