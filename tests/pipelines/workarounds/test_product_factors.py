"""legalize-product-factors: masks and unsigned numbers of every size, converted and multiplied."""

from __future__ import annotations

import numpy as np

import hloforge
from hloforge import ops
from hloforge.dialect.ops.dot import DotDimensionNumbers
from hloforge.pipelines.named import lower

A = np.arange(9.0).reshape(3, 3)
MASK = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0]], bool)
# The highest bit is set, so that a signed reading is negative.
FACTORS = {"pred": MASK, "u8": MASK * np.uint8(200), "u16": MASK * np.uint16(60000), "u32": MASK * np.uint32(3 << 30)}
TYPES = {"f32": np.float32, "f64": np.float64, "s32": np.int32}


def test_every_factor_counts_as_it_stands() -> None:
    with hloforge.Builder("products") as builder:
        factors = {name: builder.parameter(n, f"{name}[3,3]", name) for n, name in enumerate(FACTORS)}
        results = []
        for result in TYPES:
            a = ops.constant(A.astype(TYPES[result]))
            for factor in factors.values():
                wide = ops.convert_element_type(factor, result)
                through = ops.reshape(ops.reshape(wide, [9]), [3, 3])
                results += [ops.dot(a, wide), ops.dot(through, a), ops.dot(a, ops.transpose(wide, [1, 0]))]
        program = builder.build(tuple(results))
    got = iter(program.compile("cpu")(*FACTORS.values()))
    for type_ in TYPES.values():
        for factor in FACTORS.values():
            a, wide = A.astype(type_), factor.astype(type_)
            for want in (a @ wide, wide @ a, a @ wide.T):
                np.testing.assert_allclose(next(got), want, rtol=1e-6)


def test_factors_may_be_slices_of_what_is_converted() -> None:
    # jax.jacfwd multiplies by slices of an identity matrix of booleans.
    with hloforge.Builder("slices") as builder:
        factors = [builder.parameter(n, f"{name}[3,3]", name) for n, name in enumerate(FACTORS)]
        results = []
        for factor in factors:
            wide = ops.convert_element_type(factor, "f32")
            whole, rows = (ops.slice(wide, [0, 0], [size, 3], [1, 1]) for size in (3, 2))
            a = ops.constant(A.astype(np.float32))
            results += [ops.dot(whole, a), ops.dot(rows, a), ops.dot(ops.rev(wide, [0]), a)]
        program = builder.build(tuple(results))
    got = iter(program.compile("cpu")(*FACTORS.values()))
    for factor in FACTORS.values():
        for chosen in (factor, factor[:2], factor[::-1]):
            np.testing.assert_allclose(next(got), chosen.astype(np.float32) @ A, rtol=1e-6)


def test_factors_may_be_narrower_than_the_product() -> None:
    random = np.random.default_rng(0)
    image, kernel = (random.integers(-99, 99, dims).astype(np.int8) for dims in ((1, 6, 4), (3, 1, 4)))
    numbers = random.standard_normal((2, 3, 4, 4, 2)).astype(np.float32)
    x, y = numbers[..., 0] + 1j * numbers[..., 1]
    depthwise, product = hloforge.compile(NARROWER)(image, kernel, x, y)
    windows = np.lib.stride_tricks.sliding_window_view(image[0].astype(np.int32), 3, 0)
    np.testing.assert_array_equal(depthwise[0], np.einsum("sfw,wf->sf", windows, kernel[:, 0]))
    np.testing.assert_allclose(product, x.astype(np.complex128) @ y, rtol=1e-12)


def test_unsigned_factors_may_be_narrower_than_the_product() -> None:
    random = np.random.default_rng(0)
    arrays = [random.integers(*limits, dims).astype(type_) for limits, dims, type_ in UNSIGNED]
    products = hloforge.compile(WIDER)(*arrays)
    wide = [array.astype(np.int64) for array in arrays]
    windows = np.lib.stride_tricks.sliding_window_view(wide[3][0, :, 0], 3)
    want = (wide[0] @ wide[1], wide[0][0] @ wide[1], wide[0] @ wide[2], (windows @ wide[4][:, 0])[None])
    for got, expected in zip(products, want, strict=True):
        np.testing.assert_array_equal(np.asarray(got).astype(np.int64), expected)


