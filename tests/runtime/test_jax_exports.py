"""Shape-polymorphic exports of JAX, at sizes that they were not traced for, against JAX itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge import ArgumentError

jax = pytest.importorskip("jax")
from jax import export, lax, numpy as jnp  # noqa: E402 - after the skip

SIZES = (1, 2, 5)


def mlp(x: Any, w: Any) -> Any:
    return jax.nn.softmax(jnp.tanh(x @ w))


def attention(x: Any, lengths: Any) -> Any:
    scores = jnp.einsum("bqd,bkd->bqk", x, x)
    mask = jnp.arange(x.shape[1])[None, :] < lengths[:, None]
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(jnp.where(mask[:, None, :], scores, -1e9)), x)


def running(x: Any) -> Any:
    return jnp.cumsum(x, axis=0), lax.cummax(x, axis=1, reverse=True)


def shapes(x: Any, y: Any) -> Any:
    both = jnp.concatenate([x, y, x])
    return both, x.reshape(-1), x.reshape(x.shape[0] * 2, 2), both[::-2], jnp.pad(x, ((x.shape[0], 1), (0, 2)))


def convolution(x: Any, w: Any) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=numbers, feature_group_count=2)
    return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 1, 1), (1, 1, 1, 1), "SAME")


def indexing(x: Any, places: Any) -> Any:
    total = lax.fori_loop(0, x.shape[0], lambda i, sums: sums * 0.5 + x[i], jnp.zeros(x.shape[1]))
    return x[places], jnp.take(x, places, axis=1, mode="clip"), total, x.argmax(1)


def scan(x: Any) -> Any:
    # Two arrays of dynamic size in a loop, which IREE mixes up.
    return lax.scan(lambda carry, row: (carry * 0.5 + row, carry), jnp.zeros(x.shape[1]), x)


def largest(x: Any) -> Any:
    return lax.top_k(x, 3), jnp.sort(x, axis=0), x.at[0].add(1.0)


# Functions, the shapes of their arguments (integers where the text begins with #), and how they are compiled.
PROGRAMS: list[tuple[Callable[..., Any], str, str]] = [
    (mlp, "b, 4; 4, 3", "keep"),
    (attention, "b, t, 8; #b", "keep"),
    (running, "a, b", "keep"),
    (shapes, "a, 4; b, 4", "keep"),
    (convolution, "b, h, 6, 4; 3, 2, 2, 4", "keep"),
    (indexing, "a, b; #3", "keep"),
    (largest, "a, b + 3", "auto"),
    (scan, "a, b", "auto"),
    (attention, "b, t, 8; #b", "specialize"),
    (running, "a, b", "specialize"),
]


def exported(function: Callable[..., Any], specification: str) -> Any:
    scope = export.SymbolicScope()
    shapes = []
    for text in specification.split(";"):
        dims = export.symbolic_shape(text.strip().removeprefix("#"), scope=scope)
        shapes.append(jax.ShapeDtypeStruct(dims, np.int32 if "#" in text else np.float32))
    return export.export(jax.jit(function), platforms=["cpu"])(*shapes)


def arguments(specification: str, size: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(size)
    names = {"a": size, "b": size + 1, "t": size + 2, "h": size}
    found = []
    for text in specification.split(";"):
        dims = [eval(dim, {}, names) for dim in text.strip().removeprefix("#").split(",")]
        is_integer = "#" in text
        found.append(
            rng.integers(0, size, dims).astype(np.int32) if is_integer else rng.normal(size=dims).astype(np.float32)
        )
    return found


@pytest.mark.wide(4)
@pytest.mark.parametrize(
    ("function", "specification", "dynamic_shapes"), PROGRAMS, ids=[f"{f.__name__}-{mode}" for f, _, mode in PROGRAMS]
)
def test_an_export_at_three_sizes(function: Callable[..., Any], specification: str, dynamic_shapes: str) -> None:
    executable = hloforge.compile(exported(function, specification), dynamic_shapes=dynamic_shapes, cache=False)
    for size in SIZES:
        given = arguments(specification, size)
        expected = jax.tree.leaves(jax.jit(function)(*given))
        for number, (got, wanted) in enumerate(zip(jax.tree.leaves(executable(*given)), expected, strict=True)):
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6, err_msg=f"result {number} at {size}")


def test_sizes_that_the_export_does_not_take() -> None:
    session = hloforge.compile(exported(mlp, "2*b, 4; 4, 3"), cache=False).load()
    w = np.ones((4, 3), np.float32)
    assert session(np.ones((6, 4), np.float32), w).shape == (6, 3)
    with pytest.raises(ArgumentError, match=r"not match the polymorphic shapes[^\n]*\n.*x \[3, 4\], w \[4, 3\]"):
        session(np.ones((3, 4), np.float32), w)
    with pytest.raises(ArgumentError, match=r"argument 'x': expected f32\[\?,4\]"):
        session(np.ones((6, 3), np.float32), w)


@pytest.mark.parametrize("labels", ["ni,i->n", "ni,nj->nij", "ni,ij->nj", "ni,ni->", "nij,ni->nj"])
def test_products_of_complex_numbers_of_any_size(labels: str) -> None:
    """Those that are no product of two matrices were refused: ``sizes`` 1400190."""
    rng = np.random.default_rng(0)
    (n,) = export.symbolic_shape("n")
    extents = {"i": 5, "j": 4}
    factors = labels.partition("->")[0].split(",")

    def function(*arrays: jax.Array) -> jax.Array:
        return jnp.einsum(labels, *arrays)

    shapes = [jax.ShapeDtypeStruct([n if x == "n" else extents[x] for x in one], np.complex64) for one in factors]
    session = hloforge.compile(export.export(jax.jit(function), platforms=["cpu"])(*shapes).serialize()).load()
    for size in (1, 3):
        sizes = [[size if x == "n" else extents[x] for x in one] for one in factors]
        given = [(rng.normal(size=one) + 1j * rng.normal(size=one)).astype(np.complex64) for one in sizes]
        np.testing.assert_allclose(session(*given), np.einsum(labels, *given), rtol=1e-4, atol=1e-5)
