"""Large results that are written past the caches, for caches so small that short programs have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.pipelines.codegen.generate import generate
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.framework.machine import AVX512, Machine
from tests.pipelines.codegen.jax_programs import check, normal

# Bytes of a cache that a program of some thousand numbers exceeds.
_SMALL = 1 << 13


@pytest.fixture(autouse=True, scope="module")
def _small_cache() -> Iterator[None]:
    """Programs are compiled for a processor with such a cache, which no option of the compiler has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Machine, "with_settings", lambda machine, _: replace(machine, l3_bytes=_SMALL))
        yield


def _streams(function: Callable[..., Any], *arguments: Any) -> int:
    """How many stores past the caches a function's kernels have."""
    program = hloforge.as_program(jax.jit(function, keep_unused=True).lower(*arguments)).clone()
    lower(program.module)
    kernels = generate(program.module, replace(AVX512, l3_bytes=_SMALL)).kernels
    return sum(kernel.count("!nontemporal") for kernel in kernels)


_CHAINS: dict[str, Callable[..., Any]] = {
    "one result": lambda x, y: jnp.maximum(x * 1.5 + y, 0) - x * y,
    "of two widths": lambda x, y: (x + y, (x - y).astype(jnp.float16), x > y),
    "a row and a column": lambda x, y: x * y[0] + y[:, :1],
    "functions": lambda x, y: jnp.exp(x) * jnp.tanh(y),
    "one after the other": lambda x, y: ((z := x * y), jnp.where(z > 0, z + x, y)),
}


@pytest.mark.wide(2)
@pytest.mark.parametrize("shape", [(1, 5000), (9, 512), (7, 773)])
@pytest.mark.parametrize("name", _CHAINS)
def test_chains(name: str, shape: tuple[int, ...]) -> None:
    x, y = normal(*shape), normal(*shape)
    assert _streams(_CHAINS[name], x, y)
    check(_CHAINS[name], x, y)


def test_what_the_caches_hold_or_what_is_changed_in_place_is_written_there() -> None:
    x, y = normal(7, 773), normal(7, 773)
    assert not _streams(lambda x: x[:1] + 1, x)
    # More is written than read: the caches take it faster.
    assert not _streams(lambda x: (x + 1, x + 2, x + 3), x)
    assert not _streams(lambda x, y: jax.lax.fori_loop(0, 3, lambda _, z: z * x + y, x), x, y)


@pytest.mark.wide(2)
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, jnp.bfloat16, np.float64])
@pytest.mark.parametrize("shape", [(257, 70), (301, 9), (320, 130)])
def test_transposes(shape: tuple[int, int], dtype: Any) -> None:
    x, y = (10 * normal(*shape)).astype(dtype), (10 * normal(*shape[::-1])).astype(dtype)
    check(lambda x, y: (x.T, x.T * 2 + y), x, y)


@pytest.mark.parametrize("shape", [(300, 64), (257, 300), (2, 290, 17)])
def test_transposes_are_written_past_the_caches(shape: tuple[int, ...]) -> None:
    x = normal(*shape)
    assert _streams(lambda x: jnp.swapaxes(x, -1, -2), x)
    check(lambda x: jnp.swapaxes(x, -1, -2), x)
    check(lambda x: jnp.where(jnp.swapaxes(x, -1, -2) > 0, 1, jnp.exp(jnp.swapaxes(x, -1, -2))), x)


@pytest.mark.parametrize("rows", [9, 40])
def test_few_rows_of_squares_are_shared_out_along_them(rows: int) -> None:
    x = normal(40_011, rows)
    check(lambda x: x.T * 3, x)
