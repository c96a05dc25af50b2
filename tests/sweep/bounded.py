"""Operations on five rows, of which an argument says how many count: bounded sizes. numpy tells the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.sweep.case import Array

# [<=5, 4], of the first n rows of x.
_TYPE = "tensor<?x4xf32, #stablehlo.bounds<5, ?>>"
_ROWS = "tensor<?xf32, #stablehlo.bounds<5>>"
_MOST = "tensor<?x4xf32, #stablehlo.bounds<10, ?>>"
_PROGRAM = f"""func.func @main(%x: tensor<5x4xf32>, %n: tensor<i32>) -> RESULT {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %places = stablehlo.constant dense<[0, 9]> : tensor<2xi32>
  %b = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<5x4xf32>, tensor<i32>) -> {_TYPE}
  BODY
  return %r : RESULT }}"""


def _reduction(operation: str, initial: str, dimensions: str, result: str) -> tuple[str, str]:
    text = f"""%r = stablehlo.reduce(%b init: {initial}) applies stablehlo.{operation} across dimensions = {dimensions}
      : ({_TYPE}, tensor<f32>) -> {result}"""
    return text, result


def _elementwise(name: str, operands: str = "%b") -> tuple[str, str]:
    return f"%r = stablehlo.{name} {operands} : {_TYPE}", _TYPE


def _window(size: str, padding: str) -> tuple[str, str]:
    text = f"""%r = "stablehlo.reduce_window"(%b, %zero) <{{window_dimensions = array<i64: {size}>,
        padding = dense<{padding}> : tensor<2x2xi64>}}> ({{
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %s : tensor<f32> }}) : ({_TYPE}, tensor<f32>) -> {_TYPE}"""
    return text, _TYPE


def _sort(dimension: int) -> tuple[str, str]:
    text = f"""%r = "stablehlo.sort"(%b) <{{dimension = {dimension} : i64, is_stable = true}}> ({{
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %c = stablehlo.compare LT, %p, %q, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1> }}) : ({_TYPE}) -> {_TYPE}"""
    return text, _TYPE


def _typed(text: str, result: str) -> tuple[str, str]:
    return f"%r = stablehlo.{text} -> {result}", result


def _of_rows(dims: str, bounds: str) -> str:
    return f"tensor<{dims}xf32, #stablehlo.bounds<{bounds}>>"


_GATHER = f"""%r = "stablehlo.gather"(%b, %places) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}}>
  : ({_TYPE}, tensor<2xi32>) -> tensor<2x4xf32>"""
_SCATTER = f"""%u = stablehlo.constant dense<1.0> : tensor<2x4xf32>
  %r = "stablehlo.scatter"(%b, %places, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>}}> ({{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32> }}) : ({_TYPE}, tensor<2xi32>, tensor<2x4xf32>) -> {_TYPE}"""
_LOOP = f"""%w:2 = stablehlo.while(%i = %one, %c = %b) : tensor<i32>, {_TYPE}
    cond {{
      %l = stablehlo.compare LE, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    }} do {{
      %j = stablehlo.add %i, %one : tensor<i32>
      %d = stablehlo.add %c, %c : {_TYPE}
      stablehlo.return %j, %d : tensor<i32>, {_TYPE}
    }}
  %r = stablehlo.abs %w#1 : {_TYPE}"""
_UPDATE = f"""%u = stablehlo.constant dense<9.0> : tensor<1x2xf32>
  %r = stablehlo.dynamic_update_slice %b, %u, %one, %one
    : ({_TYPE}, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> {_TYPE}"""
_WHOLE = f"""%five = stablehlo.constant dense<5> : tensor<i32>
  %e = stablehlo.exponential %b : {_TYPE}
  %w = stablehlo.set_dimension_size %e, %five, dim = 0 : ({_TYPE}, tensor<i32>) -> tensor<5x4xf32>
  %r = stablehlo.slice %w [0:1, 0:4] : (tensor<5x4xf32>) -> tensor<1x4xf32>"""


def _updated(x: Array) -> Array:
    result = x.copy()
    result[min(1, len(x) - 1), 1:3] = 9
    return result


def _incremented(x: Array) -> Array:
    return x + (np.arange(len(x)) == 0)[:, None].astype(x.dtype)


def _neighbours(x: Array) -> Array:
    wide = np.pad(x, ((1, 1), (0, 0)))
    return wide[:-2] + x + wide[2:]


