"""Sums of many terms, of every kind that code generation has loops for, beside XLA and float64.

Results may be no further from float64 in norm than 2.5 times XLA's, and a few roundings: no accumulator adds many
numbers one after the other (``pipelines/codegen/chains.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hloforge

# Against XLA's distance from float64 in norm, and what a few roundings of the result cost.
_SLACK, _ROUNDINGS = 2.5, 1e-7
# Results that are judged together, at least.
_RESULTS = 24
# Terms of all sums of a program, at most.
_WORK = 1 << 22

Shapes = list[tuple[int, ...]]
Kind = tuple[Callable[..., Any], Shapes]


def _products(r: Random) -> Kind:
    m, n = (r.choice([1, 2, 4, 5, 9, 16, 33, 64]) for _ in range(2))
    k = r.randint(64, max(65, min(200_000, _WORK // (m * n))))
    labels = r.choice(["mk,kn->mn", "km,kn->mn", "mk,nk->mn", "km,nk->mn"])
    sizes = {"m": m, "k": k, "n": n}
    after = r.choice([lambda x: x, lambda x: jax.nn.relu(x) + 1])
    shapes = [tuple(sizes[one] for one in part) for part in labels.split("->")[0].split(",")]
    return lambda x, y: after(jnp.einsum(labels, x, y)), shapes


def _batched(r: Random) -> Kind:
    b, m, n = r.randint(1, 4), r.randint(1, 20), r.randint(1, 20)
    k = r.randint(64, max(65, min(20_000, _WORK // (b * m * n))))
    return lambda x, y: jnp.einsum("bmk,bkn->bmn", x, y), [(b, m, k), (b, k, n)]


def _sums(r: Random) -> Kind:
    rank = r.randint(1, 4)
    axes = tuple(sorted(r.sample(range(rank), r.randint(1, rank))))
    left, shape = _WORK // 4, []
    for d in range(rank):
        most = max(1, min(left, 100_000 if d in axes else 100))
        shape.append(r.randint(1, most))
        left //= shape[-1]
    kind = r.choice(["sum", "squares", "var", "both"])
    if kind == "squares":
        return lambda x: (x * x).sum(axes), [tuple(shape)]
    if kind == "var":
        return lambda x: x.var(axes), [tuple(shape)]
    if kind == "both":
        return lambda x: x.sum(axes) + 0 * x.max(axes), [tuple(shape)]
    return lambda x: x.sum(axes), [tuple(shape)]


def _convolutions(r: Random) -> Kind:
    layout = r.choice([("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")])
    batch, size, inputs = r.randint(1, 4), r.randint(4, 40), r.randint(1, 32)
    groups = r.choice([1, inputs])
    outputs, window = groups * r.randint(1, 3), r.randint(1, 5)
    stride = r.randint(1, 2)
    sizes = {"N": batch, "C": inputs, "H": size, "W": size}
    image = tuple(sizes[one] for one in layout[0])
    weights = {"O": outputs, "I": inputs // groups, "H": window, "W": window}
    kernel = tuple(weights[one] for one in layout[1])

    def conv(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", dimension_numbers=layout, feature_group_count=groups
        )

    if r.random() < 0.5:
        return conv, [image, kernel]
    out = jax.eval_shape(conv, jax.ShapeDtypeStruct(image, np.float32), jax.ShapeDtypeStruct(kernel, np.float32))
    # The gradient with respect to the weights sums over the batch and the image.
    return lambda x, w, d: jax.vjp(lambda w: conv(x, w), w)[1](d)[0] + 0 * w, [image, kernel, tuple(out.shape)]


def _attention(r: Random) -> Kind:
    queries, keys, size = r.randint(1, 40), r.randint(100, 5000), r.randint(8, 64)
    return (
        lambda q, k, v: jax.nn.softmax(q @ k.T / size, -1) @ v,
        [(queries, size), (keys, size), (keys, size)],
    )


def _norms(r: Random) -> Kind:
    rows, columns = r.randint(2, 3000), r.randint(2, 400)
    axis = r.randint(0, 1)
    return lambda x: (x - x.mean(axis, keepdims=True)) * jax.lax.rsqrt(x.var(axis, keepdims=True) + 1e-3), [
        (rows, columns)
    ]


def _running(r: Random) -> Kind:
    before, after = r.randint(1, 4), r.choice([1, 1, 2, 5, 16, 600])
    n = r.randint(2, min(100_000, _WORK // 16 // after))
    reverse = r.random() < 0.5
    return lambda x: jax.lax.cumsum(x, 1, reverse), [(before, n, after)]


def _windows(r: Random) -> Kind:
    sizes = [r.randint(1, 70) for _ in range(2)]
    window = [r.randint(1, size) for size in sizes]
    strides = [r.randint(1, 70) for _ in range(2)]
    padding = r.choice(["VALID", "SAME"])
    batch, features = r.randint(1, 3), r.randint(1, 20)
    last = r.random() < 0.5

    def moved(inner: list[int], one: int) -> tuple[int, ...]:
        return (one, *inner, one) if last else (one, one, *inner)

    shape = (batch, *sizes, features) if last else (batch, features, *sizes)
    return lambda x: jax.lax.reduce_window(
        x, x.dtype.type(0), jax.lax.add, moved(window, 1), moved(strides, 1), padding
    ), [shape]


def _factorizations(r: Random) -> Kind:
    n, rights = r.randint(130, 600), r.randint(1, 20)
    if r.random() < 0.5:
        return lambda a: jax.lax.linalg.lu(a + n * jnp.eye(n, dtype=a.dtype))[0], [(n, n)]
    lower = r.random() < 0.5

    def solved(a: jax.Array, b: jax.Array) -> jax.Array:
        return jax.lax.linalg.triangular_solve(a / n + 2 * jnp.eye(n, dtype=a.dtype), b, left_side=True, lower=lower)

    return solved, [(n, n), (n, rights)]


KINDS: dict[str, Callable[[Random], Kind]] = {
    "products": _products,
    "batched": _batched,
    "sums": _sums,
    "convolutions": _convolutions,
    "attention": _attention,
    "norms": _norms,
    "running": _running,
    "windows": _windows,
    "factorizations": _factorizations,
}


def program_of(seed: int, kind: str = "") -> tuple[Callable[..., Any], Shapes, bool]:
    """A function, the shapes of its arguments, and whether these have numbers of both signs."""
    r = Random(f"long sums {seed}")
    function, shapes = KINDS[kind or r.choice(sorted(KINDS))](r)
    return function, shapes, r.random() < 0.5


def _independent(results: Sequence[int], shapes: Shapes) -> int:
    """How many results have errors of their own. Those of a running sum share one: it is as large as its argument."""
    if tuple(results) == shapes[0] and len(results) == 3:
        return results[0] * results[2]
    return math.prod(results)


def judge(seed: int, kind: str = "") -> str:
    """What is wrong with the results of a program; empty if nothing is."""
    function, shapes, is_signed = program_of(seed, kind)
    random = np.random.default_rng(seed)
    draw = random.standard_normal if is_signed else random.random
    structs = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    lowered = jax.jit(function, keep_unused=True).lower(*structs)
    session, theirs = hloforge.compile(hloforge.as_program(lowered)).load(), lowered.compile()
    size, errors = 0.0, np.zeros(2)
    # The error of a single number scatters: there are some results at least, of several calls if need be.
    for _ in range(max(1, -(-_RESULTS // _independent(jax.eval_shape(function, *structs).shape, shapes)))):
        arguments = [np.asarray(draw(shape), np.float32) for shape in shapes]
        with jax.enable_x64(True):
            truth = np.asarray(jax.jit(function)(*(one.astype(np.float64) for one in arguments)))
        if truth.dtype != np.float64:
            raise TypeError(f"{truth.dtype} is no float64")
        size += np.square(truth).sum()
        errors += [np.square(np.asarray(call(*arguments)) - truth).sum() for call in (session, theirs)]
    ours, xlas = (float(np.sqrt(one / (size or 1.0))) for one in errors)
    if ours <= _SLACK * xlas + _ROUNDINGS:
        return ""
    return f"{ours:.1e} from float64 in norm, XLA {xlas:.1e}: {shapes}"
