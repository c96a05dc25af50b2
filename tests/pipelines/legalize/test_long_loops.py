"""legalize-long-loops: the same numbers as numpy's, by parts of at most 16 elements and windows of at most 4."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hloforge
from hloforge import Value, ops
from hloforge.dialect.operations import operations
from hloforge.pipelines.legalize import long_loops
from hloforge.pipelines.legalize.long_loops import LegalizeLongLoops, reduces_many
from tests.engines import interpret

_RANDOM = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_loops, "_MOST", 16)
    monkeypatch.setattr(long_loops, "_MOST_PRODUCTS", 16)
    monkeypatch.setattr(long_loops, "_WIDEST", 4)


def _results(build: Callable[..., object], *inputs: np.ndarray) -> list[np.ndarray]:
    """What a program gives that has been through the pass, by StableHLO's interpreter; no long loop is left."""
    with hloforge.Builder("loops") as builder:
        shapes = [hloforge.Shape.array(array.dtype, *array.shape) for array in inputs]
        program = builder.build(build(*(builder.parameter(n, shape, f"p{n}") for n, shape in enumerate(shapes))))
    module = program.module
    LegalizeLongLoops().run(module)
    assert not operations(module, ["stablehlo.reduce_window"])
    assert not any(reduces_many(op) for op in operations(module, ["stablehlo.reduce"]))
    return interpret(module, *inputs)


@pytest.mark.parametrize(
    ("sizes", "axes"), [((1000,), (0,)), ((3, 101), (1,)), ((101, 3), (0,)), ((7, 3, 8), (0, 2)), ((40, 2, 50), (0, 2))]
)
def test_sums(sizes: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = _RANDOM.integers(-100, 100, sizes).astype(np.int32)
    # An initial value that is no identity counts once.
    (got,) = _results(lambda v: ops.reduce(v, 5, ops.add, axes), x)
    np.testing.assert_array_equal(got, x.sum(axes, dtype=np.int32) + 5)


def test_several_operands_and_an_unknown_computation() -> None:
    x = _RANDOM.integers(-100, 100, 300).astype(np.int32)

    def least(v: Value) -> Value:
        def smaller(a: Value, i: Value, b: Value, j: Value) -> list[Value]:
            first = (a < b) | (a.eq(b) & (i < j))
            return [ops.select(first, a, b), ops.select(first, i, j)]

        return ops.reduce([v, ops.iota("s32", [300], 0)], [2**31 - 1, 2**31 - 1], smaller, [0])

    value, place = _results(least, x)
    assert (value, place) == (x.min(), x.argmin())


@pytest.mark.parametrize("numbers", [([1], [0], [], []), ([0, 2], [2, 1], [1], [0])], ids=["rows", "batch"])
def test_products(numbers: tuple[list[int], ...]) -> None:
    shapes = ((3, 50), (50, 2)) if len(numbers[0]) == 1 else ((23, 2, 5), (2, 5, 23))
    x, y = (_RANDOM.integers(-9, 9, shape).astype(np.int32) for shape in shapes)
    left, right, batch_left, batch_right = numbers
    dims = ops.DotDimensionNumbers(left, right, batch_left, batch_right)
    (got,) = _results(lambda a, b: ops.dot_general(a, b, dims), x, y)
    np.testing.assert_array_equal(got, x @ y if len(left) == 1 else np.einsum("ibk,bki->b", x, y))


@pytest.mark.parametrize("width", [5, 8, 13])
def test_windows(width: int) -> None:
    x = _RANDOM.integers(-100, 100, (2, 40)).astype(np.int32)
    padded = np.pad(x, [(0, 0), (3, 2)])
    places = range(0, padded.shape[1] - 2 * (width - 1), 3)
    want = np.stack([padded[:, p : p + 2 * width - 1 : 2].sum(1) for p in places], 1)
    (got,) = _results(
        lambda v: ops.reduce_window(v, 0, ops.add, [1, width], [1, 3], [(0, 0), (3, 2)], window_dilations=[1, 2]), x
    )
    np.testing.assert_array_equal(got, want)


def test_running_sums_along_two_dimensions() -> None:
    x = _RANDOM.integers(-100, 100, (6, 9)).astype(np.int32)
    (got,) = _results(lambda v: ops.reduce_window(v, 0, ops.add, [6, 9], [1, 1], [(5, 0), (8, 0)]), x)
    np.testing.assert_array_equal(got, x.cumsum(0).cumsum(1))
