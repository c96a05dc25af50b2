"""Collectives of arrays that are large enough to be made in parts, in one program; for threads and for processes."""

from __future__ import annotations

import numpy as np

from hloforge.pipelines.replicas.in_parts import LARGE

# Divisible by groups of 2 and 3 members; its rows by neither.
ROWS, COLUMNS = 6, LARGE // 6 + 2
MEMBERS = 3


def _region(name: str, element: str) -> str:
    return f"""({{
^bb0(%p: tensor<{element}>, %q: tensor<{element}>):
  %s = stablehlo.{name} %p, %q : tensor<{element}>
  stablehlo.return %s : tensor<{element}>
}})"""


def _reduction(result: str, operand: str, name: str, element: str, sizes: str, more: str = "") -> str:
    kind, size = ("reduce_scatter", "2x" + sizes.split("x")[1]) if more else ("all_reduce", sizes)
    types = f"(tensor<{sizes}x{element}>) -> tensor<{size}x{element}>"
    return f'%{result} = "stablehlo.{kind}"(%{operand}) {_region(name, element)} {{{_GROUPS}{more}}} : {types}'


_GROUPS = "replica_groups = dense<[[2, 0, 1]]> : tensor<1x3xi64>"
_SCATTER = ", scatter_dimension = 0 : i64"
_SIZES = f"{ROWS}x{COLUMNS}"
_FLOATS, _INTEGERS, _NARROW, _BOOLEANS = (f"tensor<{_SIZES}x{element}>" for element in ("f32", "i32", "bf16", "i1"))
# Those that carriers compute, those that they do not, and those that only move; of odd sizes too.
_RESULTS = {
    "sum": _FLOATS,
    "product": _INTEGERS,
    "least": _INTEGERS,
    "any": _BOOLEANS,
    "largest": _FLOATS,
    "narrow": _NARROW,
    "odd": f"tensor<{ROWS * COLUMNS - 1}xf32>",
    "block": f"tensor<2x{COLUMNS}xf32>",
    "largest_block": f"tensor<2x{COLUMNS}xf32>",
    "gathered": f"tensor<{ROWS}x{MEMBERS * COLUMNS}xi1>",
    "exchanged": f"tensor<2x{MEMBERS * COLUMNS}xi32>",
}
PROGRAM = f"""func.func @main(%x: {_FLOATS}, %n: {_INTEGERS}) -> ({", ".join(_RESULTS.values())}) {{
  %zero = stablehlo.constant dense<0> : {_INTEGERS}
  %b = stablehlo.compare GT, %n, %zero : ({_INTEGERS}, {_INTEGERS}) -> {_BOOLEANS}
  %h = stablehlo.convert %x : ({_FLOATS}) -> {_NARROW}
  %flat = stablehlo.reshape %x : ({_FLOATS}) -> tensor<{ROWS * COLUMNS}xf32>
  %most = stablehlo.slice %flat [1:{ROWS * COLUMNS}] : (tensor<{ROWS * COLUMNS}xf32>) -> {_RESULTS["odd"]}
  {_reduction("sum", "x", "add", "f32", _SIZES)}
  {_reduction("product", "n", "multiply", "i32", _SIZES)}
  {_reduction("least", "n", "minimum", "i32", _SIZES)}
  {_reduction("any", "b", "add", "i1", _SIZES)}
  {_reduction("largest", "x", "maximum", "f32", _SIZES)}
  {_reduction("narrow", "h", "add", "bf16", _SIZES)}
  {_reduction("odd", "most", "maximum", "f32", str(ROWS * COLUMNS - 1))}
  {_reduction("block", "x", "add", "f32", _SIZES, _SCATTER)}
  {_reduction("largest_block", "x", "maximum", "f32", _SIZES, _SCATTER)}
  %gathered = "stablehlo.all_gather"(%b) {{all_gather_dim = 1 : i64, {_GROUPS}}}
    : ({_BOOLEANS}) -> {_RESULTS["gathered"]}
  %exchanged = "stablehlo.all_to_all"(%n) {{split_dimension = 0 : i64, concat_dimension = 1 : i64,
    split_count = 3 : i64, {_GROUPS}}} : ({_INTEGERS}) -> {_RESULTS["exchanged"]}
  return {", ".join(f"%{name}" for name in _RESULTS)} : {", ".join(_RESULTS.values())}
}}"""


def inputs() -> list[np.ndarray]:
    """Arguments with a leading dimension of the devices; small floats, whose sums are exact in any order."""
    random = np.random.default_rng(3)
    x = random.integers(-9, 9, (MEMBERS, ROWS, COLUMNS)).astype(np.float32)
    return [x, random.integers(-(2**30), 2**30, x.shape).astype(np.int32)]
