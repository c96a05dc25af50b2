"""keep-roundings and the roundings that legalize-bf16 keeps for other types; judged by XLA."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.legalize.keep_roundings import KeepRoundings


def compared(function: Any, *arguments: Any) -> None:
    """Each result of a program, bit for bit beside XLA's."""
    jitted = jax.jit(function)
    found = hloforge.compile(jitted.lower(*arguments), cache=False).load()(*arguments)
    for got, (name, want) in zip(jax.tree.leaves(found), sorted(jitted(*arguments).items()), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want), err_msg=name)


def test_what_the_program_rounds_is_rounded_before_it_is_reduced() -> None:
    def program(*arrays: Any) -> Any:
        results = {}
        for array in arrays:
            rounded = array.astype(jnp.bfloat16).astype(array.dtype)
            results[f"greatest of {array.dtype}"] = rounded.max(1)
            results[f"shifted {array.dtype}"] = rounded + array * 0
        return results

    with jax.enable_x64(True):
        numbers = np.random.default_rng(0).normal(size=(4, 16))
        compared(program, *(numbers.astype(element) for element in (np.float16, np.float32, np.float64)))


@pytest.mark.parametrize("element", ["float16", "float64", "complex64", "complex128"])
def test_functions_of_bf16_are_rounded_for_other_types(element: str) -> None:
    functions = {"sine": jnp.sin, "square": lambda x: x * x, "root": lambda x: jnp.sqrt(jnp.abs(x))}

    def program(x: Any, beside: Any) -> Any:
        return {name: f(x).astype(element) for name, f in functions.items()} | {"greatest": beside.max()}

    with jax.enable_x64(True):
        compared(program, np.linspace(-2, 2, 33).astype(jnp.bfloat16), np.arange(8, dtype=np.int32))


def test_what_the_program_rounds_is_rounded_for_every_reader() -> None:
    half = jnp.bfloat16

    def program(x: Any) -> Any:
        rounded = x.astype(half)
        return {
            "equal": (rounded == (x * np.float32(1.001)).astype(half)).sum(1),
            "exponential": jnp.exp(rounded),
            "floor": jnp.floor((x * 100).astype(half)).max(1),
            "difference": (rounded - (x * np.float32(1.01)).astype(half)).max(1),
            "transposed": rounded.T[::2].astype(jnp.float32).max(0),
        }

    compared(program, np.random.default_rng(0).normal(size=(16, 64)).astype(np.float32))


def test_factors_are_rounded() -> None:
    """Powers of two, and what a rounding takes away from them: sums are exact."""

    def program(x: Any, y: Any) -> Any:
        half = jnp.bfloat16
        return {"product": jnp.einsum("ij,ij->i", x.astype(half), y.astype(half), preferred_element_type=jnp.float32)}

    x = (2.0 ** np.arange(-8, 8)).astype(np.float32).reshape(2, 8)
    compared(program, x * np.float32(1 + 2**-10), x * np.float32(1 - 2**-12))


def test_functions_in_loops_are_rounded() -> None:
    """The inverse error function is an expansion of CHLO, which computes in f32."""

    def program(x: Any) -> Any:
        def turn(_: Any, y: Any) -> Any:
            return jax.lax.erf_inv(y) * jnp.bfloat16(0.3) + y

        return {"turned": jax.lax.fori_loop(0, 3, turn, x)}

    compared(program, np.linspace(-0.5, 0.5, 65).astype(jnp.bfloat16))


def test_exact_conversions_and_returned_ones_stay() -> None:
    def program(x: Any, n: Any, y: Any) -> Any:
        returned = y.astype(jnp.bfloat16)
        return x.astype(jnp.bfloat16).astype(np.float32), n.astype(jnp.bfloat16).astype(np.int32), returned

    lowered = jax.jit(program).lower(jnp.zeros(4, jnp.float8_e5m2), np.zeros(4, np.int32), np.zeros(4, np.float32))
    module = read(lowered.as_text()).module
    KeepRoundings().run(module)
    assert not operations(module, {"stablehlo.reduce_precision"})
    assert len(operations(module, {"stablehlo.convert"})) == 5
