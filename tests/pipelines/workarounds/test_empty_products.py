"""legalize-empty-products, through IREE, whose compiler crashes on what the pass replaces."""

from __future__ import annotations

import numpy as np

import hloforge

TEXT = """func.func @main(%x: tensor<2x0xi1>, %y: tensor<0x3xi1>, %i: tensor<1x5x0xcomplex<f32>>,
    %k: tensor<2x0x3xcomplex<f32>>) -> (tensor<2x3xi1>, tensor<1x4x3xcomplex<f32>>) {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x0xi1>, tensor<0x3xi1>) -> tensor<2x3xi1>
  %s = stablehlo.convolution(%i, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x5x0xcomplex<f32>>, tensor<2x0x3xcomplex<f32>>) -> tensor<1x4x3xcomplex<f32>>
  return %r, %s : tensor<2x3xi1>, tensor<1x4x3xcomplex<f32>>
}"""


def test_products_of_nothing_are_zeros() -> None:
    arguments = [np.zeros(dims, bool) for dims in ((2, 0), (0, 3))]
    arguments += [np.zeros(dims, np.complex64) for dims in ((1, 5, 0), (2, 0, 3))]
    dot, convolution = hloforge.compile(TEXT)(*arguments)
    np.testing.assert_array_equal(dot, np.zeros((2, 3), bool))
    np.testing.assert_array_equal(convolution, np.zeros((1, 4, 3), np.complex64))
