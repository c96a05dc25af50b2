from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from hloforge.dialect.errors import ReferenceEngineError
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import Program, Signature
from hloforge.runtime.data.plausible_inputs import plausible_inputs
from hloforge.runtime.reference.correctness import judge
from hloforge.runtime.reference.engines import ReferenceEngine, reference
from hloforge.runtime.reference.precision import machine_epsilons


def program(text: str) -> Program:
    module = parse_module(text)
    return Program(module, Signature.of(module), "test", "<string>")


@pytest.fixture(scope="module")
def xla() -> Iterator[ReferenceEngine]:
    engine = reference("xla", isolated=False)
    yield engine


# (x + 256) - 256 in bf16: the rounding that the program asks for costs x most of its digits.
_ROUNDED = """func.func @main(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %c = stablehlo.constant dense<2.560000e+02> : tensor<64xbf16>
  %0 = stablehlo.add %x, %c : tensor<64xbf16>
  %1 = stablehlo.subtract %0, %c : tensor<64xbf16>
  %2 = stablehlo.reduce_precision %1, format = e8m7 : tensor<64xbf16>
  return %2 : tensor<64xbf16> }"""


def test_the_program_in_float64_keeps_what_narrow_types_lose(xla: ReferenceEngine) -> None:
    x = np.linspace(-1, 1, 64).astype(ml_dtypes.bfloat16)
    truth = xla.prepare(program(_ROUNDED), float64=True)(x)
    assert truth.dtype == np.float64
    np.testing.assert_array_equal(truth, x.astype(np.float64))


def test_loops_reductions_and_complex_numbers_widen(xla: ReferenceEngine) -> None:
    text = """func.func @main(%x: tensor<3xf32>, %z: tensor<2xcomplex<f32>>)
        -> (tensor<f32>, tensor<2xcomplex<f32>>, tensor<i32>) {
      %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %n = stablehlo.constant dense<0> : tensor<i32>
      %end = stablehlo.constant dense<4> : tensor<i32>
      %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
      %r:2 = stablehlo.while(%i = %n, %a = %sum) : tensor<i32>, tensor<f32>
        cond { %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
               stablehlo.return %c : tensor<i1> }
        do { %j = stablehlo.add %i, %one : tensor<i32>
             %b = stablehlo.divide %a, %sum : tensor<f32>
             stablehlo.return %j, %b : tensor<i32>, tensor<f32> }
      %w = stablehlo.multiply %z, %z : tensor<2xcomplex<f32>>
      return %r#1, %w, %r#0 : tensor<f32>, tensor<2xcomplex<f32>>, tensor<i32> }"""
    x, z = np.array([0.1, 0.2, 0.4], np.float32), np.array([1 + 1j, 0.1j], np.complex64)
    total, squares, count = xla.prepare(program(text), float64=True)(x, z)
    s = x.astype(np.float64).sum()
    np.testing.assert_allclose(total, s / s**4, rtol=1e-14)
    np.testing.assert_allclose(squares, z.astype(np.complex128) ** 2, rtol=1e-14)
    assert count == 4 and count.dtype == np.int32 and squares.dtype == np.complex128


def test_composites_widen_by_what_they_stand_for(xla: ReferenceEngine) -> None:
    text = """func.func @main(%x: tensor<bf16>) -> tensor<bf16> {
      %0 = stablehlo.composite "a.square" %x {decomposition = @body} : (tensor<bf16>) -> tensor<bf16>
      return %0 : tensor<bf16> }
    func.func private @body(%x: tensor<bf16>) -> tensor<bf16> {
      %0 = stablehlo.multiply %x, %x : tensor<bf16>
      return %0 : tensor<bf16> }"""
    x = np.array(1 + 2**-7, ml_dtypes.bfloat16)
    assert xla.prepare(program(text), float64=True)(x) == (1 + 2**-7) ** 2


