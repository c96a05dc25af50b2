"""Products with a small matrix, which are sums of elementwise products."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.lowering import lower
from tests.pipelines.codegen import whole_programs
from tests.pipelines.codegen.jax_programs import check, normal

_RANDOM = np.random.default_rng(5)


def _numbers(dtype: Any, *shape: int) -> Any:
    if np.dtype(dtype).kind in "fc":
        return normal(*shape, dtype=dtype)
    info = np.iinfo(dtype)
    return _RANDOM.integers(info.min, info.max, shape, dtype, endpoint=True)


def _lowered(function: Any, arguments: Sequence[Any]) -> str:
    with jax.enable_x64(True):
        program = hloforge.as_program(jax.jit(function).lower(*arguments)).clone()
    lower(program.module)
    return str(program.module)


@pytest.mark.wide(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, np.int64, np.complex64])
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("ik,kj->ij", (70, 3), (3, 3)),
        ("ik,jk->ij", (5, 6), (131, 6)),
        ("hwc,dc->hwd", (9, 13, 3), (2, 3)),
        ("kia,kaj->ij", (2, 97, 3), (2, 3, 4)),
        ("nij,nj->ni", (67, 3, 3), (67, 3)),
        ("bnij,bnjk->bnik", (7, 11, 2, 2), (7, 11, 2, 2)),
    ],
)
def test_sums_are_those_of_products(dtype: Any, equation: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    def function(x: Any, y: Any) -> Any:
        return jnp.einsum(equation, x, y)

    arguments = _numbers(dtype, *left), _numbers(dtype, *right)
    check(function, *arguments)
    assert "dot_general" not in _lowered(function, arguments)


@pytest.mark.wide(3)
@pytest.mark.parametrize("order", itertools.permutations("bik"), ids="".join)
@pytest.mark.parametrize("other", itertools.permutations("bkj"), ids="".join)
def test_dimensions_of_factors_may_be_in_any_order(order: tuple[str, ...], other: tuple[str, ...]) -> None:
    sizes = {"b": 65, "i": 2, "j": 2, "k": 2}
    x, y = (normal(*(sizes[name] for name in names)) for names in (order, other))
    numbers = (((order.index("k"),), (other.index("k"),)), ((order.index("b"),), (other.index("b"),)))

    def function(x: Any, y: Any) -> Any:
        return jax.lax.dot_general(x, y, numbers)

    check(function, x, y)
    assert "dot_general" not in _lowered(function, (x, y))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64])
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("ik,kj->ij", (131, 16), (16, 8)),
        ("ki,jk->ij", (9, 70), (3, 9)),
        ("nij,nj->ni", (67, 6, 7), (67, 7)),
        ("ni,nij->nj", (67, 5), (67, 5, 30)),
    ],
)
def test_rows_and_vectors_have_more_terms(
    dtype: Any, equation: str, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    arguments = _numbers(dtype, *left), _numbers(dtype, *right)
    check(lambda x, y: jnp.einsum(equation, x, y), *arguments)
    assert "dot_general" not in _lowered(lambda x, y: jnp.einsum(equation, x, y), arguments)


def test_bytes_are_added_in_wider_integers() -> None:
    def function(x: Any, y: Any) -> Any:
        return jax.lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)

    arguments = np.full((80, 4), -128, np.int8), np.full((4, 3), -128, np.int8)
    check(function, *arguments)


def test_sums_of_negative_zeros_are_zeros_as_products_are() -> None:
    text = """
    func.func @main(%x: tensor<80x2xf32>, %y: tensor<2x3xf32>) -> tensor<80x3xi32> {
      %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<80x2xf32>, tensor<2x3xf32>) -> tensor<80x3xf32>
      %s = stablehlo.bitcast_convert %r : (tensor<80x3xf32>) -> tensor<80x3xi32>
      return %s : tensor<80x3xi32>
    }
    """
    whole_programs.check(text, np.full((80, 2), -0.0, np.float32), np.ones((2, 3), np.float32))


@pytest.mark.parametrize("row", [(np.inf, 0, 1), (np.nan, 1, 1), (np.inf, -np.inf, 2), (3e38, 3e38, -3e38)])
def test_infinite_terms_give_what_products_give(row: tuple[float, ...]) -> None:
    def function(x: Any, y: Any) -> Any:
        return jnp.isnan(x @ y), jnp.isinf(x @ y)

    check(function, np.tile(np.float32(row), (70, 1)), np.float32([[1, 2], [0, 1], [1, -1]]))


@pytest.mark.wide(4)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64])
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("i,j->ij", (130,), (70,)),
        ("ki,kj->ij", (4, 33), (4, 90)),
        ("ik,jk->ij", (300, 3), (20, 3)),
        ("bi,bj->bij", (6, 60), (6, 12)),
        ("bki,bkj->bij", (6, 2, 5), (6, 2, 49)),
    ],
)
def test_few_terms_of_many_rows_and_columns(
    dtype: Any, equation: str, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    """Alone, and beside sums over either dimension of the result, which compute it where they are."""

    def function(x: Any, y: Any) -> Any:
        return jnp.einsum(equation, x, y)

    def sums(x: Any, y: Any) -> Any:
        product = jnp.abs(function(x, y))
        return product.sum(-1), product.max(-2), product

    arguments = _numbers(dtype, *left), _numbers(dtype, *right)
    check(function, *arguments)
    check(sums, *arguments)
    assert "dot_general" not in _lowered(function, arguments)


@pytest.mark.parametrize(("left", "right"), [((300, 4, 2), (300, 2, 6)), ((40, 3), (3, 20))])
def test_short_rows_are_those_of_products(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """Of many products, which would fill a part of a vector, and of one small one."""
    arguments = normal(*left), normal(*right)
    check(jnp.matmul, *arguments)
    assert "dot_general" in _lowered(jnp.matmul, arguments)
