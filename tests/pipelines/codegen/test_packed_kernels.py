"""Kernels of convolutions that are packed by workgroups of their own, beside XLA's client."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
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
