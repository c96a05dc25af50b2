"""legalize-host-scalars: counters and sizes become floats that IREE's host cannot compute."""

from __future__ import annotations

import numpy as np

from hloforge.importers.reader import read
from hloforge.runtime.compile.compiler import compile_program
from hloforge.runtime.options import CompileOptions

TYPES = {"f16": "f16", "bf16": "bf16", "f64": "f64", "c64": "complex<f32>", "c128": "complex<f64>"}

COUNTED = """
  %NAME = stablehlo.convert %j : (tensor<i32>) -> tensor<TYPE>
  %NAMEs = stablehlo.broadcast_in_dim %NAME, dims = [] : (tensor<TYPE>) -> tensor<3xTYPE>
  %NAMEr = stablehlo.convert %NAMEs : (tensor<3xTYPE>) -> tensor<3xf32>
"""
# Loops over complex numbers are not fused.
LOOP = f"""
func.func @main(%n: tensor<i32>, %x: tensor<3xcomplex<f32>>, %y: tensor<?xf32>)
    -> (tensor<3xf32>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<3xf32>
  %size = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %wide = stablehlo.convert %size : (tensor<i32>) -> tensor<complex<f64>>
  %sizes = stablehlo.broadcast_in_dim %wide, dims = [] : (tensor<complex<f64>>) -> tensor<3xcomplex<f64>>
  %r:3 = stablehlo.while(%i = %zero, %sum = %none, %z = %x) : tensor<i32>, tensor<3xf32>, tensor<3xcomplex<f32>>
  cond {{
    %go = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  }} do {{
    %j = stablehlo.add %i, %one : tensor<i32>
    {"".join(COUNTED.replace("NAME", name).replace("TYPE", text) for name, text in TYPES.items())}
    %a = stablehlo.add %f16r, %bf16r : tensor<3xf32>
    %b = stablehlo.add %a, %f64r : tensor<3xf32>
    %c = stablehlo.add %b, %c64r : tensor<3xf32>
    %d = stablehlo.add %c, %c128r : tensor<3xf32>
    %next = stablehlo.add %sum, %d : tensor<3xf32>
    %w = stablehlo.multiply %z, %c64s : tensor<3xcomplex<f32>>
    stablehlo.return %j, %next, %w : tensor<i32>, tensor<3xf32>, tensor<3xcomplex<f32>>
  }}
  return %r#1, %r#2, %sizes : tensor<3xf32>, tensor<3xcomplex<f32>>, tensor<3xcomplex<f64>>
}}"""


def test_counters_and_sizes_of_every_float_type() -> None:
    session = compile_program(read(LOOP), options=CompileOptions(dynamic_shapes="keep")).load()
    x = np.array([1, 2j, 3 - 1j], np.complex64)
    sums, products, sizes = session(np.int32(4), x, np.zeros(7, np.float32))
    np.testing.assert_array_equal(sums, np.full(3, 5 * (1 + 2 + 3 + 4)))
    np.testing.assert_array_equal(products, x * 24)
    np.testing.assert_array_equal(sizes, np.full(3, 7, np.complex128))
