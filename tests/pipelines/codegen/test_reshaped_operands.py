"""Algorithms read arrays of other shapes and parts of arrays where they lie: nothing is copied, and nobody changes
them too early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings, strategies as st
from jax import lax

import hloforge
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.kernel_program import KernelProgram
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.framework.machine import Machine
from tests.pipelines.codegen.jax_programs import check, normal


def _ones(*shape: int) -> Any:
    return jnp.ones(shape, np.float32)


# Of 12 x 10 numbers in any shape.
_ALGORITHMS: list[Callable[[Any], Any]] = [
    lambda x: x @ _ones(10, 7),
    lambda x: _ones(3, 12) @ x,
    lambda x: jnp.einsum("hbd,hcd->hbc", x.reshape(12, 2, 5), x.reshape(12, 2, 5)),
    lambda x: x.reshape(20, 6) @ _ones(6, 7),
    lambda x: _ones(3, 24) @ x.reshape(5, 24).T,
    lambda x: jnp.einsum("bij,bkj->bik", x.reshape(2, 12, 5), x.reshape(2, 12, 5)),
    lambda x: jnp.sort(x.reshape(8, 15), axis=0),
    lambda x: jnp.cumsum(x.reshape(30, 4), axis=0),
    lambda x: jnp.fft.rfft(x.reshape(4, 30)).real,
    lambda x: jnp.linalg.cholesky(x.reshape(12, 10)[:, :9].reshape(12, 3, 3) / 40 + jnp.eye(3, dtype=np.float32)),
    lambda x: lax.conv_general_dilated(x.reshape(1, 10, 12, 1), _ones(3, 3, 1, 2), (1, 1), "SAME",
                                       dimension_numbers=("NHWC", "HWIO", "NHWC")),
    lambda x: lax.reduce_window(x.reshape(10, 12), -jnp.inf, lax.max, (2, 3), (1, 1), "VALID"),
    lambda x: jax.scipy.linalg.solve_triangular(jnp.eye(10, dtype=np.float32) * 2, x.reshape(10, 12), lower=True),
]  # fmt: skip
# What an array is before: an argument, computed, the result of an algorithm, changed in place.
_SOURCES: list[Callable[[Any], Any]] = [
    lambda x: x,
    lambda x: x * 2 + 1,
    lambda x: x @ _ones(10, 10) / 10,
    lambda x: x.at[3].set(1.0),
    lambda x: jnp.sort(x, 0),
    lambda x: x.T.reshape(12, 10),
    lambda x: jnp.broadcast_to(x[0], (12, 10)),
    lambda x: _ones(12, 10) / 2,
]


@given(
    st.sampled_from(_SOURCES),
    st.lists(st.sampled_from(_ALGORITHMS), min_size=1, max_size=3),
    st.sampled_from(["plain", "loop", "carry", "branch", "rows"]),
    st.booleans(),
)
@settings(max_examples=15, deadline=None)
def test_any_algorithm(source: Any, algorithms: list[Any], where: str, is_read: bool) -> None:
    def results(x: Any) -> Any:
        y = source(x)
        found = [algorithm(y) for algorithm in algorithms]
        return (*found, y - 1) if is_read else tuple(found)

    def function(x: Any) -> Any:
        if where == "loop":
            return lax.map(lambda shift: results(x + shift), jnp.arange(2, dtype=np.float32))
        if where == "carry":
            # An update of the carry is made in place, before or after algorithms read it.
            def body(i: Any, carry: Any) -> Any:
                state, total = carry
                after = state.at[i].multiply(0.5)
                more = sum(jnp.sum(jnp.abs(one)) for one in results(state)) - jnp.sum(results(after)[0])
                return after, total + more.astype(np.float32)

            return lax.fori_loop(0, 3, body, (x, jnp.float32(0)))
        if where == "branch":
            return lax.cond(x[0, 0] > 0, results, lambda z: results(z * 2), x)
        if where == "rows":
            return jax.vmap(results)(jnp.stack([x, x + 1]))
        return results(x)

    check(function, normal(12, 10), tolerance=1e-4)


# 12 x 10 numbers of 4 x 12 x 10, by a number that the call tells. They follow each other, or rows do not.
_PARTS: list[Callable[[Any, Any], Any]] = [
    lambda x, _: x[2],
    lambda x, _: x.reshape(48, 10)[7:19],
    lambda x, _: x.reshape(480)[33:153].reshape(12, 10),
    lambda x, i: lax.dynamic_index_in_dim(x, i, 0, keepdims=False),
    lambda x, i: lax.dynamic_slice(x.reshape(48, 10), (9 * i, jnp.zeros_like(i)), (12, 10)),
    lambda x, i: lax.dynamic_slice(x[1:].reshape(2, 180), (i - 1, jnp.full_like(i, 30)), (1, 120)).reshape(12, 10),
    lambda x, _: x.reshape(24, 20)[5:17, 3:13],
    lambda x, _: x.reshape(48, 10)[1:37:3],
    lambda x, _: x.reshape(12, 40)[::-1, 30:],
    lambda x, i: lax.dynamic_slice(x.reshape(24, 20), (i, 2 * i), (12, 10)),
    lambda x, i: lax.dynamic_slice(x.reshape(4, 3, 40), (0 * i, i, 0 * i), (4, 1, 30)).reshape(12, 10),
    lambda x, _: x.reshape(12, 4, 10)[:, 1],
]
_WHOLES: list[Callable[[Any], Any]] = [
    lambda x: x,
    lambda x: x * 2 + 1,
    lambda x: jnp.sort(x, 0),
    lambda x: x @ _ones(10, 10) / 10,
    lambda x: x.at[1, 3].set(1.0),
]


@given(
    st.sampled_from(_WHOLES),
    st.sampled_from(_PARTS),
    st.lists(st.sampled_from(_ALGORITHMS), min_size=1, max_size=2),
    st.sampled_from(["plain", "loop", "scan", "carry", "branch"]),
    # Starts beside the array are clamped.
    st.integers(-2, 6),
)
@settings(max_examples=15, deadline=None)
def test_parts(source: Any, part: Any, algorithms: list[Any], where: str, place: int) -> None:
    def results(x: Any, i: Any) -> Any:
        return tuple(algorithm(part(x, i)) for algorithm in algorithms)

    def function(x: Any, i: Any) -> Any:
        if where == "loop":
            return lax.map(lambda shift: results(source(x + shift.astype(np.float32)), shift + i), jnp.arange(3))
        if where == "scan":
            y = source(x)
            return lax.map(lambda shift: results(y, shift + i), jnp.arange(3))
        if where == "carry":
            # The carry is changed in place, after what was there is read.
            def body(step: Any, carry: Any) -> Any:
                state, total = carry
                read = results(source(state), step + i)
                after = lax.dynamic_update_index_in_dim(state, state[0] * 0.5, step, 0)
                more = sum(jnp.sum(jnp.abs(one)) for one in (*read, *results(after, step)))
                return after, total + more.astype(np.float32)

            return lax.fori_loop(0, 4, body, (x, jnp.float32(0)))
        if where == "branch":
            return lax.cond(i > 0, lambda y: results(y, i), lambda y: results(y * 2, i + 1), source(x))
        return results(source(x), i)

    check(function, normal(4, 12, 10), np.int32(place), tolerance=1e-4)


def _generated(function: Callable[..., Any], *arguments: Any) -> KernelProgram:
    program = hloforge.as_program(jax.jit(function, keep_unused=True).lower(*arguments)).clone()
    lower(program.module)
    return generate(program.module, Machine())


def _kernels(function: Callable[..., Any], *arguments: Any) -> tuple[str, ...]:
    return _generated(function, *arguments).kernels


def test_no_pass_copies_a_factor() -> None:
    """A product's loops alone; so in loops, where a factor is computed before."""
    weights = normal(6, 4, 32)

    def in_a_loop(x: Any, w: Any) -> Any:
        return lax.map(lambda row: row @ jnp.exp(w).reshape(24, 32), x)

    check(in_a_loop, normal(5, 3, 24), weights)
    check(lambda x, w: x.reshape(-1, 24) @ w.reshape(24, 32), normal(5, 8, 24), weights)
    one = _kernels(lambda x, w: x.reshape(-1, 24) @ w.reshape(24, 32), normal(5, 8, 24), weights)
    other = _kernels(lambda x, w: x @ w, normal(40, 24), np.reshape(weights, (24, 32)))
    assert one == other


