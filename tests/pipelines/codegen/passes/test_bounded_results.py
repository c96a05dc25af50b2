"""legalize-bounded-results: arrays of sizes that elements decide are made by our own kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hloforge
from hloforge.dialect.operations import operations
from hloforge.pipelines.codegen.passes.bounded_results import LegalizeBoundedResults
from tests.pipelines.codegen.whole_programs import compiled

_TYPES = {"f32": "float32", "s8": "int8", "pred": "bool", "bf16": "bfloat16", "c64": "complex64", "s4": "int4"}


@st.composite
def _arrays(draw: st.DrawFn) -> tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """An element type, sizes, dimensions that are dynamic, and an order of dimensions from minor to major."""
    dims = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 5, 8]), min_size=1, max_size=4)))
    ranks = list(range(len(dims)))
    dynamic = tuple(d for d in ranks if draw(st.booleans())) or (draw(st.sampled_from(ranks)),)
    return draw(st.sampled_from(sorted(_TYPES))), dims, dynamic, tuple(draw(st.permutations(ranks)))


@settings(max_examples=25)
@given(_arrays(), st.data())
def test_any_dimensions_of_any_layout(
    array: tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...]], data: st.DataObject
) -> None:
    element, dims, dynamic, layout = array
    text, lines, before = _shape(element, dims, ()), [], "x"
    for number, d in enumerate(dynamic):
        shape = _shape(element, dims, dynamic[: number + 1])
        lines.append(f"{shape} set-dimension-size({before}, n{number}), dimensions={{{d}}}")
        before = f"y{number}"
    names = [f"y{number} = " for number in range(len(lines))]
    order = ",".join(map(str, layout))
    body = "\n".join(f"  {name}{line}" for name, line in zip(names, lines, strict=True))
    sizes = "\n".join(f"  n{number} = s32[] parameter({number + 1})" for number in range(len(dynamic)))
    result = _shape(element, dims, dynamic) + f"{{{order}}}"
    layout_of_entry = f"{{({', '.join([text, *['s32[]'] * len(dynamic)])})->{result}}}"
    program = hloforge.read(
        f"""HloModule m, entry_computation_layout={layout_of_entry}
ENTRY e {{
  x = {text} parameter(0)
{sizes}
{body}
  ROOT r = {result} copy({before})
}}""".encode()
    )
    session = compiled(program).load()
    count = int(np.prod(dims))
    x = (np.arange(count) % 7).astype(hloforge.Shape.parse(f"{element}[]").element.dtype).reshape(dims)
    for _ in range(2):
        wanted = [data.draw(st.integers(0, dims[d])) for d in dynamic]
        got = np.asarray(session(x, *map(np.int32, wanted)))
        inside = dict(zip(dynamic, wanted, strict=True))
        expected = x[tuple(slice(inside.get(d)) for d in range(len(dims)))]
        assert got.shape == expected.shape
        np.testing.assert_array_equal(got, expected)


def _shape(element: str, dims: tuple[int, ...], dynamic: tuple[int, ...]) -> str:
    return f"{element}[{','.join(f'<={size}' if d in dynamic else str(size) for d, size in enumerate(dims))}]"


_TEXT = """func.func @main(%x: tensor<8x3xf32>, %n: tensor<i32>)
    -> (tensor<?x3xf32>, tensor<3x?xf32>, tensor<i32>) {
  %c = stablehlo.constant dense<24> : tensor<i32>
  %cut = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<8x3xf32>, tensor<i32>) -> tensor<?x3xf32>
  %both = stablehlo.FUNCTION %cut, %cut : tensor<?x3xf32>
  %t = stablehlo.transpose %both, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
  return %cut, %t, %c : tensor<?x3xf32>, tensor<3x?xf32>, tensor<i32> }"""


@pytest.mark.parametrize(("name", "function"), [("add", np.add), ("multiply", np.multiply), ("maximum", np.maximum)])
def test_elementwise_operations_move_before_the_cut(name: str, function: Callable[..., Any]) -> None:
    session = compiled(hloforge.read(_TEXT.replace("FUNCTION", name).encode())).load()
    x = np.arange(24, dtype=np.float32).reshape(8, 3)
    # Sizes beyond the bound are the bound.
    for size, rows in [(5, 5), (-1, 0), (0, 0), (8, 8), (9, 8), (2**31 - 1, 8)]:
        first, second, static = session(x, np.int32(size))
        np.testing.assert_array_equal(first, x[:rows])
        np.testing.assert_array_equal(second, function(x, x)[:rows].T)
        assert static == 24


def test_sizes_that_nobody_knows_stay() -> None:
    program = hloforge.as_program("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }")
    LegalizeBoundedResults().run(program.module)
    assert program.signature.flat_results[0].dynamic == (True,)
    assert not list(operations(program.module, frozenset({"stablehlo.minimum"})))


@pytest.mark.parametrize(
    ("name", "initial", "function"),
    [("add", "0", np.sum), ("multiply", "1", np.prod), ("maximum", "-inf", np.max), ("minimum", "inf", np.min)],
)
def test_reductions_of_what_is_there(name: str, initial: str, function: Callable[..., Any]) -> None:
    text = f"""HloModule m
combine {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] {name}(a, b)
}}
ENTRY e {{
  x = f32[8,3] parameter(0)
  n = s32[] parameter(1)
  y = f32[<=8,3] set-dimension-size(x, n), dimensions={{0}}
  i = f32[] constant({initial})
  s = f32[3] reduce(y, i), dimensions={{0}}, to_apply=combine
  g = s32[] get-dimension-size(y), dimensions={{0}}
  ROOT r = (f32[3], s32[]) tuple(s, g)
}}"""
    session = compiled(hloforge.read(text.encode())).load()
    x = np.random.default_rng(0).integers(1, 4, (8, 3)).astype(np.float32)
    for size in (1, 5, 8):
        result, known = session(x, np.int32(size))
        np.testing.assert_array_equal(result, function(x[:size], axis=0))
        assert known == size