def test_what_depends_on_the_width_is_not_widened(xla: ReferenceEngine) -> None:
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xi32> {
      %0 = stablehlo.bitcast_convert %x : (tensor<2xf32>) -> tensor<2xi32>
      return %0 : tensor<2xi32> }"""
    with pytest.raises(ReferenceEngineError, match="bitcast_convert cannot be widened"):
        xla.prepare(program(text), float64=True)


def test_results_beside_those_that_depend_on_the_width_are_widened(xla: ReferenceEngine) -> None:
    text = """func.func @main(%x: tensor<2xf32>) -> (tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) {
      %0 = stablehlo.bitcast_convert %x : (tensor<2xf32>) -> tensor<2xi32>
      %1 = stablehlo.multiply %x, %x : tensor<2xf32>
      %2 = stablehlo.bitcast_convert %0 : (tensor<2xi32>) -> tensor<2xf32>
      return %0, %1, %2 : tensor<2xi32>, tensor<2xf32>, tensor<2xf32> }"""
    x = np.array([0.1, -3], np.float32)
    with pytest.raises(ReferenceEngineError, match="bitcast_convert cannot be widened"):
        xla.prepare(program(text), float64=True)
    _, squares, unknown = xla.prepare(program(text), float64=True, partly=True)(x)
    np.testing.assert_array_equal(squares, x.astype(np.float64) ** 2)
    assert np.isnan(unknown).all()
    assert judge(xla, program(text), [x], (x.view(np.int32), x * x, x))
    # What is not known is no opinion: neither NaN nor another number passes by it.
    assert not judge(xla, program(text), [x], (x.view(np.int32), x * x, np.full(2, np.nan, np.float32)))
    assert not judge(xla, program(text), [x], (x.view(np.int32), x * x, 2 * x))


def test_floats_that_are_made_of_bits_are_widened_after_it(xla: ReferenceEngine) -> None:
    text = """func.func @main(%n: tensor<3xui16>) -> tensor<3xbf16> {
      %0 = stablehlo.bitcast_convert %n : (tensor<3xui16>) -> tensor<3xbf16>
      %1 = stablehlo.multiply %0, %0 : tensor<3xbf16>
      return %1 : tensor<3xbf16> }"""
    x = np.array([0.1, -3, 7.7], ml_dtypes.bfloat16)
    truth = xla.prepare(program(text), float64=True)(x.view(np.uint16))
    np.testing.assert_array_equal(truth, x.astype(np.float64) ** 2)


@pytest.mark.parametrize(("float_", "letter"), [("f64", "d"), ("f32", "s"), ("complex<f32>", "c")])
def test_calls_of_lapack_are_those_of_float64(xla: ReferenceEngine, float_: str, letter: str) -> None:
    text = f"""func.func @main(%x: tensor<2x2x{float_}>, %y: tensor<bf16>) -> (tensor<2x2x{float_}>, tensor<bf16>) {{
      %0, %info = stablehlo.custom_call @lapack_{letter}potrf_ffi(%x) {{
        mhlo.backend_config = {{uplo = 76 : ui8}}, api_version = 4 : i32,
        operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
        result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]
      }} : (tensor<2x2x{float_}>) -> (tensor<2x2x{float_}>, tensor<i32>)
      %1 = stablehlo.multiply %y, %y : tensor<bf16>
      return %0, %1 : tensor<2x2x{float_}>, tensor<bf16> }}"""
    dtype = {"d": np.float64, "s": np.float32, "c": np.complex64}[letter]
    x, y = np.array([[4, 2], [2, 3]], dtype), np.array(1 + 2**-7, ml_dtypes.bfloat16)
    factor, square = xla.prepare(program(text), float64=True)(x, y)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(x.astype(np.complex128)), rtol=1e-15)
    assert square == (1 + 2**-7) ** 2


def test_other_calls_are_not_widened(xla: ReferenceEngine) -> None:
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @mine(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32> }"""
    with pytest.raises(ReferenceEngineError, match="custom_call cannot be widened"):
        xla.prepare(program(text), float64=True)


