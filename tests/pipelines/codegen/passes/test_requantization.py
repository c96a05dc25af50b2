"""legalize-requantization, judged by integers of numpy and quotients of f64."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.whole_programs import compiled

_X = np.random.default_rng(0).integers(0, 256, (13, 40)).astype(np.uint8)
_W = np.random.default_rng(1).integers(-128, 128, (40, 24)).astype(np.int8)
_SCALES = np.random.default_rng(2).uniform(0.001, 0.01, 24).astype(np.float32)
_ACTIVATIONS = {
    "none": lambda y: y,
    "relu": lambda y: jnp.maximum(y, 0),
    "relu6": lambda y: jnp.clip(y, 0, 6),
    "least of each": lambda y: jnp.minimum(y, jnp.asarray(_SCALES * 200)),
}


@pytest.mark.parametrize("activation", list(_ACTIVATIONS))
@pytest.mark.parametrize("bias", ["whole", "any", "after"])
@pytest.mark.parametrize("wanted", [np.uint8, np.int8])
def test_scaled_sums(activation: str, bias: str, wanted: Any) -> None:
    """A bias in units of the sums, of other numbers, and one that is added after the activation."""
    units = np.random.default_rng(3).integers(-20000, 20000, 24)
    addend = (units * (0.02 * _SCALES)).astype(np.float32)
    if bias == "any":
        addend = addend + np.float32(0.00037)
    act, limits = _ACTIVATIONS[activation], np.iinfo(wanted)

    def layer(x: Any) -> Any:
        product = ((x.astype(jnp.float32) - 128) * np.float32(0.02)) @ (jnp.asarray(_W).astype(jnp.float32) * _SCALES)
        y = act(product) + addend if bias == "after" else act(product + addend)
        whole = jnp.round(y / np.float32(0.037)) + (limits.min + 100)
        return jnp.clip(whole, limits.min, limits.max).astype(jnp.int32).astype(wanted)

    program = hloforge.as_program(jax.jit(layer).lower(_X))
    got = np.asarray(compiled(program).load()(_X)).astype(int)
    exact = (_X.astype(np.float64) - 128) @ _W.astype(np.float64) * np.float64(np.float32(0.02)) * _SCALES
    with jax.enable_x64(True):
        y = act(jnp.asarray(exact)) + addend if bias == "after" else act(jnp.asarray(exact + addend))
    quotient = np.asarray(y, np.float64) / np.float64(np.float32(0.037)) + (limits.min + 100)
    # A tie may be rounded to either side.
    error = np.abs(got - np.clip(quotient, limits.min, limits.max))
    assert error.max() <= 0.5 + 1e-4
    assert len(np.unique(got)) > 20


def test_nothing_else_is_rounded_by_reciprocals() -> None:
    """Quotients of numbers that are no sums of products keep their ties."""
    x = np.arange(-300, 300).astype(np.int32)
    program = hloforge.as_program(jax.jit(lambda x: jnp.round(x.astype(jnp.float32) / np.float32(6))).lower(x))
    np.testing.assert_array_equal(
        np.asarray(compiled(program).load()(x)), np.round(x.astype(np.float32) / np.float32(6))
    )


@pytest.mark.parametrize("wanted", [np.uint8, np.int8])
def test_bounded_floats_become_bytes(wanted: Any) -> None:
    """Those beyond the type, infinite ones and NaN as well; bounds inside of the type, and beyond it."""
    x = np.array([-np.inf, -1e9, -129, -128.5, -1.5, -0.0, 0.5, 1.5, 127.9, 128.2, 255.5, 256, 1e9, np.inf, np.nan])
    x = x.astype(np.float32)
    limits = np.iinfo(wanted)
    for low, high in ((limits.min, limits.max), (limits.min + 3, limits.max - 3), (-1000, 1000)):
        text = f"""func.func @main(%x: tensor<15xf32>) -> tensor<15x{"u" if wanted is np.uint8 else ""}i8> {{
          %low = stablehlo.constant dense<{float(low)}> : tensor<f32>
          %high = stablehlo.constant dense<{float(high)}> : tensor<f32>
          %c = stablehlo.clamp %low, %x, %high : (tensor<f32>, tensor<15xf32>, tensor<f32>) -> tensor<15xf32>
          %w = stablehlo.convert %c : (tensor<15xf32>) -> tensor<15xi32>
          %r = stablehlo.convert %w : (tensor<15xi32>) -> tensor<15x{"u" if wanted is np.uint8 else ""}i8>
          return %r : tensor<15x{"u" if wanted is np.uint8 else ""}i8> }}"""
        got = np.asarray(compiled(hloforge.as_program(text)).load()(x))
        numbers = np.where(np.isnan(x), 0, np.clip(x, low, high))
        np.testing.assert_array_equal(got, np.trunc(numbers).astype(np.int32).astype(wanted))
