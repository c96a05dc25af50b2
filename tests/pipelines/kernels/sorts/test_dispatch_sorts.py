"""dispatch-sorts: IREE's code for sorts gives numpy's order, by digits and by insertion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import hloforge
from hloforge import Builder, Value, ops
from hloforge.dialect.operations import operations
from hloforge.dialect.program import Program
from hloforge.dialect.values import leaves
from hloforge.pipelines.named import lower

DISPATCH = "flow.dispatch.workgroups"
RANDOM = np.random.default_rng(0)


def keys(*dims: int, most: int = 5) -> np.ndarray[Any, Any]:
    """Integers with many ties."""
    return RANDOM.integers(-most, most, dims).astype(np.int32)


def program_of(build: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> Program:
    with Builder("sorting") as builder:
        operands = [
            builder.parameter(n, hloforge.Shape.array(array.dtype, *array.shape), f"x{n}")
            for n, array in enumerate(arrays)
        ]
        return builder.build(tuple(build(*operands)))


def run(build: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(result) for result in program_of(build, *arrays).compile("cpu").load()(*arrays)]


def argsort(x: Value, dimension: int = -1) -> Value:
    places = ops.iota("s32", x.dims, dimension % x.rank)
    return leaves(ops.sort([x, places], lambda a, b, *_: a < b, dimension=dimension, is_stable=True))[1]


def test_rows_of_every_length_are_sorted_stably() -> None:
    arrays = [keys(rows, size) for rows, size in ((3, 2), (1, 63), (5, 300), (1, 4000), (97, 40), (7, 1000))]
    for array, got in zip(arrays, run(lambda *xs: [argsort(x) for x in xs], *arrays), strict=True):
        np.testing.assert_array_equal(got, np.argsort(array, axis=1, kind="stable"))


def test_keys_of_every_width_are_sorted() -> None:
    wide = RANDOM.integers(-(2**63), 2**63, 700)
    arrays = [wide.view(np.uint64), wide, *(wide.astype(kind) for kind in (np.uint32, np.int16, np.uint8))]
    arrays += [RANDOM.normal(size=700).astype(kind) for kind in (np.float16, np.float32, np.float64)]
    for array, got in zip(arrays, run(lambda *xs: [ops.sort(x) for x in xs], *arrays), strict=True):
        np.testing.assert_array_equal(got, np.sort(array))


def test_the_first_elements_of_long_rows_come_in_order() -> None:
    ties, rising = keys(3, 1003), np.tile(np.arange(1003, dtype=np.int32), (2, 1))

    def first(x: Value, y: Value) -> list[Value]:
        return [part for array in (x, y) for part in leaves(ops.top_k(array, 20))]

    values, places, risen, risen_places = run(first, ties, rising)
    order = np.argsort(-ties, axis=1, kind="stable")[:, :20]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(ties, order, 1))
    np.testing.assert_array_equal(risen, rising[:, :-21:-1])
    np.testing.assert_array_equal(risen_places, risen)


def test_second_keys_decide_between_equal_first_ones() -> None:
    long = [keys(2, 500), keys(2, 500).astype(np.int64), np.arange(1000, dtype=np.float64).reshape(2, 500)]
    short = [array[:, :20] for array in long]

    def build(*xs: Value) -> list[Value]:
        def before(a: Value, b: Value, c: Value, d: Value, *_: Value) -> Value:
            return (a > b) | (a.eq(b) & (c < d))

        sorted_ = [leaves(ops.sort(part, before, is_stable=True)) for part in (xs[:3], xs[3:])]
        few = [ops.slice(array, [0, 0], [2, 30]) for array in leaves(ops.sort(xs[:3], before, is_stable=True))]
        return [array for part in (*sorted_, few) for array in part]

    results = run(build, *long, *short)
    for got, arrays in zip((results[:3], results[3:6], results[6:]), (long, short, long), strict=True):
        order = np.stack([np.lexsort((second, -first)) for first, second in zip(arrays[0], arrays[1], strict=True)])
        for one, array in zip(got, arrays, strict=True):
            np.testing.assert_array_equal(one, np.take_along_axis(array, order[:, : one.shape[1]], 1))


def test_loops_and_branches_sort() -> None:
    x = RANDOM.normal(size=(2, 400)).astype(np.float32)

    def build(x: Value) -> list[Value]:
        def turn(i: Value, v: Value) -> list[Value]:
            return [ops.add(i, 1), ops.rev(ops.sort(v), [1])]

        start = ops.constant(0, "s32")
        _, result = leaves(ops.while_(lambda i, _: i < 3, turn, [start, x]))
        flag = x[0:1, 0:1].reshape() > 9
        return [result, ops.conditional(flag, x, lambda v: v, x, lambda v: ops.sort(v, dimension=0))]

    result, branch = run(build, x)
    np.testing.assert_array_equal(result, np.sort(x, axis=1)[:, ::-1])
    np.testing.assert_array_equal(branch, np.sort(x, axis=0))


def test_the_code_does_not_grow_with_the_array() -> None:
    texts = []
    for size in (10_000, 1_000_000):
        program = program_of(lambda x: [argsort(x)], np.zeros(size, np.float32))
        lower(program.module)
        assert len(operations(program.module, {DISPATCH, "flow.dispatch"})) == 4  # three of equal code
        texts.append(program.text())
    assert len(texts[0].splitlines()) == len(texts[1].splitlines())