def test_no_layer_is_copied() -> None:
    """A loop over stacked layers, and the layers one after the other, have the kernels of products of whole arrays."""
    stacked = normal(3, 256, 256)

    def unrolled(x: Any, w: Any) -> Any:
        for layer in range(3):
            x = x @ w[layer]
        return x

    def apart(x: Any, *w: Any) -> Any:
        for matrix in w:
            x = x @ matrix
        return x

    check(unrolled, normal(8, 256), stacked, tolerance=1e-4)
    assert _kernels(unrolled, normal(8, 256), stacked) == _kernels(apart, normal(8, 256), *stacked)
    loop = _generated(lambda x, w: lax.scan(lambda x, one: (x @ one, None), x, w)[0], normal(8, 256), stacked)
    assert 0 < loop.transient < stacked[0].nbytes


def test_loops_read_reshaped_arrays_where_they_lie() -> None:
    """Stacked layers that were reshaped before the loop, also where the loop changes the array that they are."""

    def layers(x: Any, w: Any) -> Any:
        return lax.scan(lambda x, matrix: (jnp.tanh(x @ matrix), x.sum()), x, w.reshape(6, 16, 16))

    def changed(_: Any, w: Any) -> Any:
        stacked = w.reshape(6, 16, 16)

        def body(i: Any, carry: Any) -> Any:
            return carry.at[i].multiply(0.5) + lax.dynamic_index_in_dim(stacked, 5 - i, 0, keepdims=False).sum()

        return lax.fori_loop(0, 6, body, w)

    def branch(x: Any, w: Any) -> Any:
        stacked = (w + 1).reshape(6, 16, 16)
        return lax.cond(x[0, 0] > 0, lambda: stacked[0] @ x.T, lambda: stacked[1:3].sum(0) @ x.T), stacked * 2

    x, w = normal(4, 16), normal(12, 128) / 8
    for function in (layers, changed, branch):
        check(function, x, w, tolerance=1e-4)
    given = np.reshape(w, (6, 16, 16))
    plain = _kernels(lambda x, w: lax.scan(lambda x, matrix: (jnp.tanh(x @ matrix), x.sum()), x, w), x, given)
    assert _kernels(layers, x, w) == plain


