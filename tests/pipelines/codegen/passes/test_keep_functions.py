"""keep-functions: error functions pass by CHLO's expansion, and have one operation of code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.codegen.passes.keep_functions import KeepFunctions
from tests.pipelines.codegen.jax_programs import check, normal

_FUNCTIONS: tuple[Callable[..., Any], ...] = (jax.lax.erf, jax.lax.erfc, jax.lax.erf_inv, jax.lax.cosh, jax.lax.sinh)
_NAMES = frozenset({"chlo.cosh", "chlo.erf", "chlo.erfc", "chlo.erf_inv", "chlo.sinh"})


def _module(name: str, element: str = "f32") -> Any:
    type_ = f"tensor<4x{element}>"
    text = f"""func.func @main(%x: {type_}) -> {type_} {{
      %r = chlo.{name} %x : {type_} -> {type_}
      return %r : {type_} }}"""
    return hloforge.read(text.encode()).module


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", _FUNCTIONS)
def test_values(function: Callable[..., Any], dtype: Any) -> None:
    # XLA's inverse loses digits.
    tolerance = 2e-5 if dtype == np.float32 else 1e-10
    check(lambda x: function(x), np.clip(normal(40, dtype=dtype), -0.99, 0.99), tolerance=tolerance)


def test_there_and_back() -> None:
    module = _module("erfc")
    KeepFunctions().run(module)
    assert not operations(module, _NAMES)
    KeepFunctions(back=True).run(module)
    assert [op.name for op in operations(module, _NAMES)] == ["chlo.erfc"]


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", ["cosh", "erf", "erfc", "erf_inv", "sinh"])
def test_one_operation_is_left(name: str, element: str) -> None:
    module = _module(name, element)
    lower(module)
    assert operations(module, _NAMES)
    assert not operations(module, {"stablehlo.custom_call", "stablehlo.divide"})
