"""Loops over the same places as one loop, where a part of it reads what another part makes."""

from __future__ import annotations

import numpy as np

import hloforge
from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.access import Accesses
from hloforge.pipelines.codegen.reading import function_of
from tests.pipelines.codegen.whole_programs import check

# An element of the first array is read by the second one as that of quotients of quotients of its place.
RESHAPED = """
func.func public @main(%a: tensor<7x7x7xf32>, %b: tensor<7x7x7xui32>) -> (tensor<7x7x7xui32>, tensor<7x7x7xi1>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %abs = stablehlo.abs %a : tensor<7x7x7xf32>
  %x = stablehlo.convert %abs : (tensor<7x7x7xf32>) -> tensor<7x7x7xui32>
  %sum = stablehlo.add %x, %b : tensor<7x7x7xui32>
  %loop:2 = stablehlo.while(%n = %zero, %y = %x) : tensor<i32>, tensor<7x7x7xui32>
  cond {
    %more = stablehlo.compare LT, %n, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %twice = stablehlo.add %y, %y : tensor<7x7x7xui32>
    stablehlo.return %n, %twice : tensor<i32>, tensor<7x7x7xui32>
  }
  %rows = stablehlo.reshape %sum : (tensor<7x7x7xui32>) -> tensor<7x49xui32>
  %wide = stablehlo.reshape %rows : (tensor<7x49xui32>) -> tensor<1x7x1x49xui32>
  %same = stablehlo.broadcast_in_dim %wide, dims = [0, 1, 2, 3] : (tensor<1x7x1x49xui32>) -> tensor<1x7x1x49xui32>
  %back = stablehlo.reshape %same : (tensor<1x7x1x49xui32>) -> tensor<7x49xui32>
  %result = stablehlo.reshape %back : (tensor<7x49xui32>) -> tensor<7x7x7xui32>
  %differs = stablehlo.compare NE, %x, %loop#1 : (tensor<7x7x7xui32>, tensor<7x7x7xui32>) -> tensor<7x7x7xi1>
  return %result, %differs : tensor<7x7x7xui32>, tensor<7x7x7xi1>
}
"""

# A reduction starts with what a part of its loop would make: an array in memory, because windows begin with it as well.
STARTED = """
func.func public @main(%a: tensor<f32>, %b: tensor<3xf32>) -> (tensor<f32>, tensor<2xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %greatest = stablehlo.reduce(%a init: %low) applies stablehlo.maximum across dimensions = []
    : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %windows = "stablehlo.reduce_window"(%b, %low) <{window_dimensions = array<i64: 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %more = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %more : tensor<f32>
  }) : (tensor<3xf32>, tensor<f32>) -> tensor<2xf32>
  return %greatest, %windows : tensor<f32>, tensor<2xf32>
}
"""


def test_an_array_is_read_where_it_is_made_however_the_place_is_written() -> None:
    numbers = np.arange(343, dtype=np.float32).reshape(7, 7, 7)
    check(RESHAPED, numbers, np.full((7, 7, 7), 1000, np.uint32))


def test_a_reduction_starts_with_what_is_there_before_its_loop() -> None:
    check(STARTED, np.float32(-3), np.float32([-5, -4, -7]))


# A loop may be one over all elements, so that the place along the last dimension is a remainder.
EMPTY_PART = """
func.func public @main(%a: tensor<3x4x3xf32>) -> (tensor<3x4x3xf32>, tensor<3x4x3xf32>) {
  %b = stablehlo.slice %a [0:3, 0:4, 0:1] : (tensor<3x4x3xf32>) -> tensor<3x4x1xf32>
  %sorted:2 = "stablehlo.sort"(%b, %b) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>, %w: tensor<f32>):
    %less = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) {dimension = 1 : i64} : (tensor<3x4x1xf32>, tensor<3x4x1xf32>) -> (tensor<3x4x1xf32>, tensor<3x4x1xf32>)
  %none = stablehlo.slice %sorted#0 [0:3, 0:4, 0:0] : (tensor<3x4x1xf32>) -> tensor<3x4x0xf32>
  %joined = stablehlo.concatenate %a, %none, dim = 2 : (tensor<3x4x3xf32>, tensor<3x4x0xf32>) -> tensor<3x4x3xf32>
  %larger = stablehlo.maximum %joined, %a : tensor<3x4x3xf32>
  return %joined, %larger : tensor<3x4x3xf32>, tensor<3x4x3xf32>
}
"""


def test_a_joined_part_of_size_0_is_never_read() -> None:
    program = hloforge.as_program(EMPTY_PART)
    block = function_of(program.module)
    found = Accesses(lambda array: array.op is None or array.op.name == "sort")
    found.element(block.results[0], places.delinear(places.counter(36), (3, 4, 3)))
    assert [array for array, _ in found.loads] == [block.arguments[0]]
    assert not found.conditions