# What makes %r of %b, the type of %r, and what numpy makes of the rows.
_TABLE: dict[str, tuple[tuple[str, str], Callable[[Array], Any]]] = {
    "sum_of_rows": (_reduction("add", "%zero", "[0]", "tensor<4xf32>"), lambda x: x.sum(0)),
    "sum_in_rows": (_reduction("add", "%zero", "[1]", _ROWS), lambda x: x.sum(1)),
    "sum": (_reduction("add", "%zero", "[0, 1]", "tensor<f32>"), lambda x: x.sum()),
    "maximum": (_reduction("maximum", "%least", "[0]", "tensor<4xf32>"), lambda x: x.max(0, initial=-np.inf)),
    "exponential": (_elementwise("exponential"), np.exp),
    "cosine": (_elementwise("cosine"), np.cos),
    "negate": (_elementwise("negate"), np.negative),
    "multiply": (_elementwise("multiply", "%b, %b"), np.square),
    "reverse": (_elementwise("reverse", "%b, dims = [0, 1]"), lambda x: x[::-1, ::-1]),
    "transpose": (
        _typed(f"transpose %b, dims = [1, 0] : ({_TYPE})", _of_rows("4x?", "?, 5")),
        lambda x: x.T,
    ),
    "concatenate": (
        _typed(f"concatenate %b, %b, dim = 0 : ({_TYPE}, {_TYPE})", _MOST),
        lambda x: np.concatenate([x, x]),
    ),
    "slice": (_typed(f"slice %b [0:5, 1:3] : ({_TYPE})", _of_rows("?x2", "5, ?")), lambda x: x[:, 1:3]),
    "pad": (
        _typed(
            f"pad %b, %zero, low = [1, 0], high = [0, 2], interior = [0, 0] : ({_TYPE}, tensor<f32>)",
            _of_rows("?x6", "6, ?"),
        ),
        lambda x: np.pad(x, ((1, 0), (0, 2))),
    ),
    "dot_over_rows": (
        _typed(f"dot_general %b, %b, contracting_dims = [0] x [0] : ({_TYPE}, {_TYPE})", "tensor<4x4xf32>"),
        lambda x: x.T @ x,
    ),
    "dot_of_rows": (
        _typed(f"dot_general %b, %b, contracting_dims = [1] x [1] : ({_TYPE}, {_TYPE})", _of_rows("?x?", "5, 5")),
        lambda x: x @ x.T,
    ),
    "convert": (
        _typed(f"convert %b : ({_TYPE})", "tensor<?x4xi32, #stablehlo.bounds<5, ?>>"),
        lambda x: x.astype(np.int32),
    ),
    "size": (_typed(f"get_dimension_size %b, dim = 0 : ({_TYPE})", "tensor<i32>"), lambda x: np.int32(len(x))),
    "columns_as_well": (
        _typed(f"set_dimension_size %b, %two, dim = 1 : ({_TYPE}, tensor<i32>)", _of_rows("?x?", "5, 4")),
        lambda x: x[:, :2],
    ),
    "broadcast": (
        _typed(f"broadcast_in_dim %b, dims = [1, 2] : ({_TYPE})", _of_rows("3x?x4", "?, 5, ?")),
        lambda x: np.broadcast_to(x, (3, *x.shape)),
    ),
    "reshape": (_typed(f"reshape %b : ({_TYPE})", _of_rows("?", "20")), np.ravel),
    "sort_rows": (_sort(0), lambda x: np.sort(x, 0)),
    "sort_in_rows": (_sort(1), lambda x: np.sort(x, 1)),
    "running_sum": (_window("1, 4", "[[0, 0], [3, 0]]"), lambda x: np.cumsum(x, 1)),
    "sum_of_neighbours": (_window("3, 1", "[[1, 1], [0, 0]]"), _neighbours),
    "gather": ((_GATHER, "tensor<2x4xf32>"), lambda x: x[[0, -1]]),
    "scatter": ((_SCATTER, _TYPE), _incremented),
    "update": ((_UPDATE, _TYPE), _updated),
    "loop": ((_LOOP, _TYPE), lambda x: abs(4 * x)),
    "whole_again": ((_WHOLE, "tensor<1x4xf32>"), lambda x: np.exp(x[:1])),
}


def program(name: str) -> str:
    """The program of a row."""
    (body, result), _ = _TABLE[name]
    return _PROGRAM.replace("RESULT", result).replace("BODY", body)


def expected(name: str, x: Array, rows: int) -> Array:
    """What it makes of ``x`` if ``rows`` rows count."""
    function = _TABLE[name][1]
    return np.asarray(function(x[:rows]))


NAMES = tuple(_TABLE)
