"""Constants that products read are packed when a program is compiled, beside XLA's client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.codegen.products.strips import Strips
from hloforge.pipelines.framework.machine import Machine
from tests.pipelines.codegen.jax_programs import check, normal

_VNNI = frozenset({"avx2", "avx512vnni"})
_AMX = _VNNI | {"amx-int8"}


def _strips(function: Callable[..., Any], *arguments: Any, extensions: frozenset[str] = _AMX) -> list[Strips]:
    """How constants of a function are packed."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        own = Strips.packed

        def packed(strips: Strips, *others: Any) -> bytes:
            found.append(strips)
            return own(strips, *others)

        patch.setattr(Strips, "packed", packed)
        program = hloforge.as_program(jax.jit(function, keep_unused=True).lower(*arguments)).clone()
        lower(program.module)
        generate(program.module, Machine(vector_bytes=64), extensions=extensions)
    return found


def _bytes(*shape: int, dtype: Any = np.int8) -> np.ndarray[Any, Any]:
    limits = np.iinfo(dtype)
    return np.random.default_rng(sum(shape)).integers(limits.min, limits.max + 1, shape).astype(dtype)


def _wide(w: Any) -> Any:
    """As s32 in the program, not before it."""
    return jax.lax.optimization_barrier(jnp.asarray(w)).astype(np.int32)


def _dot(x: Any, w: Any) -> Any:
    return jnp.dot(x.astype(np.int32), _wide(w))


def _convolve(x: Any, w: Any, *, strides: tuple[int, int] = (1, 1), padding: Any = "VALID", groups: int = 1) -> Any:
    names = ("NHWC", "HWIO", "NHWC")
    image, weights = x.astype(np.int32), _wide(w)
    return jax.lax.conv_general_dilated(
        image, weights, strides, padding, dimension_numbers=names, feature_group_count=groups
    )


@pytest.mark.wide(2)
@pytest.mark.parametrize("kinds", [(np.int8, np.int8), (np.uint8, np.int8), (np.uint8, np.uint8)])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(1, 64, 64), (3, 37, 40), (9, 130, 49), (40, 65, 6)])
def test_products(rows: int, depth: int, columns: int, kinds: tuple[Any, Any]) -> None:
    x, w = _bytes(rows, depth, dtype=kinds[0]), _bytes(columns, depth, dtype=kinds[1]).T
    assert _strips(lambda x: _dot(x, w), x)
    check(lambda x: _dot(x, w), x)


@pytest.mark.parametrize(
    ("image", "weights", "options"),
    [
        ((1, 2, 2, 64), (3, 3, 64, 40), {"padding": "SAME"}),
        ((2, 9, 5, 12), (3, 2, 12, 24), {"strides": (2, 1)}),
        ((1, 5, 7, 24), (2, 3, 8, 36), {"groups": 3, "padding": "SAME"}),
        ((1, 4, 4, 5), (3, 3, 5, 17), {}),
        ((1, 7, 7, 20), (1, 1, 20, 96), {}),
    ],
)
def test_convolutions(image: tuple[int, ...], weights: tuple[int, ...], options: dict[str, Any]) -> None:
    x, w = _bytes(*image), _bytes(*weights)
    assert _strips(lambda x: _convolve(x, w, **options), x, extensions=_VNNI)
    check(lambda x: _convolve(x, w, **options), x)


def test_a_reversed_window() -> None:
    x, w = _bytes(1, 6, 6, 16), _bytes(3, 3, 16, 32)

    def turned(x: Any) -> Any:
        return _convolve(x, w[::-1, ::-1])

    check(turned, x)


def test_a_constant_that_others_read_stays() -> None:
    x, w = _bytes(8, 64), _bytes(64, 64)

    def both(x: Any) -> Any:
        known = jax.lax.optimization_barrier(jnp.asarray(w))
        return jnp.dot(x.astype(np.int32), known.astype(np.int32)), known[3:5] + x[:2]

    assert not _strips(both, x)
    check(both, x)