def test_quantized_types_name_their_float_and_are_not_widened(xla: ReferenceEngine) -> None:
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 5.0e-01:1>>
      %1 = stablehlo.uniform_dequantize %0 : (tensor<2x!quant.uniform<i8:f32, 5.0e-01:1>>) -> tensor<2xf32>
      return %1 : tensor<2xf32> }"""
    with pytest.raises(ReferenceEngineError, match="uniform_quantize cannot be widened"):
        xla.prepare(program(text), float64=True)


def test_bits_of_integers_do_not_depend_on_the_width_of_floats(xla: ReferenceEngine) -> None:
    text = """func.func @main(%n: tensor<2xi32>, %x: tensor<2xf32>) -> (tensor<2x4xui8>, tensor<2xf32>) {
      %0 = stablehlo.bitcast_convert %n : (tensor<2xi32>) -> tensor<2x4xui8>
      %1 = stablehlo.add %x, %x : tensor<2xf32>
      return %0, %1 : tensor<2x4xui8>, tensor<2xf32> }"""
    n = np.array([1, -2], np.int32)
    octets, doubled = xla.prepare(program(text), float64=True)(n, np.array([0.1, 3], np.float32))
    np.testing.assert_array_equal(octets, n.view(np.uint8).reshape(2, 4))
    np.testing.assert_array_equal(doubled, 2 * np.array([0.1, 3], np.float32).astype(np.float64))


# A sum of many alternating terms: engines differ by the order, and none is right to the last digit.
_SUM = """func.func @main(%x: tensor<4096x64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<4096x64xf32>, tensor<f32>) -> tensor<64xf32>
  return %0 : tensor<64xf32> }"""


def _cancelling() -> np.ndarray:
    values = np.random.default_rng(0).standard_normal((2048, 64)).astype(np.float32) * 1000
    return np.concatenate([values, -values[::-1] + np.float32(1e-3)])


def test_a_result_nearer_to_the_truth_than_the_reference_agrees(xla: ReferenceEngine) -> None:
    x = _cancelling()
    exact = x.astype(np.float64).sum(axis=0).astype(np.float32)
    report = judge(xla, program(_SUM), [x], exact)
    assert report.agrees and "float64" in report.text()


def test_a_result_further_from_the_truth_does_not(xla: ReferenceEngine) -> None:
    x = _cancelling()
    reference_result = xla.prepare(program(_SUM))(x)
    exact = x.astype(np.float64).sum(axis=0)
    worse = (exact + 4 * (reference_result - exact)).astype(np.float32)
    assert not judge(xla, program(_SUM), [x], worse)
    assert not judge(xla, program(_SUM), [x], np.full(64, np.nan, np.float32))


def test_a_tolerance_of_the_callers_is_kept_to_the_letter(xla: ReferenceEngine) -> None:
    x = _cancelling()
    exact = x.astype(np.float64).sum(axis=0).astype(np.float32)
    assert not judge(xla, program(_SUM), [x], exact, tolerance=1e-6)


def test_integers_get_no_second_opinion(xla: ReferenceEngine) -> None:
    text = "func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> { return %x : tensor<2xi32> }"
    assert not judge(xla, program(text), [np.array([1, 2], np.int32)], np.array([1, 3], np.int32))


def test_plausible_inputs_keep_a_deep_network_finite(xla: ReferenceEngine) -> None:
    layers = 30
    weights = ", ".join(f"%w{i}: tensor<64x64xf32>" for i in range(layers))
    body = ["%h0 = stablehlo.add %x, %x : tensor<8x64xf32>"]
    for i in range(layers):
        body += [
            f"%d{i} = stablehlo.dot_general %h{i}, %w{i}, contracting_dims = [1] x [0]"
            " : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>",
            f"%h{i + 1} = stablehlo.multiply %d{i}, %s : tensor<8x64xf32>",
        ]
    text = (
        f"func.func @main(%x: tensor<8x64xf32>, %variance: tensor<64xf32>, {weights}) -> tensor<8x64xf32> {{"
        "%e = stablehlo.constant dense<1.000000e-03> : tensor<64xf32>"
        "%v = stablehlo.add %variance, %e : tensor<64xf32>"
        "%b = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<64xf32>) -> tensor<8x64xf32>"
        "%s = stablehlo.rsqrt %b : tensor<8x64xf32>" + "\n".join(body) + f"return %h{layers} : tensor<8x64xf32> }}"
    )
    deep = program(text)
    arguments = plausible_inputs(deep, 3)
    assert arguments[1].min() >= 0.5 and arguments[2].min() < 0
    result = xla.prepare(deep)(*arguments)
    assert np.isfinite(result).all() and 1e-6 < np.abs(result).max() < 1e6


def test_plausible_variances_of_batch_norm_are_positive() -> None:
    row = "tensor<64xf32>"
    norm = program(
        f"func.func @main(%x: tensor<8x64xf32>, %scale: {row}, %offset: {row}, %mean: {row}, %variance: {row})"
        ' -> tensor<8x64xf32> {%y = "stablehlo.batch_norm_inference"(%x, %scale, %offset, %mean, %variance)'
        " {epsilon = 1.0e-3 : f32, feature_index = 1 : i64}"
        f" : (tensor<8x64xf32>, {row}, {row}, {row}, {row}) -> tensor<8x64xf32> return %y : tensor<8x64xf32>}}"
    )
    arguments = plausible_inputs(norm)
    assert [array.min() > 0 for array in arguments] == [False, False, False, False, True]


def test_a_wide_result_is_as_exact_as_what_it_is_made_of(xla: ReferenceEngine) -> None:
    """Engines sum in f32 in any order; a product in f64 after it is held to f64's digits where it is all there is."""
    text = """func.func @main(%x: tensor<100xf32>, %y: tensor<f64>) -> (tensor<f64>, tensor<f64>) {
      %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<100xf32>, tensor<f32>) -> tensor<f32>
      %wide = stablehlo.convert %sum : (tensor<f32>) -> tensor<f64>
      %product = stablehlo.multiply %wide, %y : tensor<f64>
      %square = stablehlo.multiply %y, %y : tensor<f64>
      return %product, %square : tensor<f64>, tensor<f64> }"""
    x, y = np.full(100, 0.25, np.float32), np.float64(3)  # which XLA sums without an error
    step = 75 * 2.0**-23
    assert judge(xla, program(text), [x, y], (np.float64(75 + 0.9 * step), np.float64(9)))
    assert not judge(xla, program(text), [x, y], (np.float64(75 + 1.1 * step), np.float64(9)))
    assert not judge(xla, program(text), [x, y], (np.float64(75), np.float64(9 + 9 * 2.0**-23)))


