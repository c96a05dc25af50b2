"""legalize-quantized-moves: pairs of quantization and its inverse around moves and comparisons, beside XLA's f32."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.lowering import lower
from tests.pipelines.codegen.whole_programs import compiled


def _dequantized(q: Any, scale: Any, zero: int) -> Any:
    return (q.astype(np.int32) - zero).astype(np.float32) * np.float32(scale)


def _quantized(x: Any, scale: Any, zero: int, dtype: Any) -> Any:
    limits = np.iinfo(dtype)
    units = jnp.round(x / np.float32(scale)) + np.float32(zero)
    return jax.lax.clamp(np.float32(limits.min), units, np.float32(limits.max)).astype(np.int32).astype(dtype)


_MOVES = {
    "transposed": lambda x: x.transpose(2, 0, 1),
    "reshaped part": lambda x: x[:, 1:, ::2].reshape(-1),
    "reversed and joined": lambda x: jnp.concatenate([x[::-1], x], 1),
    "padded": lambda x: jnp.pad(x, 2, constant_values=0.31),
    "relu": lambda x: jnp.maximum(x, 0),
    "clipped": lambda x: jnp.clip(x, -0.32, 0.77),
    "chosen": lambda x: jnp.where(jnp.arange(x.shape[2]) % 3 == 0, x, x[:, ::-1]),
    "greatest of rows": lambda x: x.max(1),
    "pooled": lambda x: jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 3, 2), (1, 2, 1), ((0, 0), (1, 1), (0, 1))),
    "taken": lambda x: x[:, jnp.array([3, 0, 0, 2])],
}


@pytest.mark.wide(3)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16])
@pytest.mark.parametrize("move", list(_MOVES))
def test_moves(move: str, dtype: Any) -> None:
    limits, random = np.iinfo(dtype), np.random.default_rng(0)
    q = random.integers(limits.min, limits.max + 1, (4, 6, 10)).astype(dtype)
    scale, zero = np.float32(0.0123), (limits.min + limits.max) // 2 + 9

    def pair(q: Any) -> Any:
        return _quantized(_MOVES[move](_dequantized(q, scale, zero)), scale, zero, dtype)

    lowered = jax.jit(pair).lower(q)
    program = hloforge.as_program(lowered).clone()
    lower(program.module)
    assert "f32" not in str(program.module)
    got = compiled(hloforge.as_program(lowered)).load()(q)
    np.testing.assert_array_equal(got, lowered.compile()(q))


def test_any_scale() -> None:
    """Integers of 16 bits and scales of all sizes are what they were."""
    q = np.arange(1 << 16).astype(np.uint16)
    for number, scale in enumerate(np.float32(10.0) ** np.random.default_rng(1).uniform(-20, 20, 12)):
        scale = np.float32(scale)
        with np.errstate(over="ignore"):
            units = np.round((q.astype(np.int32) - number).astype(np.float32) * scale / scale) + np.float32(number)
        np.testing.assert_array_equal(units, q)


@pytest.mark.parametrize("change", [(0.0124, 128), (0.0123, 127)])
def test_other_units_are_rounded_to(change: tuple[float, int]) -> None:
    q = np.random.default_rng(2).integers(0, 256, (7, 9)).astype(np.uint8)
    lowered = jax.jit(lambda q: _quantized(_dequantized(q, 0.0123, 128).T, *change, np.uint8)).lower(q)
    got = compiled(hloforge.as_program(lowered)).load()(q)
    np.testing.assert_array_equal(got, lowered.compile()(q))
