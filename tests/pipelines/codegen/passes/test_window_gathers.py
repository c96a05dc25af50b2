"""legalize-window-gathers: gathers of elements that are named one by one, beside XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from tests.pipelines.codegen.jax_programs import check


def _floats(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _rows(*shape: int, seed: int = 0, low: int = -13, high: int = 13) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)


def _lowered(function: Callable[..., Any], *arguments: Any) -> str:
    from hloforge.pipelines.codegen.lowering import lower

    module = hloforge.as_program(jax.jit(function).lower(*arguments)).module
    lower(module)
    return str(module)


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("width", [1, 3, 16, 37])
def test_rows_by_elements(width: int, mode: str) -> None:
    """As PyTorch's ``gather`` names them."""

    def function(x: Any, rows: Any) -> Any:
        shape = len(rows), width
        columns = jax.lax.broadcasted_iota(jnp.int32, shape, 1)
        return x.at[jnp.broadcast_to(rows[:, None], shape), columns].get(mode=mode)

    low, high = (0, 9) if mode == "promise_in_bounds" else (-13, 13)
    arguments = _floats(9, 37), _rows(50, low=low, high=high)
    if width > 1:
        assert f"slice_sizes = array<i64: 1, {width}>" in _lowered(function, *arguments)
    check(function, *arguments)


@pytest.mark.wide(2)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("along", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)])
def test_take_along_an_axis_by_indices_that_are_the_same_along_others(axis: int, along: tuple[int, ...]) -> None:
    def function(x: Any, indices: Any) -> Any:
        shape = [9 if dim == axis else size for dim, size in enumerate(x.shape)]
        return jnp.take_along_axis(x, jnp.broadcast_to(indices, shape) % 4 - 2, axis)

    x = _floats(4, 5, 7)
    kept = [1 if dim in along else 9 if dim == axis else size for dim, size in enumerate(x.shape)]
    check(function, x, _rows(*kept))


@pytest.mark.parametrize("seed", range(16))
def test_random_indices(seed: int) -> None:
    """Each component is an array along some dimensions of the result, or counts along one."""
    random = np.random.default_rng(seed)
    rank = int(random.integers(2, 4))
    shape = tuple(int(size) for size in random.integers(1, 7, rank))
    forms: list[tuple[list[int], bool]] = []
    sizes, given = [], []
    for component in range(int(random.integers(2, 4))):
        dim = int(random.integers(rank))
        counts = bool(random.random() < 0.6)
        form = [shape[dim] if place == dim else 1 for place in range(rank)]
        if not counts:
            form = [size if random.random() < 0.5 else 1 for size in shape]
        forms.append((form, counts))
        sizes.append(shape[dim] + int(random.integers(-1, 2)) if counts else 4)
        given.append(_rows(*form, seed=seed + component, low=-5, high=5))

    def function(x: Any, *given: Any) -> Any:
        places = [
            jax.lax.broadcasted_iota(jnp.int32, form, int(np.argmax(form))) if counts else array + 1
            for (form, counts), array in zip(forms, given, strict=True)
        ]
        return x.at[tuple(jnp.broadcast_to(place, shape) for place in places)].get(mode="clip")

    check(function, _floats(*(max(size, 1) for size in sizes)), *given)
