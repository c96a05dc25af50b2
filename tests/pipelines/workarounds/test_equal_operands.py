"""legalize-equal-operands: no difference of equal integers of dynamic shape is left; values stay, judged by zero."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.api import compile
from hloforge.dialect.mlir import parse_module
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.workarounds.equal_operands import LegalizeEqualOperands

PROGRAM = """func.func @main(%x: tensor<?x{0}>) -> tensor<?x{0}> {{
  %a = stablehlo.add %x, %x : tensor<?x{0}>
  %b = stablehlo.add %x, %x : tensor<?x{0}>
  %r = stablehlo.subtract %a, %b : tensor<?x{0}>
  return %r : tensor<?x{0}> }}"""


def test_floats_of_which_one_may_be_nan_are_left_alone() -> None:
    module = parse_module(PROGRAM.format("f32").replace("%a, %b", "%a, %a"))
    before = str(module)
    PassManager([LegalizeEqualOperands()]).run(module)
    assert str(module) == before


@pytest.mark.parametrize("element", ["i32", "ui8"])
def test_equal_operands_compile_for_any_size(element: str) -> None:
    dtype = np.int32 if element == "i32" else np.uint8
    x = np.array([0, 1, 100], dtype)
    session = compile(PROGRAM.format(element).encode(), dynamic_shapes="keep").load()
    np.testing.assert_array_equal(session(x), np.zeros(3, dtype))
