"""Sorts along dimensions that are named in each way that StableHLO has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.runtime.native.calls import native_program
from tests.pipelines.codegen import jax_programs
from tests.pipelines.codegen.whole_programs import check, compiled


@pytest.mark.parametrize("attributes", ["", *(f"{{dimension = {d} : i64}}" for d in (-1, -2, 0))])
def test_the_dimension_of_a_sort(attributes: str) -> None:
    check(
        f"""func.func @main(%a: tensor<5x7xf32>) -> tensor<5x7xf32> {{
          %0 = "stablehlo.sort"(%a) ({{
          ^bb0(%x: tensor<f32>, %y: tensor<f32>):
            %1 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1>
          }}) {attributes} : (tensor<5x7xf32>) -> tensor<5x7xf32>
          return %0 : tensor<5x7xf32> }}""",
        np.random.default_rng(3).standard_normal((5, 7)).astype(np.float32),
    )


@pytest.mark.parametrize(("size", "kept"), [(60, 5), (700, 3), (700, 100), (3000, 300), (3000, 3000), (300, 300)])
@pytest.mark.parametrize("element", ["i32", "i8"])
def test_places_as_the_last_key(size: int, kept: int, element: str) -> None:
    """Of equal numbers the first place; places that a byte does not hold are numbers like others."""
    check(
        f"""func.func @main(%a: tensor<2x{size}xf32>) -> (tensor<2x{kept}xf32>, tensor<2x{kept}x{element}>) {{
          %i = stablehlo.iota dim = 1 : tensor<2x{size}x{element}>
          %0:2 = "stablehlo.sort"(%a, %i) ({{
          ^bb0(%x: tensor<f32>, %y: tensor<f32>, %p: tensor<{element}>, %q: tensor<{element}>):
            %1 = stablehlo.compare GT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
            %2 = stablehlo.compare EQ, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
            %3 = stablehlo.compare LT, %p, %q : (tensor<{element}>, tensor<{element}>) -> tensor<i1>
            %4 = stablehlo.and %2, %3 : tensor<i1>
            %5 = stablehlo.or %1, %4 : tensor<i1>
            stablehlo.return %5 : tensor<i1>
          }}) {{dimension = 1 : i64}} : (tensor<2x{size}xf32>, tensor<2x{size}x{element}>) ->
            (tensor<2x{size}xf32>, tensor<2x{size}x{element}>)
          %v = stablehlo.slice %0#0 [0:2, 0:{kept}] : (tensor<2x{size}xf32>) -> tensor<2x{kept}xf32>
          %w = stablehlo.slice %0#1 [0:2, 0:{kept}] : (tensor<2x{size}x{element}>) -> tensor<2x{kept}x{element}>
          return %v, %w : tensor<2x{kept}xf32>, tensor<2x{kept}x{element}> }}""",
        np.random.default_rng(3).integers(-40, 40, (2, size)).astype(np.float32) / 8,
    )


_COMPUTED: dict[str, Callable[..., Any]] = {
    "extracted": lambda x: jax.lax.top_k(x * 2 + x[:, :1], 3),
    "ranked": lambda x: jax.lax.sort((jnp.abs(x), x[:, ::-1]), num_keys=1),
    "of the middle": lambda x: jax.lax.sort((jnp.abs(x.reshape(5, -1, 3)), x.reshape(5, -1, 3) + 1), 1, num_keys=1),
    "first of the middle": lambda x: jax.lax.sort(jnp.abs(x.reshape(5, -1, 3)), 1)[:, :2],
    "two keys": lambda x: jax.lax.sort((jnp.round(x), x[:, ::-1], x), num_keys=2),
    "argsort": lambda x: jnp.argsort(jnp.round(x * 4), axis=1),
    "masked": lambda x: jax.lax.top_k(jnp.where(x > 0, x, -jnp.inf), 4),
    "joined": lambda x: jax.lax.top_k(jnp.concatenate([x, -x], 1), 4),
    "integers": lambda x: jax.lax.top_k((x * 10).astype(jnp.int32) % 7, 5),
}


@pytest.mark.wide(3)
@pytest.mark.parametrize("size", [24, 150, 1200])
@pytest.mark.parametrize("name", _COMPUTED)
def test_what_is_sorted_may_be_computed_where_it_is_read(name: str, size: int) -> None:
    jax_programs.check(_COMPUTED[name], jax_programs.normal(5, size))


def test_the_first_elements_need_neither_keys_nor_places_in_memory() -> None:
    def first(x: Any) -> Any:
        return jax.lax.top_k(x * 2 + 1, 20)

    program = hloforge.as_program(jax.jit(first).lower(np.zeros(32000, np.float32)))
    native = native_program(compiled(program).vmfb)
    assert native is not None
    assert native.schedule.transient < 2 * 32000 * 4