def test_a_transposition_in_memory_between_an_algorithm_and_what_it_reads() -> None:
    """A matrix is the transposition of its transposition, which another algorithm has in memory."""
    x = np.tril(normal(12, 12)) + 4 * np.eye(12, dtype=np.float32)
    solve = jax.scipy.linalg.solve_triangular
    pairs: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
        (lambda m: solve(m, _ones(12, 3), lower=True), lambda t: solve(t, _ones(12, 3), lower=False)),
        (lambda m: jnp.sort(m, 0), lambda t: jnp.sort(t, 0)),
        (lambda m: jnp.fft.rfft(m).real, lambda t: jnp.fft.rfft(t).real),
        (lambda m: jnp.linalg.cholesky(m @ m.T), lambda t: solve(t, _ones(12, 12), lower=False)),
        (lambda m: jnp.cumsum(m, 0), lambda t: solve(t, t.T.T, lower=False)),
    ]
    for first, second in pairs:
        check(lambda m, first=first, second=second: (first(m.T.T), second(m.T)), x, tolerance=1e-4)
        check(lambda m, first=first, second=second: (first((m + 1).T.T), second((m + 1).T)), x, tolerance=1e-4)
        check(lambda m, first=first, second=second: (first(m.T.T.T.T), second(m.T)), x, tolerance=1e-4)