def test_the_narrowest_float_of_a_result_is_found_in_functions_and_loops() -> None:
    text = """func.func @main(%x: tensor<f32>, %h: tensor<f16>)
        -> (tensor<f64>, tensor<f64>, tensor<f64>, tensor<f32>) {
      %end = stablehlo.constant dense<4> : tensor<i32>
      %n = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %called = func.call @halves(%x) : (tensor<f32>) -> tensor<f32>
      %0 = stablehlo.convert %called : (tensor<f32>) -> tensor<f64>
      %r:2 = stablehlo.while(%i = %n, %a = %x) : tensor<i32>, tensor<f32>
        cond { %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
               stablehlo.return %c : tensor<i1> }
        do { %j = stablehlo.add %i, %one : tensor<i32>
             %b = stablehlo.multiply %a, %a : tensor<f32>
             stablehlo.return %j, %b : tensor<i32>, tensor<f32> }
      %1 = stablehlo.convert %r#1 : (tensor<f32>) -> tensor<f64>
      %2 = stablehlo.convert %h : (tensor<f16>) -> tensor<f64>
      %3 = stablehlo.negate %x : tensor<f32>
      return %0, %1, %2, %3 : tensor<f64>, tensor<f64>, tensor<f64>, tensor<f32> }
    func.func private @halves(%x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.convert %x : (tensor<f32>) -> tensor<f16>
      %1 = stablehlo.convert %0 : (tensor<f16>) -> tensor<f32>
      return %1 : tensor<f32> }"""
    assert machine_epsilons(program(text)) == [2.0**-10, 2.0**-23, 0.0, 0.0]
