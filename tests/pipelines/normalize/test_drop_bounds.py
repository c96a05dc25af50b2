"""drop-bounds: types without bounds, a signature with them, and programs that run below their bound."""

from __future__ import annotations

import numpy as np

from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import Signature
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.normalize.drop_bounds import DropBounds
from tests.engines import interpret

BOUNDED = "tensor<?x3xf32, #stablehlo.bounds<5, ?>>"
PROGRAM = f"""func.func @main(%x: {BOUNDED}, %n: tensor<i32>) -> {BOUNDED} {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i32>, {BOUNDED}
    cond {{ %c = stablehlo.compare GT, %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1> }}
    do {{ %one = stablehlo.constant dense<1> : tensor<i32>
          %j = stablehlo.subtract %i, %one : tensor<i32>
          %z = stablehlo.add %y, %y : {BOUNDED}
          stablehlo.return %j, %z : tensor<i32>, {BOUNDED} }}
  return %r#1 : {BOUNDED} }}"""


def test_types_lose_their_bounds_and_the_signature_keeps_them() -> None:
    module = parse_module(PROGRAM)
    PassManager([DropBounds()]).run(module)
    assert "bounds" not in str(module)
    assert str(Signature.of(module)) == "(arg0: f32[<=5,3], arg1: s32[]) -> f32[<=5,3]"
    assert parse_module(str(module)) is not None


def test_a_module_without_bounds_stays_as_it_is() -> None:
    module = parse_module("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }")
    before = str(module)
    PassManager([DropBounds()]).run(module)
    assert str(module) == before


def test_set_dimension_size_stays_valid() -> None:
    module = parse_module("""func.func @main(%x: tensor<5xf32>, %n: tensor<i32>) -> tensor<i32> {
      %y = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<5xf32>, tensor<i32>)
        -> tensor<?xf32, #stablehlo.bounds<5>>
      %z = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32, #stablehlo.bounds<5>>) -> tensor<i32>
      return %z : tensor<i32> }""")
    PassManager([DropBounds()]).run(module)
    assert module.operation.verify()
    assert "bounds" not in str(module)


WIDER, FLAT, LONGER = (
    "tensor<2x?x3xf32, #stablehlo.bounds<?, 5, ?>>",
    "tensor<?xf32, #stablehlo.bounds<15>>",
    "tensor<1x?x3xf32, #stablehlo.bounds<?, 5, ?>>",
)
NARROWER = "tensor<?x2xf32, #stablehlo.bounds<5, ?>>"


def test_operations_sized_by_their_result_take_the_sizes_of_their_operand() -> None:
    module = parse_module(f"""func.func @main(%x: {BOUNDED}) -> ({WIDER}, {FLAT}, {LONGER}, {NARROWER}) {{
      %a = stablehlo.broadcast_in_dim %x, dims = [1, 2] : ({BOUNDED}) -> {WIDER}
      %b = stablehlo.reshape %x : ({BOUNDED}) -> {FLAT}
      %c = stablehlo.reshape %x : ({BOUNDED}) -> {LONGER}
      %d = stablehlo.slice %x [0:5, 1:3] : ({BOUNDED}) -> {NARROWER}
      return %a, %b, %c, %d : {WIDER}, {FLAT}, {LONGER}, {NARROWER} }}""")
    PassManager([DropBounds()]).run(module)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = (np.broadcast_to(x, (2, 2, 3)), x.ravel(), x[None], x[:, 1:])
    for actual, value in zip(interpret(module, x), expected, strict=True):
        np.testing.assert_array_equal(actual, value)
