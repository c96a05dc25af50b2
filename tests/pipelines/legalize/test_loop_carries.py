"""legalize-loop-carries: fewer carries, the same results."""

from __future__ import annotations

import numpy as np

from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.pipelines.legalize.loop_carries import LegalizeLoopCarries
from hloforge.pipelines.manager import PassManager
from tests.engines import interpret

LOOP = """func.func @main(%x: tensor<2xf32>, %k: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %go = stablehlo.constant dense<true> : tensor<i1>
  %r:5 = stablehlo.while(%i = %zero, %scale = %k, %y = %x, %idle = %x, %flag = %go)
      : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<i1>
    cond { stablehlo.return %flag : tensor<i1> }
    do {
      %n = stablehlo.add %i, %one : tensor<i32>
      %p = stablehlo.multiply %y, %scale : tensor<2xf32>
      %f = stablehlo.compare LT, %n, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %n, %scale, %p, %p, %f : tensor<i32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<i1>
    }
  return %r#2, %r#1 : tensor<2xf32>, tensor<2xf32> }"""


def test_invariant_and_unused_carries_are_dropped() -> None:
    module = parse_module(LOOP)
    PassManager([LegalizeLoopCarries()]).run(module)
    (loop,) = operations(module, {"stablehlo.while"})
    assert [str(result.type) for result in loop.results] == ["tensor<i32>", "tensor<2xf32>", "tensor<i1>"]
    x, k = np.array([1, 2], np.float32), np.array([3, -1], np.float32)
    power, scale = interpret(module, x, k)
    np.testing.assert_array_equal(power, x * k**4)
    np.testing.assert_array_equal(scale, k)


def test_the_body_reads_what_only_the_condition_read() -> None:
    module = parse_module(LOOP)
    PassManager([LegalizeLoopCarries()]).run(module)
    (barrier,) = operations(module, {"stablehlo.optimization_barrier"})
    assert [str(operand.type) for operand in barrier.operands] == ["tensor<i1>", "tensor<i1>"]
    once = str(module)
    PassManager([LegalizeLoopCarries()]).run(module)
    assert str(module) == once
