"""decompose-bit-widths: bytes of numbers, and numbers of bytes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.jax_programs import check, normal
from tests.pipelines.codegen.whole_programs import compiled

_BYTES = np.random.default_rng(1).integers(0, 256, (3, 2, 4)).astype(np.uint8)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (normal(5), np.uint8),
        (normal(5, dtype=np.float64), np.uint32),
        (normal(5, dtype=np.float64), np.float16),
        (normal(2, 3).astype(np.int32), np.int16),
        (_BYTES, np.int32),
        (_BYTES.view(np.uint16), np.float32),
        (_BYTES.view(np.int16)[0], np.uint32),
        (np.zeros((0, 4), np.uint8), np.uint32),
    ],
)
def test_bits_are_the_same(given: Any, wanted: Any) -> None:
    check(lambda x: jax.lax.bitcast_convert_type(jax.lax.bitcast_convert_type(x, wanted), given.dtype), given)


@pytest.mark.parametrize(("given", "wanted"), [("c64", "c128"), ("c128", "c64")])
def test_parts_of_complex_numbers(given: str, wanted: str) -> None:
    # JAX has no such bitcast.
    types = {"c64": ("complex<f32>", np.complex64), "c128": ("complex<f64>", np.complex128)}
    x = normal(3, 2, dtype=types[given][1])
    sizes, results = ("3x2", "3") if given == "c64" else ("3x2", "3x2x2")
    before, after = f"tensor<{sizes}x{types[given][0]}>", f"tensor<{results}x{types[wanted][0]}>"
    text = f"""func.func @main(%x: {before}) -> {after} {{
      %r = stablehlo.bitcast_convert %x : ({before}) -> {after}
      return %r : {after} }}"""
    got = np.asarray(compiled(hloforge.as_program(text)).load()(x))
    np.testing.assert_array_equal(got.ravel(), x.ravel().view(types[wanted][1]))
