"""Functions of bytes that are looked up, beside XLA's client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.dialect.marks import BYTE_TABLE
from hloforge.pipelines.codegen.lowering import lower


def _all_bytes(dtype: Any, *shape: int) -> np.ndarray[Any, Any]:
    return np.resize(np.arange(256, dtype=np.uint8).view(dtype), shape)


def _sigmoid(x: Any, dtype: Any = np.uint8) -> Any:
    """Quantized: ties of a quotient are not among its numbers."""
    numbers = jnp.round(jax.nn.sigmoid((x.astype(np.float32) - 7) * 0.043) / 0.0041) - (dtype == np.int8) * 128
    limits = np.iinfo(dtype)
    return jnp.clip(numbers, limits.min, limits.max).astype(dtype)


def _silu(x: Any) -> Any:
    numbers = (x.astype(np.float32) - 7) * 0.043
    gates = _sigmoid(x).astype(np.float32) * 0.0041
    return jnp.clip(jnp.round(numbers * gates / 0.0321) + 9, 0, 255).astype(np.uint8)


def _tables(function: Callable[..., Any], *arguments: Any) -> int:
    program = hloforge.as_program(jax.jit(function).lower(*arguments)).clone()
    lower(program.module)
    return str(program.module).count(BYTE_TABLE)


def _check(function: Callable[..., Any], *arguments: Any, target: str = "cpu") -> None:
    compiled = hloforge.compile(jax.jit(function).lower(*arguments), target=target).load()
    expected = jax.tree.leaves(jax.jit(function)(*arguments))
    for got, want in zip(jax.tree.leaves(compiled(*arguments)), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_a_function(dtype: Any, target: str) -> None:
    x = _all_bytes(dtype, 67, 71)
    assert _tables(lambda x: _sigmoid(x, dtype), x) == 1
    _check(lambda x: _sigmoid(x, dtype), x, target=target)


def test_bytes_between_are_no_end() -> None:
    x = _all_bytes(np.uint8, 2, 64, 64)
    assert _tables(_silu, x) == 1
    _check(_silu, x)


def test_what_others_read_has_a_table_of_its_own() -> None:
    x = _all_bytes(np.uint8, 5000)

    def both(x: Any) -> Any:
        return _silu(x), _sigmoid(x)[::-1]

    assert _tables(both, x) == 2
    _check(both, x)


def test_functions_of_two_arrays_are_computed() -> None:
    x, y = _all_bytes(np.uint8, 5000), _all_bytes(np.int8, 5000)[::-1].copy()

    def both(x: Any, y: Any) -> Any:
        return _sigmoid(x.astype(np.int32) + y)

    assert _tables(both, x, y) == 0
    _check(both, x, y)


def test_a_function_in_a_loop() -> None:
    x = _all_bytes(np.uint8, 64, 65)

    def again(x: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, x: _sigmoid(x), x)

    assert _tables(again, x) == 1
    _check(again, x)
