"""legalize-unsigned-reverse, through IREE, which refuses what the pass replaces."""

from __future__ import annotations

import numpy as np

from hloforge.importers.reader import read
from hloforge.runtime.compile.compiler import compile_program


def test_unsigned_and_packed_integers_and_scalars_are_reversed() -> None:
    text = """func.func @main(%x: tensor<3x5xui64>, %y: tensor<3xui4>, %z: tensor<f32>)
        -> (tensor<3x5xui64>, tensor<3xui4>, tensor<f32>) {
      %r = stablehlo.reverse %x, dims = [1, 0] : tensor<3x5xui64>
      %s = stablehlo.reverse %y, dims = [0] : tensor<3xui4>
      %t = stablehlo.reverse %z, dims = [] : tensor<f32>
      return %r, %s, %t : tensor<3x5xui64>, tensor<3xui4>, tensor<f32> }"""
    program = read(text)
    x = np.arange(15, dtype=np.uint64).reshape(3, 5) + np.uint64(2**63)
    y = np.array([15, 7, 0]).astype(program.signature.parameters[1].shape.element.dtype)
    wide, packed, scalar = compile_program(program).load()(x, y, np.float32(7))
    np.testing.assert_array_equal(wide, x[::-1, ::-1])
    np.testing.assert_array_equal(packed, y[::-1])
    assert scalar == 7
