"""decompose-wide-functions: f64 gets arithmetic, what code generation has stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.codegen.passes.wide_functions import DecomposeWideFunctions
from tests.pipelines.codegen.jax_programs import check, normal

_FUNCTIONS: tuple[Callable[..., Any], ...] = (jnp.sin, jnp.cos, jnp.tan, jnp.cbrt)
_PAIRS: tuple[Callable[..., Any], ...] = (jnp.arctan2, jax.lax.rem, lambda x, y: jnp.power(abs(x), y))


@pytest.mark.parametrize("function", _FUNCTIONS)
def test_of_one_number(function: Callable[..., Any]) -> None:
    check(lambda x: function(x), normal(40, dtype=np.float64) * 10, tolerance=1e-13)


@pytest.mark.parametrize("function", _PAIRS)
def test_of_two_numbers(function: Callable[..., Any]) -> None:
    check(lambda x, y: function(x, y), normal(40, dtype=np.float64), normal(40, dtype=np.float64), tolerance=1e-13)


@pytest.mark.parametrize("function", [jnp.exp, jnp.log, jnp.sin, jnp.tanh, jnp.arctan])
def test_of_complex_numbers(function: Callable[..., Any]) -> None:
    check(lambda x: function(x), normal(40, dtype=np.complex128), tolerance=1e-12)


def test_functions_with_code_stay() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %r = stablehlo.sine %x : tensor<4xf32>
      return %r : tensor<4xf32> }"""
    module = hloforge.read(text.encode()).module
    DecomposeWideFunctions().run(module)
    assert operations(module, {"stablehlo.sine"})
