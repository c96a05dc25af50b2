"""fold-constants: numbers that are known are constants, unless the compiler chooses how they are rounded."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.codegen.passes.fold_constants import FoldConstants
from tests.pipelines.codegen.jax_programs import check

_TEXT = """func.func @main(%x: tensor<4xi32>) -> (tensor<4xi32>, tensor<i32>) {
  %seven = stablehlo.constant dense<7> : tensor<i64>
  %n = stablehlo.convert %seven : (tensor<i64>) -> tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %less = stablehlo.compare LT, %three, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %most = stablehlo.select %less, %n, %three : tensor<i1>, tensor<i32>
  %sum = stablehlo.add %most, %three : tensor<i32>
  %all = stablehlo.broadcast_in_dim %sum, dims = [] : (tensor<i32>) -> tensor<4xi32>
  %q = stablehlo.divide %x, %all : tensor<4xi32>
  return %q, %sum : tensor<4xi32>, tensor<i32> }"""


def _left(text: str) -> list[str]:
    program = hloforge.as_program(text)
    FoldConstants().run(program.module)
    program.module.operation.verify()
    return sorted(op.name.removeprefix("stablehlo.") for op in operations(program.module) if "constant" not in op.name)


def test_operations_on_numbers_are_gone() -> None:
    assert _left(_TEXT) == ["broadcast_in_dim", "divide", "func.func", "func.return"]


def test_results_are_the_same() -> None:
    assert [list(np.ravel(one)) for one in hloforge.compile(_TEXT)(np.array([-21, -1, 9, 30], np.int32))] == [
        [-2, 0, 0, 3],
        [10],
    ]


@pytest.mark.parametrize("operation", ["multiply", "exponential"])
def test_roundings_stay_the_compiler_s(operation: str) -> None:
    operands = "%a" if operation == "exponential" else "%a, %a"
    text = f"""func.func @main() -> tensor<f32> {{
      %a = stablehlo.constant dense<0.1> : tensor<f32>
      %r = stablehlo.{operation} {operands} : tensor<f32>
      return %r : tensor<f32> }}"""
    assert operation in _left(text)


def test_what_a_known_sum_chooses() -> None:
    """As jnp.var writes it: whether there are enough numbers decides between the variance and NaN."""
    text = """func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %count = stablehlo.constant dense<8.0> : tensor<f32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %rest = stablehlo.subtract %count, %zero : tensor<f32>
      %enough = stablehlo.compare GT, %rest, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %r = stablehlo.select %enough, %x, %y : tensor<i1>, tensor<4xf32>
      return %r : tensor<4xf32> }"""
    assert _left(text) == ["func.func", "func.return"]


def test_quotients_in_loops_of_numbers_that_are_known() -> None:
    """As jnp's functions write them: the divisor is converted, compared and chosen first."""

    def collatz(x: jax.Array) -> jax.Array:
        def turn(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            x, n = state
            return jnp.where(x % 2 == 0, x // 2, 3 * x + 1), n + 1

        return jax.vmap(lambda x: jax.lax.while_loop(lambda s: (s[0] != 1) & (s[1] < 30), turn, (x, 0))[1])(x)

    check(collatz, np.arange(-20, 40, dtype=np.int32))
