"""Signs of NaN of bf16, bit by bit, judged by XLA's CPU client; numbers beside them by numpy's own rounding."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import hloforge
from hloforge.runtime.reference.engines import reference

WORDS = (0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FA12345, 0xFFE12345, 0x80000001)
NUMBERS = (1.0, -1.00390625, 1.01171875, 3.4e38, -np.inf, -0.0, 1e-39)
X = np.concatenate([np.array(WORDS, np.uint32).view(np.float32), np.array(NUMBERS, np.float32)])
BF16 = "tensor<16xbf16>"
BITS = "tensor<16xui16>"


def test_conversions_and_arithmetic_keep_the_sign_of_nan() -> None:
    text = f"""func.func @main(%x: tensor<16xf32>) -> ({BF16}, {BITS}, {BF16}, {BF16}, {BITS}, {BF16}) {{
      %c = stablehlo.convert %x : (tensor<16xf32>) -> {BF16}
      %b = stablehlo.bitcast_convert %c : ({BF16}) -> {BITS}
      %n = stablehlo.negate %c : {BF16}
      %q = stablehlo.divide %c, %c : {BF16}
      %r = stablehlo.reverse %n, dims = [0] : {BF16}
      %m = stablehlo.bitcast_convert %r : ({BF16}) -> {BITS}
      %p = stablehlo.compare LT, %c, %n : ({BF16}, {BF16}) -> tensor<16xi1>
      %s = stablehlo.select %p, %c, %n : tensor<16xi1>, {BF16}
      return %c, %b, %n, %q, %m, %s : {BF16}, {BITS}, {BF16}, {BF16}, {BITS}, {BF16} }}"""
    program = hloforge.read(text)
    got = hloforge.compile(program, target="cpu").load()(X)
    for one, other in zip(got, reference("xla", isolated=False).prepare(program)(X), strict=True):
        np.testing.assert_array_equal(one.view(np.uint16), np.asarray(other).view(np.uint16))
    np.testing.assert_array_equal(got[0][len(WORDS) :], X[len(WORDS) :].astype(ml_dtypes.bfloat16))


def test_bits_that_are_read_beside_a_reduction() -> None:
    text = f"""func.func @main(%x: {BF16}) -> ({BITS}, tensor<bf16>) {{
      %z = stablehlo.constant dense<0xFF80> : tensor<bf16>
      %n = stablehlo.negate %x : {BF16}
      %b = stablehlo.bitcast_convert %n : ({BF16}) -> {BITS}
      %r = stablehlo.reduce(%x init: %z) applies stablehlo.maximum across dimensions = [0]
        : ({BF16}, tensor<bf16>) -> tensor<bf16>
      return %b, %r : {BITS}, tensor<bf16> }}"""
    with np.errstate(invalid="ignore"):
        x = X.astype(ml_dtypes.bfloat16)
    program = hloforge.read(text)
    got = hloforge.compile(program, target="cpu").load()(x)
    np.testing.assert_array_equal(got[0], np.asarray(reference("xla", isolated=False).prepare(program)(x)[0]))
