"""legalize-shifted-windows: running reductions that begin before the first element, beside XLA's client."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hloforge
from hloforge.pipelines.codegen.lowering import lower
from tests.pipelines.codegen.jax_programs import check, normal


def _running(x: Any, along: int, reverse: bool, combine: Any = lax.add, start: Any = 0.0) -> Any:
    window, padding = [1] * x.ndim, [(0, 0)] * x.ndim
    window[along] = n = x.shape[along]
    padding[along] = (0, n - 1) if reverse else (n - 1, 0)
    return lax.reduce_window(x, np.asarray(start, x.dtype), combine, window, [1] * x.ndim, padding)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "along", "more", "less"), [((70,), 0, 1, 1), ((3, 40, 9), 1, 2, 0), ((5, 2), 1, 3, 2)]
)
def test_exclusive(shape: Any, along: int, more: int, less: int, reverse: bool) -> None:
    """Padded, joined with a constant, and cut after that."""

    def edges(low: int, high: int) -> list[tuple[int, int, int]]:
        found = [(0, 0, 0)] * len(shape)
        found[along] = (high, low, 0) if reverse else (low, high, 0)
        return found

    def part(y: Any) -> Any:
        size = y.shape[along]
        return (
            lax.slice_in_dim(y, less, size, axis=along) if reverse else lax.slice_in_dim(y, 0, size - less, axis=along)
        )

    def padded(x: Any) -> Any:
        return lax.pad(_running(x, along, reverse), np.float32(0), edges(more, -less))

    def joined(x: Any) -> Any:
        y = part(_running(x, along, reverse, lax.max, -np.inf))
        filled = jnp.full([more if d == along else size for d, size in enumerate(shape)], -np.inf, x.dtype)
        return jnp.concatenate([y, filled] if reverse else [filled, y], along)

    def cut(x: Any) -> Any:
        return part(lax.pad(_running(x, along, reverse, lax.mul, 1.0), np.float32(1), edges(more, 0)))

    x = normal(*shape)
    for function in (padded, joined, cut):
        check(function, x)
        program = hloforge.as_program(jax.jit(function).lower(x))
        lower(program.module)
        assert not any(name in str(program.module) for name in ("stablehlo.pad", "stablehlo.slice", "concatenate"))


@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_no_running_reduction_any_more(reverse: bool) -> None:
    """First results left out, others filled in after the last, another number, and a second reader."""

    def function(x: Any) -> Any:
        ends = [(-2, 3, 0), (1, 0, 0)]
        ends = [(high, low, 0) for low, high, _ in ends] if reverse else ends
        y = _running(x * 2, 0, reverse)
        return (
            lax.pad(_running(x, 0, reverse), np.float32(0), [ends[0]]), 
            lax.pad(_running(-x, 0, reverse), np.float32(1), [ends[1]]),
            lax.pad(y, np.float32(0), [ends[1]]), y,
        )  # fmt: skip

    check(function, normal(5))
