"""clamp-gather-indices: what a gather without implicit clamping would read, judged by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloforge
from hloforge.dialect.element_types import element_type
from hloforge.dialect.marks import IN_BOUNDS
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.workarounds.clamp_gather_indices import ClampGatherIndices
from tests.engines import interpret

OPERAND = np.arange(300 * 4, dtype=np.int32).reshape(300, 4)


def program(indices: str, setup: str = "", element: str = "i32") -> str:
    return f"""func.func @main(%x: tensor<300x4xi32>, %i: tensor<6x2x{element}>) -> tensor<6x2x3xi32> {{ {setup}
      %r = "stablehlo.gather"(%x, {indices}) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2],
        start_index_map = [1, 0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 3>}}>
        : (tensor<300x4xi32>, tensor<6x2x{element}>) -> tensor<6x2x3xi32>
      return %r : tensor<6x2x3xi32> }}"""


def lowered(text: str) -> Any:
    module = parse_module(text)
    PassManager([ClampGatherIndices()]).run(module)
    assert all(IN_BOUNDS in op.attributes for op in operations(module, {"stablehlo.gather"}))
    return module


@pytest.mark.parametrize("element", ["i32", "i64", "i8", "ui8", "ui32", "ui64", "i16"])
def test_indices_are_clamped_to_the_operand(element: str) -> None:
    row = element_type(element)
    low, high = np.iinfo(row.dtype).min, np.iinfo(row.dtype).max
    indices = np.array([[0, 0], [1, 5], [low, high], [high, low], [2, 120], [3, 1]], row.dtype)
    (result,) = interpret(lowered(program("%i", element=element)), OPERAND, indices)
    for window, (column, line) in zip(result, indices.tolist(), strict=True):
        line, column = min(max(line, 0), 298), min(max(column, 0), 1)
        np.testing.assert_array_equal(window, OPERAND[line : line + 2, column : column + 3])


INSIDE = {
    "constant": "%k = stablehlo.constant dense<[[1, 298], [0, 0], [1, 1], [1, 2], [1, 3], [0, 298]]> : tensor<6x2xi32>",
    "iota": "%p = stablehlo.iota dim = 0 : tensor<6x1xi32> %q = stablehlo.constant dense<0> : tensor<6x1xi32>"
    " %k = stablehlo.concatenate %q, %p, dim = 1 : (tensor<6x1xi32>, tensor<6x1xi32>) -> tensor<6x2xi32>",
    "clamp": "%a = stablehlo.constant dense<0> : tensor<i32> %b = stablehlo.constant dense<1> : tensor<i32>"
    " %k = stablehlo.clamp %a, %i, %b : (tensor<i32>, tensor<6x2xi32>, tensor<i32>) -> tensor<6x2xi32>",
}


@pytest.mark.parametrize("name", INSIDE)
def test_indices_known_to_be_inside_are_left_alone(name: str) -> None:
    text = program("%k", INSIDE[name])
    assert str(lowered(text)).count("clamp") == text.count("clamp")


@pytest.mark.parametrize(
    "setup",
    [
        INSIDE["constant"].replace("[0, 298]]", "[0, 299]]"),
        INSIDE["iota"].replace("concatenate %q, %p", "concatenate %p, %q"),
        INSIDE["clamp"].replace("dense<1>", "dense<2>"),
    ],
)
def test_indices_that_may_be_outside_are_clamped(setup: str) -> None:
    text = program("%k", setup)
    assert str(lowered(text)).count("stablehlo.clamp") == text.count("stablehlo.clamp") + 1


def test_slices_that_all_start_at_0_are_one() -> None:
    """IREE would compute what is gathered from at the one place that is read."""
    text = """func.func @main(%x: tensor<4x1xi32>, %i: tensor<4x1xi32>) -> (tensor<4x1xi32>, tensor<4x1xi32>) {
      %y = stablehlo.add %x, %x : tensor<4x1xi32>
      %r = "stablehlo.gather"(%y, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}>
        : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi32>
      return %y, %r : tensor<4x1xi32>, tensor<4x1xi32> }"""
    assert not operations(lowered(text), {"stablehlo.gather"})
    x, i = np.array([[3], [4], [5], [6]], np.int32), np.array([[7], [0], [-1], [2]], np.int32)
    doubled, gathered = hloforge.compile(text, cache=False)(x, i)
    np.testing.assert_array_equal(doubled, 2 * x)
    np.testing.assert_array_equal(gathered, np.full((4, 1), 6))
    (windows,) = interpret(
        lowered(FIRST_ROWS), np.arange(12, dtype=np.int32).reshape(3, 4), np.ones((2, 5, 1), np.int32)
    )
    np.testing.assert_array_equal(windows, np.broadcast_to(np.arange(4)[:, None, None], (4, 2, 5)))


FIRST_ROWS = """func.func @main(%x: tensor<3x4xi32>, %i: tensor<2x5x1xi32>) -> tensor<4x2x5xi32> {
  %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0],
    collapsed_slice_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>}>
    : (tensor<3x4xi32>, tensor<2x5x1xi32>) -> tensor<4x2x5xi32>
  return %r : tensor<4x2x5xi32> }"""


# Index vectors that are one position after IREE's folds, by what the program computes.
ONE_POSITION = {
    "constant": "%k = stablehlo.constant dense<2> : tensor<4x4x2xi32>",
    "broadcast": """%c = stablehlo.constant dense<[2, 1]> : tensor<2xi32>
      %k = stablehlo.broadcast_in_dim %c, dims = [2] : (tensor<2xi32>) -> tensor<4x4x2xi32>""",
    "clamped": """%z = stablehlo.constant dense<1> : tensor<i32>
      %k = stablehlo.clamp %z, %i, %z : (tensor<i32>, tensor<4x4x2xi32>, tensor<i32>) -> tensor<4x4x2xi32>""",
    "outside": "%k = stablehlo.constant dense<-7> : tensor<4x4x2xi32>",
    "product": """%z = stablehlo.constant dense<0> : tensor<4x4x2xi32>
      %k = stablehlo.multiply %i, %z : tensor<4x4x2xi32>""",
    "difference": "%k = stablehlo.subtract %i, %i : tensor<4x4x2xi32>",
    "masked": """%z = stablehlo.constant dense<0> : tensor<4x4x2xi32>
      %k = stablehlo.and %z, %i : tensor<4x4x2xi32>""",
    "extreme": """%c = stablehlo.constant dense<3> : tensor<4x4x2xi32>
      %d = stablehlo.constant dense<1> : tensor<4x4x2xi32>
      %k = stablehlo.minimum %c, %d : tensor<4x4x2xi32>""",
}


@pytest.mark.parametrize("kind", ONE_POSITION)
def test_indices_of_one_position(kind: str) -> None:
    text = f"""func.func @main(%x: tensor<4x4xi32>, %i: tensor<4x4x2xi32>) -> (tensor<4x4xi32>, tensor<4x4xi32>) {{
      %y = stablehlo.add %x, %x : tensor<4x4xi32>
      {ONE_POSITION[kind]}
      %r = "stablehlo.gather"(%y, %k) <{{dimension_numbers = #stablehlo.gather<offset_dims = [],
        collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>,
        slice_sizes = array<i64: 1, 1>}}>
        : (tensor<4x4xi32>, tensor<4x4x2xi32>) -> tensor<4x4xi32>
      return %y, %r : tensor<4x4xi32>, tensor<4x4xi32> }}"""
    assert not operations(lowered(text), {"stablehlo.gather"})
    x = np.arange(16, dtype=np.int32).reshape(4, 4)
    i = np.random.default_rng(2).integers(-3, 6, (4, 4, 2)).astype(np.int32)
    expected = interpret(parse_module(text), x, i)
    for found, right in zip(hloforge.compile(text, cache=False)(x, i), expected, strict=True):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize(("sizes", "batching", "vector"), [("3x1x2x3", [0, 2], 1), ("1x3x2x3", [1, 2], 0)])
def test_index_vectors_before_batches_become_the_last(sizes: str, batching: list[int], vector: int) -> None:
    """IREE's compiler crashes on them for GPUs."""
    text = f"""func.func @main(%x: tensor<3x2x2x4xf32>, %i: tensor<{sizes}xi32>) -> tensor<3x2x3xf32> {{
      %r = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [],
        collapsed_slice_dims = [2, 3], operand_batching_dims = [0, 1], start_indices_batching_dims = {batching},
        start_index_map = [3], index_vector_dim = {vector}>, slice_sizes = array<i64: 1, 1, 1, 1>}}>
        : (tensor<3x2x2x4xf32>, tensor<{sizes}xi32>) -> tensor<3x2x3xf32>
      return %r : tensor<3x2x3xf32> }}"""
    module = lowered(text)
    (gather,) = operations(module, {"stablehlo.gather"})
    assert "start_indices_batching_dims = [0, 1]" in str(gather)
    assert "index_vector_dim = 3" in str(gather)
    random = np.random.default_rng(3)
    x = random.normal(size=(3, 2, 2, 4)).astype(np.float32)
    i = random.integers(-2, 6, [int(size) for size in sizes.split("x")]).astype(np.int32)
    (expected,) = interpret(parse_module(text), x, i)
    np.testing.assert_array_equal(interpret(module, x, i)[0], expected)
    np.testing.assert_array_equal(hloforge.compile(text, cache=False)(x, i), expected)
    for target in ("vulkan", "cuda:sm_80"):
        assert hloforge.compile(text, target, cache=False).vmfb
