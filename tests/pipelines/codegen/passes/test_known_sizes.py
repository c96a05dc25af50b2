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
