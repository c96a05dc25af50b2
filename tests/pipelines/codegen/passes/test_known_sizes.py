"""fold-known-sizes: sizes that types say are constants."""

from __future__ import annotations

import numpy as np

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.codegen.passes.known_sizes import FoldKnownSizes
from tests.pipelines.codegen.whole_programs import compiled

_TEXT = """func.func @main(%x: tensor<2x3xf32>, %y: tensor<SIZEx3xf32>) -> (tensor<i32>, tensor<i32>) {
  %a = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>
  %b = stablehlo.get_dimension_size %y, dim = 0 : (tensor<SIZEx3xf32>) -> tensor<i32>
  return %a, %b : tensor<i32>, tensor<i32> }"""


def test_sizes_are_computed() -> None:
    session = compiled(hloforge.as_program(_TEXT.replace("SIZE", "7"))).load()
    assert session(np.zeros((2, 3), np.float32), np.zeros((7, 3), np.float32)) == (3, 7)


def test_a_dynamic_size_stays() -> None:
    program = hloforge.as_program(_TEXT.replace("SIZE", "?"))
    FoldKnownSizes().run(program.module)
    (left,) = operations(program.module, frozenset({"stablehlo.get_dimension_size"}))
    assert left.operands[0].type.is_dynamic_dim(0)


_PARTS = """func.func @main(%x: tensor<5xf32>, %i: tensor<1xi64>) -> tensor<2xf32> {
  %two = stablehlo.constant dense<2> : tensor<1xi64>
  %end = stablehlo.add %i, %two : tensor<1xi64>
  %step = stablehlo.constant dense<STEP> : tensor<1xi64>
  %r = stablehlo.real_dynamic_slice %x, %i, %end, %step
    : (tensor<5xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>
  return %r : tensor<2xf32> }
  func.func @beside(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"""


def test_slices_of_known_size() -> None:
    session = compiled(hloforge.as_program(_PARTS.replace("STEP", "1"))).load()
    x = np.arange(5, dtype=np.float32)
    for place in range(4):
        assert list(session(x, np.array([place]))) == [place, place + 1]


def test_a_slice_with_steps_stays() -> None:
    program = hloforge.as_program(_PARTS.replace("STEP", "2"))
    FoldKnownSizes().run(program.module)
    assert operations(program.module, frozenset({"stablehlo.real_dynamic_slice"}))