def test_two_products_share_their_strips() -> None:
    x, y, w = _bytes(8, 64), _bytes(8, 64, dtype=np.uint8), _bytes(64, 64)

    def both(x: Any, y: Any) -> Any:
        known = _wide(w)
        again = jnp.clip(jnp.dot(x.astype(np.int32), known), -128, 127).astype(np.int8)
        return jnp.dot(again.astype(np.int32), known), jnp.dot(y.astype(np.int32), known)

    assert len(_strips(both, x, y)) == 2
    check(both, x, y)


def test_a_product_in_a_loop() -> None:
    x, w = _bytes(3, 48), _bytes(48, 48)

    def states(x: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, s: jnp.right_shift(_dot(s, w), 8).astype(np.int8), x)

    assert _strips(states, x)
    check(states, x)


def _layer(x: Any, w: Any, *, strides: tuple[int, int] = (1, 1), groups: int = 1) -> Any:
    names = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=names, feature_group_count=groups)


@pytest.mark.parametrize(
    ("image", "weights", "options"),
    [
        ((2, 6, 6, 24), (3, 3, 24, 320), {}),
        ((1, 7, 7, 24), (1, 1, 24, 331), {}),
        ((2, 9, 9, 20), (2, 2, 20, 272), {"strides": (2, 2)}),
        ((1, 9, 5, 48), (3, 3, 24, 640), {"groups": 2}),
        ((1, 7, 7, 128), (3, 3, 128, 256), {}),
    ],
)
def test_convolutions_of_floats(image: tuple[int, ...], weights: tuple[int, ...], options: dict[str, Any]) -> None:
    x, w = normal(*image), normal(*weights)
    assert len(_strips(lambda x: _layer(x, w, **options), x)) == 1
    check(lambda x: _layer(x, w, **options), x)


@pytest.mark.parametrize(("size", "outputs"), [(2, 512), (8, 64)])
def test_weights_of_floats_that_are_read_as_fast_in_place(size: int, outputs: int) -> None:
    """Of few pixels, which wait for memory, and of rows that are near each other."""
    x, w = normal(1, size, size, 16), normal(3, 3, 16, outputs)
    assert not _strips(lambda x: _layer(x, w), x)
    check(lambda x: _layer(x, w), x)


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(64, 37, 320), (33, 130, 273), (100, 65, 259)])
def test_products_of_floats(rows: int, depth: int, columns: int, is_transposed: bool) -> None:
    x, w = normal(rows, depth), normal(columns, depth) if is_transposed else normal(depth, columns)

    def dense(x: Any) -> Any:
        known = jax.lax.optimization_barrier(jnp.asarray(w))
        return jnp.tanh(x @ (known.T if is_transposed else known))

    assert len(_strips(dense, x)) == 1
    check(dense, x)


def test_a_left_factor_that_is_computed_of_a_narrower_array() -> None:
    """It would be computed some rows at a time, as weights of few bits are, beside a factor that is not packed."""
    x, w, centers = normal(64, 64), normal(96, 512), np.linspace(-2, 2, 8, dtype=np.float32)

    def basis(x: Any) -> Any:
        known = jax.lax.optimization_barrier(jnp.asarray(w))
        return jnp.exp(-((x[:, :, None] - centers) ** 2)).reshape(64, 512) @ known.T

    assert len(_strips(basis, x)) == 1
    check(basis, x)


@pytest.mark.parametrize(("rows", "count"), [(4, 0), (5, 1), (16, 1)])
def test_few_rows_by_columns_whose_terms_lie_next_to_each_other(rows: int, count: int) -> None:
    """They are packed anyway, in each call if not when the program is compiled; up to four rows are sums along them."""
    x, w = normal(rows, 130), normal(273, 130)

    def dense(x: Any) -> Any:
        return jnp.tanh(x @ jax.lax.optimization_barrier(jnp.asarray(w)).T)

    assert len(_strips(dense, x)) == count
    check(dense, x)