# Most have the highest bit, so that a signed reading is negative.
UNSIGNED = (
    ((100, 256), (5, 6), np.uint8),
    ((100, 256), (6, 7), np.uint8),
    ((-128, 128), (6, 7), np.int8),
    ((30000, 65536), (1, 9, 1), np.uint16),
    ((30000, 65536), (3, 1, 2), np.uint16),
)
WIDER = """func.func @main(%x: tensor<5x6xui8>, %y: tensor<6x7xui8>, %z: tensor<6x7xi8>, %i: tensor<1x9x1xui16>,
    %k: tensor<3x1x2xui16>) -> (tensor<5x7xui32>, tensor<7xui32>, tensor<5x7xi32>, tensor<1x7x2xui64>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : 
      (tensor<5x6xui8>, tensor<6x7xui8>) -> tensor<5x7xui32>
  %row = stablehlo.slice %x [0:1, 0:6] : (tensor<5x6xui8>) -> tensor<1x6xui8>
  %v = stablehlo.reshape %row : (tensor<1x6xui8>) -> tensor<6xui8>
  %1 = stablehlo.dot_general %v, %y, contracting_dims = [0] x [0] : (tensor<6xui8>, tensor<6x7xui8>) -> tensor<7xui32>
  %2 = stablehlo.dot_general %x, %z, contracting_dims = [1] x [0] : (tensor<5x6xui8>, tensor<6x7xi8>) -> tensor<5x7xi32>
  %3 = stablehlo.convolution(%i, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x9x1xui16>, tensor<3x1x2xui16>) -> tensor<1x7x2xui64>
  return %0, %1, %2, %3 : tensor<5x7xui32>, tensor<7xui32>, tensor<5x7xi32>, tensor<1x7x2xui64>
}"""
CONVERTED = """func.func @main(%i: tensor<1x6x4xf16>, %k: tensor<3x1x4xf16>) -> tensor<1x4x4xf32> {
  %0 = stablehlo.convert %i : (tensor<1x6x4xf16>) -> tensor<1x6x4xf32>
  %1 = stablehlo.convert %k : (tensor<3x1x4xf16>) -> tensor<3x1x4xf32>
  %2 = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 4 : i64}
      : (tensor<1x6x4xf32>, tensor<3x1x4xf32>) -> tensor<1x4x4xf32>
  return %2 : tensor<1x4x4xf32>
}"""


def test_the_program_may_convert_factors_of_groups() -> None:
    # XLA's CPU client leaves a convolution by channels of bf16 and f16 in this form.
    random = np.random.default_rng(1)
    image, kernel = (random.standard_normal(dims).astype(np.float16) for dims in ((1, 6, 4), (3, 1, 4)))
    windows = np.lib.stride_tricks.sliding_window_view(image[0].astype(np.float32), 3, 0)
    want = np.einsum("sfw,wf->sf", windows, kernel[:, 0].astype(np.float32))
    np.testing.assert_allclose(hloforge.compile(CONVERTED)(image, kernel)[0], want, rtol=1e-5, atol=1e-5)


NARROWER = """func.func @main(%i: tensor<1x6x4xi8>, %k: tensor<3x1x4xi8>, %x: tensor<3x4x4xcomplex<f32>>,
    %y: tensor<3x4x4xcomplex<f32>>) -> (tensor<1x4x4xi32>, tensor<3x4x4xcomplex<f64>>) {
  %0 = stablehlo.convolution(%i, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 4 : i64}
      : (tensor<1x6x4xi8>, tensor<3x1x4xi8>) -> tensor<1x4x4xi32>
  %1 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : (tensor<3x4x4xcomplex<f32>>, tensor<3x4x4xcomplex<f32>>) -> tensor<3x4x4xcomplex<f64>>
  return %0, %1 : tensor<1x4x4xi32>, tensor<3x4x4xcomplex<f64>>
}"""


def test_products_that_sum_nothing_may_share_narrow_factors() -> None:
    with hloforge.Builder("outer") as builder:
        x, y, z = (builder.parameter(n, shape) for n, shape in enumerate(("s16[3]", "s16[2]", "s16[2,3,1]")))
        column = ops.reshape(x, [3, 1, 1])
        outer = ops.dot_general(column, y, DotDimensionNumbers([], []), preferred_element_type="s32")
        dimensions = DotDimensionNumbers([2], [2], [0], [1])
        batch = ops.dot_general(column, z, dimensions, preferred_element_type="s32")
        program = builder.build((outer, batch))
    arrays = [np.arange(n, dtype=np.int16).reshape(dims) - 2 for n, dims in ((3, [3]), (2, [2]), (6, [2, 3, 1]))]
    for got, want in zip(program.compile("cpu")(*arrays), program.evaluate(*arrays, engine="xla"), strict=True):
        np.testing.assert_array_equal(got, want)


def test_factors_may_be_what_a_loop_carries_unchanged() -> None:
    """The carry is lost after conversions were separated: the audit refused the program."""
    with hloforge.Builder("loop") as builder:
        mask, x = builder.parameter(0, "pred[3,3]", "mask"), builder.parameter(1, "f32[3,3]", "x")
        begin = (ops.constant(0, "s32"), x, ops.convert_element_type(mask, "f32"))
        step = ops.while_(lambda c: ops.lt(c[0], 3), lambda c: (c[0] + 1, ops.dot(c[1], c[2]), c[2]), begin)
        program = builder.build(step[1])
    for target in ("cpu", "cuda", "vulkan"):
        lower(program.clone().module, target=target)
    wanted = np.linalg.multi_dot([A, *[MASK.astype(np.float64)] * 3])
    np.testing.assert_allclose(program.compile("cpu")(MASK, A.astype(np.float32)), wanted, rtol=1e-6)
