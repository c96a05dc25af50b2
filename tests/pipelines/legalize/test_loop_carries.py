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


OVERWRITTEN = """func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %last = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %f = stablehlo.convert %j : (tensor<i32>) -> tensor<f32>
      %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<4xf32>
      stablehlo.return %j, %b : tensor<i32>, tensor<4xf32>
    }
  return %r#1 : tensor<4xf32> }"""


def test_a_carry_that_the_body_overwrites_unread_is_still_read() -> None:
    module = parse_module(OVERWRITTEN)
    PassManager([LegalizeLoopCarries()]).run(module)
    (loop,) = operations(module, {"stablehlo.while"})
    assert all(list(argument.uses) for argument in loop.regions[1].blocks[0].arguments)
    start = np.array([7, 7, 7, 7], np.float32)
    np.testing.assert_array_equal(interpret(module, np.int32(0), start)[0], start)
    np.testing.assert_array_equal(interpret(module, np.int32(3), start)[0], np.full(4, 3, np.float32))
