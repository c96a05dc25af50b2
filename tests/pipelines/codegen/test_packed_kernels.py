"""Kernels of convolutions that are packed by workgroups of their own, beside XLA's client."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.framework.machine import Machine
from tests.pipelines.codegen.jax_programs import check, normal

_AMX = frozenset({"avx2", "avx512bf16", "amx-bf16"})


def _convolved(x: Any, w: Any, b: Any) -> Any:
    names = ("NHWC", "OIHW", "NHWC")
    return jax.nn.relu(jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=names) + b)


@pytest.mark.parametrize(("batch", "size", "features"), [(8, 7, 256), (4, 14, 128)])
def test_beside_xla(batch: int, size: int, features: int) -> None:
    image, weights = normal(batch, size, size, features), normal(features, features, 3, 3)
    arguments = [jnp.asarray(one, jnp.bfloat16) for one in (image, weights / 48, normal(features))]
    lowered = jax.jit(_convolved).lower(*arguments)
    program = hloforge.as_program(lowered).clone()
    lower(program.module)
    made = generate(program.module, Machine(vector_bytes=64), extensions=_AMX)
    # The strips, and what reads them.
    assert len(made.dispatches) == 2
    check(_convolved, *arguments)


def test_sums_are_rounded_as_numbers() -> None:
    """What a convolution of bf16 stores itself: ties, infinities and NaN beside sums that are exact in f32."""
    image = normal(2, 5, 28, 32)
    image[0, 2, 3, 1], image[1, 0, 9, 30], image[1, 4, 27, 31] = np.nan, np.inf, -np.inf
    weights = np.round(normal(64, 32, 3, 3) * 4) / 4

    def convolved(x: Any, w: Any) -> Any:
        names = ("NHWC", "OIHW", "NHWC")
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=names)

    arguments = [jnp.asarray(one, jnp.bfloat16) for one in (np.round(image * 16) / 16, weights)]
    expected = convolved(*(one.astype(jnp.float32) for one in arguments))
    found = hloforge.jit(convolved)(*arguments)
    np.testing.assert_array_equal(np.asarray(found, np.float64), np.asarray(expected.astype(jnp.bfloat16), np.float64))
