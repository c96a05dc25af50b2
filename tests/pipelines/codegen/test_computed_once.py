"""What has memory because it would be computed again: for several loops, or for many elements of another array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import hloforge
from hloforge.pipelines.codegen.graph import Array
from hloforge.pipelines.codegen.lowering import lower
from hloforge.pipelines.codegen.reading import function_of
from hloforge.pipelines.codegen.steps import Nest, Planner
from tests.pipelines.codegen.jax_programs import check, normal


def _loops(function: Callable[..., Any], *arguments: Any) -> tuple[list[Nest], Planner]:
    """The loops of a function's program."""
    program = hloforge.as_program(jax.jit(function, keep_unused=True).lower(*arguments)).clone()
    lower(program.module)
    block = function_of(program.module)
    stored = {*block.arguments, *(op.result for op in block.ops if op.name == "constant" and not op.is_splat)}
    planner = Planner(block, stored.__contains__)
    return [step for step in planner.steps() if isinstance(step, Nest)], planner


def _computing(loops: list[Nest], planner: Planner, name: str) -> list[Array]:
    """The arrays of an operation that loops compute, each as often as loops do."""
    found = [step.analysis(planner.in_memory)[1].computed for step in loops]
    return [array for arrays in found for array in arrays if array.op is not None and array.op.name == name]


def _many_readers(x: Any, y: Any) -> Any:
    """More results of one dear array than a loop makes, each of which a sort of its own reads."""
    dear = jnp.tanh(jnp.sin(x) * y)
    return [jnp.sort(dear * (number + y)) for number in range(13)]


def test_what_several_loops_need_is_computed_by_one() -> None:
    arguments = normal(5, 37), normal(5, 37)
    check(_many_readers, *arguments)
    loops, planner = _loops(_many_readers, *arguments)
    assert len(loops) > 1
    assert len(_computing(loops, planner, "sine")) == 1


def _upsampled(x: Any) -> Any:
    """By four readers of indices that are computed of those of rows and of columns."""
    height, width = x.shape[2:]
    y, z = jnp.arange(31) * 0.3, jnp.arange(45) * 0.4
    top, left = jnp.floor(y).astype(jnp.int32)[:, None], jnp.floor(z).astype(jnp.int32)[None]
    below, right = jnp.minimum(top + 1, height - 1), jnp.minimum(left + 1, width - 1)
    return sum(x[:, :, a, b] for a in (top, below) for b in (left, right))


def test_joined_views_of_small_arrays_have_no_memory() -> None:
    """Of each place of an image two indices are read, which lie in arrays of one dimension."""
    arguments = (normal(2, 3, 10, 18),)
    check(_upsampled, *arguments)
    loops, planner = _loops(_upsampled, *arguments)
    made = [array.op.name for loop in loops for array in loop.makes if array.op and planner.in_memory(array)]
    assert "concatenate" not in made
    assert len(_computing(loops, planner, "concatenate")) == 4


def test_an_array_that_is_read_twice_costs_itself_once() -> None:
    def function(x: Any) -> Any:
        for _ in range(7):
            x = x * x + np.float32(0.1)
        return x

    arguments = (normal(50, 7) * np.float32(0.5),)
    check(function, *arguments)
    loops, _ = _loops(function, *arguments)
    assert [len(loop.makes) for loop in loops] == [1]


def test_disjoint_slices_compute_their_parts() -> None:
    def gates(x: Any, b: Any) -> Any:
        one, two, three, four = jnp.split(x * b + b * b - x, 4, -1)
        return jax.nn.sigmoid(one) * two + jnp.tanh(three) * four

    arguments = normal(6, 40), normal(40)
    check(gates, *arguments)
    loops, _ = _loops(gates, *arguments)
    assert [len(loop.makes) for loop in loops] == [1]


def test_slices_that_read_much_twice_read_memory() -> None:
    def filtered(x: Any) -> Any:
        y = x * x + x * np.float32(0.3) - x
        return sum(y[number : number + 50] * y[number + 1 : number + 51] for number in range(5))

    check(filtered, normal(60))
    assert len(_loops(filtered, normal(60))[0]) == 2
