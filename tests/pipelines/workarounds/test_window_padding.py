"""legalize-window-padding: windows over unsigned integers with padding, negative padding and base dilation,
and convolutions and reductions with one window that does not reach the end of the image."""

from __future__ import annotations

import numpy as np
import pytest

import hloforge
from hloforge import ops
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.workarounds.window_padding import LegalizeWindowPadding
from tests.engines import interpret

TEXT = """func.func @main(%x: tensor<5x7x{t}>) -> (tensor<{r}x{t}>, tensor<{r}x{t}>) {{
  %c = stablehlo.constant dense<1> : tensor<{t}>
  %z = stablehlo.constant dense<0> : tensor<{t}>
  %0:2 = "stablehlo.reduce_window"(%x, %x, %c, %z) <{{base_dilations = array<i64: 1, 2>,
      padding = dense<[[-1, 2], [3, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 3>,
      window_strides = array<i64: 1, 2>}}> ({{
    ^bb0(%a: tensor<{t}>, %b: tensor<{t}>, %d: tensor<{t}>, %e: tensor<{t}>):
      %1 = stablehlo.multiply %a, %d : tensor<{t}>
      %2 = stablehlo.maximum %b, %e : tensor<{t}>
      stablehlo.return %1, %2 : tensor<{t}>, tensor<{t}>
  }}) : (tensor<5x7x{t}>, tensor<5x7x{t}>, tensor<{t}>, tensor<{t}>) -> (tensor<{r}x{t}>, tensor<{r}x{t}>)
  return %0#0, %0#1 : tensor<{r}x{t}>, tensor<{r}x{t}>
}}"""


@pytest.mark.parametrize("element", ["ui8", "ui32"])
def test_padded_windows(element: str) -> None:
    text = TEXT.format(t=element, r="5x7")
    x = np.random.default_rng(0).integers(0, 200, (5, 7)).astype(f"u{int(element[2:]) // 8}")
    module = parse_module(text)
    LegalizeWindowPadding().run(module)
    assert "padding" not in str(module)
    for result, want in zip(interpret(module, x), interpret(text, x), strict=True):
        np.testing.assert_array_equal(result, want)


def test_compiled_running_sums() -> None:
    with hloforge.Builder("sums") as builder:
        x = builder.parameter(0, "u16[4,9]", "x")
        padded = ops.reduce_window(x, 0, ops.add, [1, 9], padding=[(0, 0), (8, 0)])
        program = builder.build(padded)
    x = np.arange(36, dtype=np.uint16).reshape(4, 9)
    np.testing.assert_array_equal(program.compile("cpu")(x), np.cumsum(x, 1, dtype=np.uint16))


def test_running_products_of_wide_complex_numbers() -> None:
    """In both directions, each of which IREE would pad with the same fill of 64 bits, and write into it."""
    with hloforge.Builder("products") as builder:
        x = builder.parameter(0, "c128[5,7]", "x")
        both = [ops.reduce_window(x, 1, ops.mul, [1, 7], padding=[(0, 0), edges]) for edges in ((6, 0), (0, 6))]
        program = builder.build(ops.tuple(both))
    generator = np.random.default_rng(3)
    x = generator.normal(size=(5, 7)) + 1j * generator.normal(size=(5, 7))
    forward, backward = program.compile("cpu")(x)
    np.testing.assert_allclose(forward, np.cumprod(x, 1), rtol=1e-12)
    np.testing.assert_allclose(backward, np.cumprod(x[:, ::-1], 1)[:, ::-1], rtol=1e-12)


# One window of 7 in 8 places, also of 6 in 7 (a dilated image), beside two windows of 3, 4 apart, in 9.
ONE_WINDOW = """func.func @main(%x: tensor<1x3x2x2xf32>, %k: tensor<4x3x7x7xf32>,
    %y: tensor<2x2x4x9xf32>, %l: tensor<4x1x6x3xf32>) -> (tensor<1x4x1x1xf64>, tensor<2x4x1x2xf32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {stride = [2, 2], pad = [[3, 3], [3, 3]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x3x2x2xf32>, tensor<4x3x7x7xf32>) -> tensor<1x4x1x1xf64>
  %1 = stablehlo.convolution(%y, %l) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {stride = [2, 4], lhs_dilate = [2, 1]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
      : (tensor<2x2x4x9xf32>, tensor<4x1x6x3xf32>) -> tensor<2x4x1x2xf32>
  return %0, %1 : tensor<1x4x1x1xf64>, tensor<2x4x1x2xf32>
}"""


def test_one_window_that_leaves_edges_out() -> None:
    random = np.random.default_rng(1)
    sizes = ((1, 3, 2, 2), (4, 3, 7, 7), (2, 2, 4, 9), (4, 1, 6, 3))
    inputs = [random.standard_normal(size).astype(np.float32) for size in sizes]
    results = hloforge.compile(ONE_WINDOW).load()(*inputs)
    for result, want in zip(results, interpret(ONE_WINDOW, *inputs), strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-5)


def test_reductions_of_one_window_that_leaves_edges_out() -> None:
    with hloforge.Builder("windows") as builder:
        x = builder.parameter(0, "f32[2,3,4,4]", "x")
        steps = {"window_strides": [1, 2, 2, 2]}
        program = builder.build(
            (
                ops.reduce_window(x, 0.0, ops.add, [1, 2, 2, 2], **steps),
                ops.reduce_window(x, 0.0, ops.max, [1, 2, 2, 3], **steps, padding=[(0, 0), (0, 0), (0, 0), (1, 2)]),
                ops.reduce_window(x, 0.0, ops.add, [1, 3, 3, 3], **steps, base_dilations=[1, 2, 1, 1]),
            )
        )
    x = np.random.default_rng(2).standard_normal((2, 3, 4, 4)).astype(np.float32)
    for result, want in zip(program.compile("cpu")(x), interpret(str(program.module), x), strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-5)


