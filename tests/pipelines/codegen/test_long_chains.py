"""Sums of many terms, of every kind, are about as near to float64 as XLA's: no accumulator adds many numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import hloforge
from hloforge.pipelines.codegen.chains import LONGEST, Terms, cut, length
from hloforge.runtime.reference.engines import ReferenceEngine, reference
from tests.pipelines.codegen.whole_programs import compiled

# Against XLA's distance from float64 in norm, and what a few roundings of the result cost.
_SLACK, _ROUNDINGS = 2.5, 1e-7
# Terms of all sums of a program, at most.
_WORK = 1 << 22

Shapes = list[tuple[int, ...]]
Kind = tuple[Callable[..., Any], Shapes]


def _products(draw: st.DrawFn) -> Kind:
    m, n = (draw(st.sampled_from([1, 2, 4, 5, 9, 16, 33, 64])) for _ in range(2))
    k = draw(st.integers(64, max(65, min(200_000, _WORK // (m * n)))))
    labels = draw(st.sampled_from(["mk,kn->mn", "km,kn->mn", "mk,nk->mn", "km,nk->mn"]))
    sizes = {"m": m, "k": k, "n": n}
    after = draw(st.sampled_from([lambda x: x, lambda x: jax.nn.relu(x) + 1]))
    shapes = [tuple(sizes[one] for one in part) for part in labels.split("->")[0].split(",")]
    return lambda x, y: after(jnp.einsum(labels, x, y)), shapes


def _batched(draw: st.DrawFn) -> Kind:
    b, m, n = draw(st.integers(1, 4)), draw(st.integers(1, 20)), draw(st.integers(1, 20))
    k = draw(st.integers(64, max(65, min(20_000, _WORK // (b * m * n)))))
    return lambda x, y: jnp.einsum("bmk,bkn->bmn", x, y), [(b, m, k), (b, k, n)]


def _sums(draw: st.DrawFn) -> Kind:
    rank = draw(st.integers(1, 4))
    axes = tuple(sorted(draw(st.sets(st.integers(0, rank - 1), min_size=1))))
    left, shape = _WORK // 4, []
    for d in range(rank):
        most = max(1, min(left, 100_000 if d in axes else 100))
        shape.append(draw(st.integers(1, most)))
        left //= shape[-1]
    kind = draw(st.sampled_from(["sum", "squares", "var", "both"]))
    if kind == "squares":
        return lambda x: (x * x).sum(axes), [tuple(shape)]
    if kind == "var":
        return lambda x: x.var(axes), [tuple(shape)]
    if kind == "both":
        return lambda x: x.sum(axes) + 0 * x.max(axes), [tuple(shape)]
    return lambda x: x.sum(axes), [tuple(shape)]


def _convolutions(draw: st.DrawFn) -> Kind:
    layout = draw(st.sampled_from([("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")]))
    batch, size, inputs = draw(st.integers(1, 4)), draw(st.integers(4, 40)), draw(st.integers(1, 32))
    groups = draw(st.sampled_from([1, inputs]))
    outputs, window = groups * draw(st.integers(1, 3)), draw(st.integers(1, 5))
    stride = draw(st.integers(1, 2))
    sizes = {"N": batch, "C": inputs, "H": size, "W": size}
    image = tuple(sizes[one] for one in layout[0])
    weights = {"O": outputs, "I": inputs // groups, "H": window, "W": window}
    kernel = tuple(weights[one] for one in layout[1])

    def conv(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", dimension_numbers=layout, feature_group_count=groups
        )

    if draw(st.booleans()):
        return conv, [image, kernel]
    out = jax.eval_shape(conv, jax.ShapeDtypeStruct(image, np.float32), jax.ShapeDtypeStruct(kernel, np.float32))
    # The gradient with respect to the weights sums over the batch and the image.
    return lambda x, w, d: jax.vjp(lambda w: conv(x, w), w)[1](d)[0] + 0 * w, [image, kernel, tuple(out.shape)]


def _attention(draw: st.DrawFn) -> Kind:
    queries, keys, size = draw(st.integers(1, 40)), draw(st.integers(100, 5000)), draw(st.integers(8, 64))
    return (
        lambda q, k, v: jax.nn.softmax(q @ k.T / size, -1) @ v,
        [(queries, size), (keys, size), (keys, size)],
    )


def _norms(draw: st.DrawFn) -> Kind:
    rows, columns = draw(st.integers(2, 3000)), draw(st.integers(2, 400))
    axis = draw(st.integers(0, 1))
    return lambda x: (x - x.mean(axis, keepdims=True)) * jax.lax.rsqrt(x.var(axis, keepdims=True) + 1e-3), [
        (rows, columns)
    ]


def _running(draw: st.DrawFn) -> Kind:
    before, after = draw(st.integers(1, 4)), draw(st.sampled_from([1, 1, 2, 5, 16, 600]))
    n = draw(st.integers(2, min(100_000, _WORK // 16 // after)))
    reverse = draw(st.booleans())
    return lambda x: jax.lax.cumsum(x, 1, reverse), [(before, n, after)]


def _windows(draw: st.DrawFn) -> Kind:
    sizes = [draw(st.integers(1, 70)) for _ in range(2)]
    window = [draw(st.integers(1, size)) for size in sizes]
    strides = [draw(st.integers(1, 70)) for _ in range(2)]
    padding = draw(st.sampled_from(["VALID", "SAME"]))
    batch, features = draw(st.integers(1, 3)), draw(st.integers(1, 20))
    last = draw(st.booleans())

    def moved(inner: list[int], one: int) -> tuple[int, ...]:
        return (one, *inner, one) if last else (one, one, *inner)

    shape = (batch, *sizes, features) if last else (batch, features, *sizes)
    return lambda x: jax.lax.reduce_window(
        x, np.float32(0), jax.lax.add, moved(window, 1), moved(strides, 1), padding
    ), [shape]


_KINDS: dict[str, Callable[[st.DrawFn], Kind]] = {
    "products": _products,
    "batched": _batched,
    "sums": _sums,
    "convolutions": _convolutions,
    "attention": _attention,
    "norms": _norms,
    "running": _running,
    "windows": _windows,
}


@pytest.fixture(scope="module")
def xla() -> ReferenceEngine:
    return reference("xla", isolated=False)


def _check(xla: ReferenceEngine, kind: Kind, seed: int, signed: bool) -> None:
    function, shapes = kind
    random = np.random.default_rng(seed)
    arguments = [
        (random.standard_normal(shape) if signed else random.random(shape)).astype(np.float32) for shape in shapes
    ]
    program = hloforge.as_program(jax.jit(function, keep_unused=True).lower(*arguments))
    got = np.asarray(compiled(program).load()(*arguments))
    expected, truth = (np.asarray(xla.prepare(program, float64=float64)(*arguments)) for float64 in (False, True))
    size = np.linalg.norm(truth)
    ours, theirs = (np.linalg.norm(one - truth) / size if size else 0.0 for one in (got, expected))
    assert ours <= _SLACK * theirs + _ROUNDINGS, (shapes, ours, theirs)


@pytest.mark.parametrize("kind", _KINDS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), seed=st.integers(0, 99), signed=st.booleans())
def test_sums_are_as_near_to_float64_as_xlas(
    xla: ReferenceEngine, kind: str, data: st.DataObject, seed: int, signed: bool
) -> None:
    _check(xla, data.draw(st.composite(_KINDS[kind])()), seed, signed)


@pytest.mark.parametrize("sizes", [(4096,), (100_003,), (3, 3, 64), (129,), (128,), (2, 20_000, 7), (1, 1), (500_000,)])
@pytest.mark.parametrize("weight", [1, 2, 7])
def test_chains_are_short_and_visit_each_term_once(sizes: tuple[int, ...], weight: int) -> None:
    loops = [Terms(size, size, ()) for size in sizes]
    chains = cut(loops, weight, LONGEST)
    counts = dict(enumerate(sizes))
    for number, chain in enumerate(chains):
        added = weight if number == len(chains) - 1 else 1
        for piece in chain:
            added *= -(-counts[piece.loop] // piece.step)
            counts[piece.loop] = min(piece.step, counts[piece.loop])
        assert added <= LONGEST
        if number == 0:
            assert added == length(loops, weight, LONGEST)
    assert set(counts.values()) == {1}
