"""Loops in pieces: every iteration runs once, and what a piece reads is known in it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hloforge
from hloforge.pipelines.codegen.evaluate import Condition
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.segments import segments_of
from hloforge.runtime.compile.generated import unavailable

CONDITIONS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([-3, -2, -1, 1, 2, 5]), st.integers(-40, 40), st.integers(1, 30)),
    max_size=5,
)


@given(st.lists(st.integers(2, 40), min_size=1, max_size=3), CONDITIONS, st.integers(1, 200))
@settings(deadline=None)
def test_pieces_cover_a_loop_and_conditions_are_known_in_them(
    sizes: list[int], drawn: list[tuple[int, int, int, int]], cost: int
) -> None:
    symbols = [Symbol(size - 1) for size in sizes]
    conditions = [
        Condition(Index(((symbols[number % len(sizes)], factor),), offset), limit)
        for number, factor, offset, limit in drawn
    ]
    found = segments_of(list(zip(symbols, sizes, strict=True)), conditions, cost, lambda loop, segment: cost)
    for size, segments in zip(sizes, found, strict=True):
        assert [n for one in segments for n in range(one.start, one.stop)] == list(range(size))
    if any(len(segments) > 1 for segments in found[:-1]):
        for condition, (number, factor, offset, limit) in zip(conditions, drawn, strict=True):
            for one in found[number % len(sizes)]:
                inside = Index(((Symbol(one.size - 1), factor),), offset + factor * one.start)
                assert Condition(inside, limit).known is not None
                assert Condition(inside, limit).known == (0 <= condition.index.offset + factor * one.start < limit)
    copies = math.prod(len(segments) for segments in found)
    assert copies == 1 or cost <= 1600


@pytest.mark.parametrize("own, pieces", [(2, 100), (17, 1)])
def test_a_join_of_many_is_cut_where_each_piece_is_cheap(own: int, pieces: int) -> None:
    row, column = Symbol(199), Symbol(49)
    joined = [Condition(Index(((row, 1),)), limit) for limit in range(2, 200, 2)]
    loops = [(row, 200), (column, 50)]
    found = segments_of(loops, joined, 100 * own, lambda loop, segment: (own, 0)[loop])
    assert [len(segments) for segments in found] == [pieces, 1]


@pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "")
@pytest.mark.parametrize("axis", [0, 1])
def test_a_join_of_many_is_numpys(axis: int) -> None:
    rng = np.random.default_rng(axis)
    parts = [rng.standard_normal((7 + n, 40) if axis == 0 else (40, 7 + n)).astype(np.float32) for n in range(40)]
    with hloforge.Builder("joined") as builder:
        given = [builder.parameter(n, f"f32[{one.shape[0]},{one.shape[1]}]", f"x{n}") for n, one in enumerate(parts)]
        program = builder.build(hloforge.ops.concat_in_dim(given, axis))
    executable = hloforge.compile(program)
    np.testing.assert_array_equal(executable.load()(*parts), np.concatenate(parts, axis))


@pytest.mark.skipif(bool(unavailable()), reason=unavailable() or "")
@pytest.mark.parametrize("seed", range(6))
def test_rolls_pads_and_joints_of_any_dimension_are_xlas(seed: int) -> None:
    """Sums of an image's neighbours, in several forms, reduced or not."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.integers(2, 23, size=rng.integers(1, 4)))

    def moved(x: hloforge.Value, d: int) -> hloforge.Value:
        size, step = shape[d], int(rng.integers(1, shape[d]))

        def part(start: int, stop: int) -> hloforge.Value:
            starts, stops = [0] * len(shape), list(shape)
            starts[d], stops[d] = start, stop
            return hloforge.ops.slice(x, starts, stops, [1] * len(shape))

        if rng.random() < 0.5:
            return hloforge.ops.concat_in_dim([part(step, size), part(0, step)], d)
        low, high = [0] * len(shape), [0] * len(shape)
        low[d], high[d] = (step, 0) if rng.random() < 0.5 else (0, step)
        zero = builder.constant(np.float32(0.5))
        return hloforge.ops.pad(part(0, size - step), zero, [(a, b, 0) for a, b in zip(low, high, strict=True)])

    with hloforge.Builder("moves") as builder:
        x = total = builder.parameter(0, f"f32[{','.join(map(str, shape))}]", "x")
        for _ in range(4):
            total = total + moved(x, int(rng.integers(len(shape))))
            x = moved(x, int(rng.integers(len(shape))))
        program = builder.build((total, x))
    argument = rng.standard_normal(shape).astype(np.float32)
    expected = hloforge.reference("xla", isolated=False).prepare(program)(argument)
    for one, other in zip(hloforge.compile(program).load()(argument), expected, strict=True):
        np.testing.assert_array_equal(one, other)
