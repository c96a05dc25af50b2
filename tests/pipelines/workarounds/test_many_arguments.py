"""legalize-many-arguments: programs that compute with more arrays than a dispatch takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.workarounds.many_arguments import LegalizeManyArguments


def total(*xs: Any) -> Any:
    return sum(jnp.tanh(x) for x in xs)


def columns(*xs: Any) -> Any:
    return sum(x.T * 2 for x in xs).sum(1)


def in_a_loop(*xs: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda turn, carry: (total(*carry), *carry[1:]), xs)[0]


@pytest.mark.parametrize("function", [total, columns, in_a_loop])
def test_programs_of_forty_arguments_run(function: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    xs = [rng.normal(size=(32, 32)).astype(np.float32) for _ in range(40)]
    found = hloforge.compile(jax.jit(function).lower(*xs), cache=False).load()(*xs)
    np.testing.assert_allclose(found, jax.jit(function)(*xs), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("count", "barriers"), [(24, 0), (25, 1), (60, 2)])
def test_sums_are_split_where_they_read_too_many_arguments(count: int, barriers: int) -> None:
    program = read(jax.jit(total).lower(*[np.ones((4, 4), np.float32)] * count).as_text())
    LegalizeManyArguments().run(program.module)
    assert program.module.operation.verify()
    assert len(operations(program.module, {"stablehlo.optimization_barrier"})) == barriers


def test_one_operation_of_many_arguments_is_left_and_hidden_from_its_reader() -> None:
    names = [f"%x{number}" for number in range(30)]
    program = read(f"""
      func.func @main({", ".join(f"{name}: tensor<4xf32>" for name in names)}) -> tensor<120xf32> {{
        %joined = "stablehlo.concatenate"({", ".join(names)}) {{dimension = 0 : i64}}
            : ({", ".join(["tensor<4xf32>"] * 30)}) -> tensor<120xf32>
        %negative = stablehlo.negate %joined : tensor<120xf32>
        return %negative : tensor<120xf32>
      }}""")
    LegalizeManyArguments().run(program.module)
    (negate,) = operations(program.module, {"stablehlo.negate"})
    assert negate.operands[0].owner.name == "stablehlo.optimization_barrier"
    assert negate.operands[0].owner.operands[0].owner.name == "stablehlo.concatenate"
