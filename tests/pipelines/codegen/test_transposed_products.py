"""Products of transposed operands, which are read where they lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.pipelines.codegen.whole_programs import check


def _type(dims: list[int]) -> str:
    return f"tensor<{'x'.join(map(str, dims))}xf32>"


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_any_transposition_of_a_factor(data: st.DataObject) -> None:
    """Of integers, so that the order of a sum is free: batches, contracted and free dimensions in any order."""
    batch = data.draw(st.lists(st.integers(1, 3), max_size=2), "batch")
    depth = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=2), "depth")
    sizes = {
        side: [*batch, *depth, *data.draw(st.lists(st.integers(1, 9), max_size=2), side)] for side in ("lhs", "rhs")
    }
    lines, names, numbers = [], [], []
    arrays = []
    for number, (side, dims) in enumerate(sizes.items()):
        # Where the program has each of the dimensions, and where the caller's array has them.
        inside = data.draw(st.permutations(range(len(dims))), f"{side} inside")
        order = data.draw(st.permutations(range(len(dims))), f"{side} transposed")
        placed = [dims[d] for d in inside]
        given_dims = [0] * len(dims)
        for place, source in enumerate(order):
            given_dims[source] = placed[place]
        types = f"({_type(given_dims)}) -> {_type(placed)}"
        lines.append(f"%t{number} = stablehlo.transpose %a{number}, dims = {list(order)} : {types}")
        names.append((given_dims, placed))
        numbers.append([inside.index(d) for d in range(len(dims))])
        arrays.append(np.random.default_rng(number).integers(-4, 5, given_dims).astype(np.float32))
    count = len(batch) + len(depth)
    batches, contracted = (
        [numbers[side][first:last] for side in (0, 1)] for first, last in ((0, len(batch)), (len(batch), count))
    )
    free = [[d for d in range(len(names[side][1])) if d not in numbers[side][:count]] for side in (0, 1)]
    result = [*batch, *(names[side][1][d] for side in (0, 1) for d in free[side])]
    moved = data.draw(st.permutations(range(len(result))), "result")
    transposed = [result[d] for d in moved]
    said = f"batching_dims = {batches[0]} x {batches[1]}, " if batch else ""
    arguments = ", ".join(f"%a{number}: {_type(names[number][0])}" for number in (0, 1))
    operands = ", ".join(_type(names[number][1]) for number in (0, 1))
    check(
        f"""func.func @main({arguments}) -> {_type(transposed)} {{
          {lines[0]}
          {lines[1]}
          %0 = stablehlo.dot_general %t0, %t1, {said}contracting_dims = {contracted[0]} x {contracted[1]}
            : ({operands}) -> {_type(result)}
          %1 = stablehlo.transpose %0, dims = {list(moved)} : ({_type(result)}) -> {_type(transposed)}
          return %1 : {_type(transposed)} }}""".replace("tensor<xf32>", "tensor<f32>"),
        *arrays,
    )


@pytest.mark.parametrize("rows", [3, 130])
def test_transposed_factors_in_a_loop(rows: int) -> None:
    """A factor that the loop changes and one that it does not, both transposed, with few rows and with many."""
    state, weights = f"tensor<{rows}x70xf32>", "tensor<70x70xf32>"
    check(
        f"""func.func @main(%h: {state}, %w: {weights}) -> ({state}, {weights}) {{
          %begin = stablehlo.constant dense<0> : tensor<i32>
          %r:3 = stablehlo.while(%i = %begin, %x = %h, %sum = %w) : tensor<i32>, {state}, {weights}
            cond {{
              %end = stablehlo.constant dense<3> : tensor<i32>
              %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
              stablehlo.return %more : tensor<i1>
            }} do {{
              %one = stablehlo.constant dense<1> : tensor<i32>
              %next = stablehlo.add %i, %one : tensor<i32>
              %wt = stablehlo.transpose %w, dims = [1, 0] : ({weights}) -> {weights}
              %y = stablehlo.dot_general %x, %wt, contracting_dims = [1] x [0] : ({state}, {weights}) -> {state}
              %least = stablehlo.constant dense<-4.0> : tensor<f32>
              %most = stablehlo.constant dense<4.0> : tensor<f32>
              %small = stablehlo.clamp %least, %y, %most : (tensor<f32>, {state}, tensor<f32>) -> {state}
              %xt = stablehlo.transpose %x, dims = [1, 0] : ({state}) -> tensor<70x{rows}xf32>
              %g = stablehlo.dot_general %xt, %small, contracting_dims = [1] x [0]
                : (tensor<70x{rows}xf32>, {state}) -> {weights}
              %total = stablehlo.add %sum, %g : {weights}
              stablehlo.return %next, %small, %total : tensor<i32>, {state}, {weights}
            }}
          return %r#1, %r#2 : {state}, {weights} }}""",
        *(np.random.default_rng(0).integers(-4, 5, dims).astype(np.float32) for dims in ((rows, 70), (70, 70))),
    )
