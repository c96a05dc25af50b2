"""legalize-complex-parts through IREE, which has the limits that the pass works around."""

from __future__ import annotations

import numpy as np

from hloforge.importers.reader import read
from hloforge.runtime.compile.compiler import compile_program

PROGRAM = """
func.func @main(%x: tensor<3xcomplex<f64>>, %v: tensor<complex<f64>>, %y: tensor<3x2xcomplex<f32>>)
    -> (tensor<3x2xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<8xcomplex<f64>>, tensor<8xcomplex<f64>>,
        tensor<4xcomplex<f64>>, tensor<2xcomplex<f64>>) {
  %halves = stablehlo.bitcast_convert %x : (tensor<3xcomplex<f64>>) -> tensor<3x2xcomplex<f32>>
  %whole = stablehlo.bitcast_convert %y : (tensor<3x2xcomplex<f32>>) -> tensor<3xcomplex<f64>>
  %c = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f64>>
  %p = stablehlo.pad %x, %v, low = [1], high = [2], interior = [1]
    : (tensor<3xcomplex<f64>>, tensor<complex<f64>>) -> tensor<8xcomplex<f64>>
  %q = stablehlo.pad %x, %c, low = [1], high = [2], interior = [1]
    : (tensor<3xcomplex<f64>>, tensor<complex<f64>>) -> tensor<8xcomplex<f64>>
  %b = stablehlo.broadcast_in_dim %v, dims = [] : (tensor<complex<f64>>) -> tensor<4xcomplex<f64>>
  %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f64>>
  %w = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>,
      padding = dense<[[1, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<complex<f64>>, %c0: tensor<complex<f64>>):
      %sum = stablehlo.add %a, %c0 : tensor<complex<f64>>
      stablehlo.return %sum : tensor<complex<f64>>
  }) : (tensor<3xcomplex<f64>>, tensor<complex<f64>>) -> tensor<2xcomplex<f64>>
  return %halves, %whole, %p, %q, %b, %w : tensor<3x2xcomplex<f32>>, tensor<3xcomplex<f64>>, tensor<8xcomplex<f64>>,
    tensor<8xcomplex<f64>>, tensor<4xcomplex<f64>>, tensor<2xcomplex<f64>>
}"""


def test_bitcasts_and_fills() -> None:
    x = np.array([1 + 2j, -3 + 0.5j, np.inf - 1j])
    y = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32).view(np.complex64)
    halves, whole, padded, padded_constant, broadcast, sums = compile_program(read(PROGRAM)).load()(x, np.array(7j), y)
    np.testing.assert_array_equal(halves, x.view(np.complex64).reshape(3, 2))
    np.testing.assert_array_equal(whole, y.view(np.complex128).reshape(3))
    for value, result in ((7j, padded), (1 + 2j, padded_constant)):
        want = np.full(8, value)
        want[1:6:2] = x
        np.testing.assert_array_equal(result, want)
    np.testing.assert_array_equal(broadcast, np.full(4, 7j))
    np.testing.assert_array_equal(sums, [x[0], x[1] + x[2]])


def test_updates_of_constants_as_in_the_gradient_of_a_real_fourier_transform() -> None:
    text = """func.func @main(%x: tensor<9xcomplex<f32>>) -> tensor<9xcomplex<f32>> {
      %two = stablehlo.constant dense<(2.0, 0.0)> : tensor<complex<f32>>
      %all = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<complex<f32>>) -> tensor<9xcomplex<f32>>
      %one = stablehlo.constant dense<(1.0, 3.0)> : tensor<1xcomplex<f32>>
      %first = stablehlo.constant dense<0> : tensor<i32>
      %last = stablehlo.constant dense<8> : tensor<i32>
      %0 = stablehlo.dynamic_update_slice %all, %one, %first
        : (tensor<9xcomplex<f32>>, tensor<1xcomplex<f32>>, tensor<i32>) -> tensor<9xcomplex<f32>>
      %1 = stablehlo.dynamic_update_slice %0, %one, %last
        : (tensor<9xcomplex<f32>>, tensor<1xcomplex<f32>>, tensor<i32>) -> tensor<9xcomplex<f32>>
      %2 = stablehlo.multiply %x, %1 : tensor<9xcomplex<f32>>
      return %2 : tensor<9xcomplex<f32>> }"""
    x = np.arange(9, dtype=np.float32) * np.complex64(1 - 2j)
    factors = np.full(9, 2, np.complex64)
    factors[[0, 8]] = 1 + 3j
    np.testing.assert_allclose(compile_program(read(text)).load()(x), x * factors, rtol=1e-6)


def test_updates_of_parts_of_a_constant() -> None:
    program = read(
        """func.func @main(%i: tensor<i8>, %x: tensor<1x1xcomplex<f32>>) -> (tensor<3x2xcomplex<f32>>, tensor<1x2xcomplex<f32>>) {
  %c = stablehlo.constant dense<(-1.5, 2.0)> : tensor<3x2xcomplex<f32>>
  %part = stablehlo.dynamic_slice %c, %i, %i, sizes = [1, 2]
      : (tensor<3x2xcomplex<f32>>, tensor<i8>, tensor<i8>) -> tensor<1x2xcomplex<f32>>
  %made = stablehlo.dynamic_update_slice %part, %x, %i, %i
      : (tensor<1x2xcomplex<f32>>, tensor<1x1xcomplex<f32>>, tensor<i8>, tensor<i8>) -> tensor<1x2xcomplex<f32>>
  return %c, %made : tensor<3x2xcomplex<f32>>, tensor<1x2xcomplex<f32>>
}
"""  # noqa: E501 - the signature of a function
    )
    whole, made = compile_program(program)(np.int8(1), np.full((1, 1), 7, np.complex64))
    np.testing.assert_array_equal(whole, np.full((3, 2), -1.5 + 2j))
    np.testing.assert_array_equal(made, [[-1.5 + 2j, 7]])


def test_paddings_of_a_padded_array() -> None:
    text = """func.func @main(%x: tensor<4x6xcomplex<f32>>, %v: tensor<complex<f32>>, %w: tensor<complex<f32>>)
        -> tensor<7x6xcomplex<f32>> {
      %0 = stablehlo.pad %x, %v, low = [1, 0], high = [0, 0], interior = [0, 0]
        : (tensor<4x6xcomplex<f32>>, tensor<complex<f32>>) -> tensor<5x6xcomplex<f32>>
      %1 = stablehlo.pad %0, %w, low = [0, 0], high = [2, 0], interior = [0, 0]
        : (tensor<5x6xcomplex<f32>>, tensor<complex<f32>>) -> tensor<7x6xcomplex<f32>>
      return %1 : tensor<7x6xcomplex<f32>> }"""
    x = (np.arange(24).reshape(4, 6) + 1j).astype(np.complex64)
    v, w = np.array(2 - 1j, np.complex64), np.array(-3j, np.complex64)
    want = np.concatenate([np.full((1, 6), v), x, np.full((2, 6), w)])
    np.testing.assert_array_equal(compile_program(read(text)).load()(x, v, w), want)
