"""decompose-reverse-scan: sums from the end, by numpy."""

from __future__ import annotations

import numpy as np

from hloforge.dialect.mlir import parse_module
from hloforge.importers.reader import read
from hloforge.pipelines.decompose.reverse_scan import DecomposeReverseScan
from hloforge.pipelines.framework.manager import PassManager
from hloforge.runtime.compile.compiler import compile_program

X = np.array([[1, 2, 3], [4, 5, 6]], np.int32)

SCAN = """func.func @main(%x: tensor<2x3xi32>, %c: tensor<2xi32>) -> (tensor<2x3xi32>, tensor<2xi32>) {
  %0:2 = chlo.scan(%x) inits (%c) dimension=1 attributes {is_reverse = true} {
  ^bb0(%input: tensor<2xi32>, %carry: tensor<2xi32>):
    %1 = stablehlo.add %input, %carry : tensor<2xi32>
    stablehlo.return %1, %1 : tensor<2xi32>, tensor<2xi32>
  } : (tensor<2x3xi32>, tensor<2xi32>) -> (tensor<2x3xi32>, tensor<2xi32>)
  return %0#0, %0#1 : tensor<2x3xi32>, tensor<2xi32> }"""


def test_a_reverse_scan_starts_at_the_end() -> None:
    # The interpreter has no form of the slices that scans expand to, so this one runs on the target.
    outputs, carry = compile_program(read(SCAN)).load()(X, np.array([10, 20], np.int32))
    np.testing.assert_array_equal(outputs, np.cumsum(X[:, ::-1], axis=1)[:, ::-1] + [[10], [20]])
    np.testing.assert_array_equal(carry, X.sum(1) + np.array([10, 20]))


def test_a_forward_scan_is_left() -> None:
    text = SCAN.replace("is_reverse = true", "is_reverse = false")
    module = parse_module(text)
    PassManager([DecomposeReverseScan()]).run(module)
    assert str(module) == str(parse_module(text))


def test_a_scan_of_nothing_has_its_initial_carry() -> None:
    for text in (SCAN, SCAN.replace("is_reverse = true", "is_reverse = false")):
        program = read(text.replace("2x3xi32", "2x0xi32"))
        outputs, carry = compile_program(program).load()(X[:, :0], np.array([10, 20], np.int32))
        assert outputs.shape == (2, 0)
        np.testing.assert_array_equal(carry, [10, 20])
