"""legalize-counted-indices: scatters of elements that are named one by one, beside XLA.

Updates are small integers, so that sums have the same bits in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import entry_function
from hloforge.pipelines.analysis.counting import counts, varies
from tests.pipelines.codegen.jax_programs import check


def _integers(*shape: int, seed: int = 0, low: int = -9, high: int = 9) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(low, high, shape)


def _lowered(function: Callable[..., Any], *arguments: Any) -> str:
    """What the pass makes of a program."""
    from hloforge.pipelines.codegen.lowering import lower

    module = hloforge.as_program(jax.jit(function).lower(*arguments)).module
    lower(module)
    return str(module)


# Named as PyTorch's scatter_add and JAX's indexing with several arrays name them.
def _elements(x: Any, rows: Any, updates: Any) -> Any:
    columns = jnp.arange(updates.shape[1])
    return x.at[rows[:, None], columns[None, :]].add(updates)


@pytest.mark.parametrize("width", [1, 3, 16, 37])
def test_rows_beside_bounds_are_left_out(width: int) -> None:
    rows = _integers(50, low=-13, high=13).astype(np.int32)
    updates = _integers(50, width, seed=1).astype(np.float32)
    arguments = np.zeros((9, 37), np.float32), rows, updates
    assert "update_window_dims = [1]" in _lowered(_elements, *arguments)
    check(_elements, *arguments)


@pytest.mark.parametrize("kind", ["set", "max", "min", "multiply"])
def test_other_updates_keep_their_order(kind: str) -> None:
    def function(x: Any, rows: Any, updates: Any) -> Any:
        return getattr(x.at[rows[:, None], jnp.arange(5)[None, :]], kind)(updates)

    rows = _integers(40, low=0, high=7).astype(np.int32)
    check(function, np.ones((7, 5), np.float32), rows, _integers(40, 5, seed=2, low=1, high=4).astype(np.float32))


def test_a_dimension_in_the_middle() -> None:
    def function(x: Any, first: Any, last: Any, updates: Any) -> Any:
        return x.at[first[:, None], jnp.arange(6)[None, :], last[:, None]].add(updates)

    first, last = (_integers(30, seed=seed, low=-6, high=6).astype(np.int32) for seed in (3, 4))
    arguments = np.zeros((5, 6, 4), np.float32), first, last, _integers(30, 6, seed=5).astype(np.float32)
    assert "update_window_dims = [1]" in _lowered(function, *arguments)
    check(function, *arguments)


def test_counted_dimensions_in_another_order_stay() -> None:
    def function(x: Any, rows: Any, updates: Any) -> Any:
        return x.at[jnp.arange(6)[None, None, :], jnp.arange(4)[None, :, None], rows[:, None, None]].add(updates)

    rows = _integers(30, low=0, high=5).astype(np.int32)
    check(function, np.zeros((6, 4, 5), np.float32), rows, _integers(30, 4, 6).astype(np.float32))


@pytest.mark.parametrize(
    "columns",
    [np.arange(5) + 1, np.arange(5)[::-1].copy(), np.array([0, 1, 2, 3, 3]), np.array([0, 1, 2, 3, 4])],
    ids=["moved", "backwards", "repeated", "stated"],
)
def test_columns_that_are_stated(columns: np.ndarray[Any, Any]) -> None:
    def function(x: Any, rows: Any, updates: Any) -> Any:
        return x.at[rows[:, None], columns[None, :]].add(updates)

    rows = _integers(30, low=0, high=7).astype(np.int32)
    arguments = np.zeros((7, 6), np.float32), rows, _integers(30, 5).astype(np.float32)
    is_counted = bool(np.array_equal(columns, np.arange(5)))
    assert ("update_window_dims = [1]" in _lowered(function, *arguments)) == is_counted
    check(function, *arguments)


@pytest.mark.parametrize("seed", range(12))
def test_random_indices(seed: int) -> None:
    """Each component is an array along some dimensions of the updates, or counts along one."""
    random = np.random.default_rng(seed)
    rank = int(random.integers(2, 4))
    shape = tuple(int(size) for size in random.integers(1, 7, rank))
    updates = _integers(*shape, seed=seed).astype(np.float32)
    indices, sizes = [], []
    for component in range(int(random.integers(2, 4))):
        dim = int(random.integers(rank))
        if random.random() < 0.6:
            form = [1] * rank
            form[dim] = shape[dim]
            indices.append(np.arange(shape[dim]).reshape(form))
            sizes.append(shape[dim] + int(random.integers(0, 2)))
        else:
            kept = [size if random.random() < 0.5 else 1 for size in shape]
            indices.append(_integers(*kept, seed=seed + component, low=-5, high=5))
            sizes.append(4)

    # As the program's own arrays or as its arguments: counted ones are iotas in it.
    def function(x: Any, updates: Any, *given: Any) -> Any:
        places = [
            jax.lax.broadcasted_iota(jnp.int32, one.shape, int(np.argmax(one.shape)))
            if np.array_equal(one.reshape(-1), np.arange(one.size)) and one.size > 1
            else array
            for one, array in zip(indices, given, strict=True)
        ]
        places[0] = jnp.broadcast_to(places[0], shape)
        return x.at[tuple(places)].add(updates)

    check(function, np.zeros(sizes, np.float32), updates, *(one.astype(np.int32) for one in indices))


def test_what_is_read_twice_at_each_of_many_steps_is_looked_at_once() -> None:
    """Each step would double the work."""
    steps = "\n".join(f"%{n + 1} = stablehlo.add %{n}, %{n} : tensor<7x5xi32>" for n in range(40))
    module = parse_module(f"""func.func @main() -> tensor<7x5xi32> {{
      %0 = stablehlo.iota dim = 0 : tensor<7x5xi32>
      {steps}
      return %40 : tensor<7x5xi32> }}""")
    *_, terminator = entry_function(module).regions[0].blocks[0].operations
    (last,) = terminator.operation.operands
    assert varies(last, 0) and not varies(last, 1)
    # 2 to the power of 40 times the place, in 32 bits.
    assert not counts(last, 0)


@pytest.mark.parametrize("shape", [(0, 5), (7, 0)])
def test_no_updates_change_nothing(shape: tuple[int, int]) -> None:
    check(_elements, np.ones((9, 5), np.float32), np.arange(shape[0], dtype=np.int32), np.ones(shape, np.float32))