def test_padded_windows_of_booleans() -> None:
    x = np.array([True, False, True, True, True])
    with hloforge.Builder("logic") as builder:
        mask = builder.parameter(0, "pred[5]")
        kinds = ((ops.and_, True), (ops.or_, False), (ops.xor, False))
        program = builder.build(tuple(ops.reduce_window(mask, one, logic, [3], [], [(0, 2)]) for logic, one in kinds))
    for got, want in zip(program.compile("cpu")(x), program.evaluate(x, engine="xla"), strict=True):
        np.testing.assert_array_equal(got, want)


def test_running_sums_start_from_their_initial_value() -> None:
    """IREE made scans of them, without it."""
    with hloforge.Builder("running") as builder:
        x, init = builder.parameter(0, "f32[2,6]"), builder.parameter(1, "f32[]")
        counts = builder.parameter(2, "s32[6]")
        before, behind = [(0, 0), (5, 0)], [(0, 0), (0, 5)]
        found = (
            ops.reduce_window(x, init, ops.add, [1, 6], [], before),
            ops.reduce_window(x, init, ops.max, [1, 6], [], behind),
            ops.reduce_window(counts, 7, ops.add, [6], [], [(5, 0)]),
            ops.reduce_window(counts, 0, ops.add, [6], [], [(0, 5)]),
        )
        program = builder.build(found)
    inputs = (np.linspace(-1, 2, 12, dtype=np.float32).reshape(2, 6), np.float32(1.5), np.arange(6, dtype=np.int32))
    for result, want in zip(program.compile("cpu")(*inputs), program.evaluate(*inputs, engine="xla"), strict=True):
        np.testing.assert_allclose(result, want, rtol=1e-6)


@pytest.mark.parametrize("along", [0, 2, 4])
def test_running_sums_of_five_dimensions_have_three(along: int) -> None:
    dims, window, edges = [2, 3, 3, 1, 4], [1] * 5, [(0, 0)] * 5
    window[along], edges[along] = dims[along], (0, dims[along] - 1)
    with hloforge.Builder("running") as builder:
        x = builder.parameter(0, f"f64[{','.join(map(str, dims))}]")
        program = builder.build(ops.reduce_window(x, 0.0, ops.add, window, [], edges))
    x = np.random.default_rng(0).standard_normal(dims)
    module = program.module
    PassManager([LegalizeWindowPadding()]).run(module)
    (scan,) = operations(module, {"stablehlo.reduce_window"})
    assert len(scan.operands[0].type.shape) == 3
    np.testing.assert_allclose(interpret(module, x)[0], np.flip(np.cumsum(np.flip(x, along), along), along))


@pytest.mark.parametrize("edges", [(2, 3), (3, 2)])
def test_windows_that_are_no_running_sums(edges: tuple[int, int]) -> None:
    """IREE takes windows as long as their dimension for running sums where one side is padded as for these."""
    with hloforge.Builder("windows") as builder:
        x = builder.parameter(0, "f32[3]")
        program = builder.build(ops.reduce_window(x, 0.0, ops.add, [3], [1], [edges]))
    x = np.array([1, 10, 100], np.float32)
    padded = np.pad(x, edges)
    np.testing.assert_array_equal(program.compile()(x), [padded[place : place + 3].sum() for place in range(6)])


@pytest.mark.parametrize("returned", ["%m, %n", "%d, %b"])
def test_windows_of_nothing_have_initial_values(returned: str) -> None:
    """IREE takes them for windows of another size: ``edges`` 920072."""
    text = f"""
    func.func @main(%x: tensor<16x0xi8>, %y: tensor<16x0xi8>, %c: tensor<i8>, %k: tensor<i8>)
        -> (tensor<5x1xi8>, tensor<5x1xi8>) {{
      %0:2 = "stablehlo.reduce_window"(%x, %y, %c, %k) <{{padding = dense<[[0, -1], [1, 2]]> : tensor<2x2xi64>,
          window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 3, 2>}}> ({{
      ^bb0(%a: tensor<i8>, %b: tensor<i8>, %d: tensor<i8>, %e: tensor<i8>):
        %m = stablehlo.add %a, %d : tensor<i8>
        %n = stablehlo.minimum %b, %e : tensor<i8>
        stablehlo.return {returned} : tensor<i8>, tensor<i8>
      }}) : (tensor<16x0xi8>, tensor<16x0xi8>, tensor<i8>, tensor<i8>) -> (tensor<5x1xi8>, tensor<5x1xi8>)
      return %0#0, %0#1 : tensor<5x1xi8>, tensor<5x1xi8>
    }}"""
    given = (np.zeros((16, 0), np.int8), np.zeros((16, 0), np.int8), np.int8(3), np.int8(-5))
    wanted = interpret(text, *given)
    module = parse_module(text)
    PassManager([LegalizeWindowPadding()]).run(module)
    assert "reduce_window" not in str(module)
    for found, expected in zip(interpret(module, *given), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)
    for target in ("vulkan", "cuda:sm_80"):
        assert hloforge.compile(text, target=target, cache=False).vmfb
