"""Reductions of windows and cumulative ones, against loops that follow the specification's text."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.reduce_window import ReduceWindow
from hloforge.pipelines.codegen.algorithms.scan import Scan
from hloforge.pipelines.codegen.algorithms.windows import Window
from hloforge.pipelines.codegen.elements import memory
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from tests.pipelines.codegen.jit import address_room, compiled


def _sum(so_far: Any, element: Any) -> list[Any]:
    return [so_far[0] + element[0]]


def _last_set(so_far: Any, element: Any) -> list[Any]:
    """Associative, but not commutative."""
    if isinstance(element[0], Value):
        return [element[0].differs(0).where(element[0], so_far[0])]
    return [np.where(element[0] != 0, element[0], so_far[0])]


def _first_largest(so_far: Any, element: Any) -> list[Any]:
    """The larger number and its place, of equal ones the first."""
    (a, i), (b, j) = so_far, element
    if isinstance(a, Value):
        later = b > a
        return [later.where(b, a), later.where(j, i)]
    return [np.where(b > a, b, a), np.where(b > a, j, i)]


_COMBINES: dict[str, Any] = {"sum": _sum, "last": _last_set, "largest": _first_largest}


@st.composite
def _windows(draw: Any, dims: int = 3) -> tuple[Window, ...]:
    found = []
    for _ in range(draw(st.integers(1, dims))):
        n = draw(st.integers(1, 7))
        if draw(st.booleans()):
            found.append(Window(n))
            continue
        kind = draw(st.sampled_from(["any", "small", "cumulative", "reverse"]))
        if kind == "cumulative":
            found.append(Window(n, n, low=n - 1))
        elif kind == "reverse":
            found.append(Window(n, n, high=n - 1))
        else:
            most = 2 if kind == "small" else 4
            found.append(
                Window(
                    n,
                    draw(st.integers(1, most)),
                    draw(st.integers(1, most)),
                    draw(st.integers(-1, most)),
                    draw(st.integers(-1, most)),
                    draw(st.sampled_from([1, 1, 1, 2, 3])),
                    draw(st.sampled_from([1, 1, 1, 2])),
                )
            )
    return tuple(found)


@st.composite
def _long(draw: Any) -> tuple[Window, ...]:
    """A long window along one of three dimensions, and perhaps a small one along another."""
    long = Window(
        draw(st.integers(40, 90)),
        draw(st.integers(17, 45)),
        draw(st.integers(1, 3)),
        draw(st.integers(-3, 30)),
        draw(st.integers(-3, 30)),
        draw(st.sampled_from([1, 1, 2, 3])),
        draw(st.sampled_from([1, 1, 2, 3])),
    )
    other = draw(st.sampled_from([Window(3), Window(1), Window(20), Window(4, 2), Window(4, 3, 2, 1, 1)]))
    return tuple(draw(st.permutations([long, other, Window(draw(st.integers(1, 3)))])))


@given(st.one_of(_windows(), _long()), st.sampled_from(sorted(_COMBINES)), st.sampled_from([0, 4, 8]))
@settings(max_examples=80, deadline=None)
def test_windows_are_reduced_in_order(windows: tuple[Window, ...], how: str, lanes: int) -> None:
    random = np.random.default_rng(len(windows) + windows[0].n)
    shape = tuple(window.n for window in windows)
    arrays = [random.integers(0, 5, shape).astype(np.int32)]
    start = [0]
    if how == "largest":
        arrays.append(np.arange(arrays[0].size, dtype=np.int32).reshape(shape))
        start = [-100, -1]
    reduction = ReduceWindow(windows, ("i32",) * len(arrays), lanes)
    actual = _run(reduction, arrays, start, _COMBINES[how])
    expected = _expected(windows, arrays, start, _COMBINES[how])
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@given(_windows(), st.integers(0, 3), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_rows_are_computed_apart(windows: tuple[Window, ...], first: int, last: int) -> None:
    array = np.random.default_rng(3).integers(0, 5, tuple(window.n for window in windows)).astype(np.int32)
    reduction = ReduceWindow(windows, ("i32",))
    borders = sorted(min(number, reduction.rows) for number in (0, first, last, reduction.rows))
    (expected,) = _expected(windows, [array], [0], _last_set)
    for known in (False, True):
        (actual,) = _run(reduction, [array], [0], _last_set, list(pairwise(borders)), known)
        np.testing.assert_array_equal(actual, expected)


def _largest(so_far: Any, element: Any) -> list[Any]:
    if isinstance(element[0], Value):
        return [so_far[0].maximum(element[0])]
    return [np.maximum(so_far[0], element[0])]


@st.composite
def _planes(draw: Any) -> tuple[Window, ...]:
    """Small windows in planes whose lines are a few vectors."""
    return tuple(
        Window(
            draw(st.integers(4, 40)),
            draw(st.integers(1, 5)),
            draw(st.integers(1, 4)),
            draw(st.integers(-3, 6)),
            draw(st.integers(-3, 6)),
            dilation=draw(st.integers(1, 2)),
        )
        for _ in range(draw(st.integers(2, 3)))
    )


@given(st.one_of(_windows(), _planes()), st.sampled_from([4, 8]), st.integers(-3, 3), st.booleans(), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_extremes_by_lines(windows: tuple[Window, ...], lanes: int, start: int, known: bool, first: int) -> None:
    """Of rows that are computed apart as well: borders hold the initial element."""
    random = np.random.default_rng(windows[-1].n)
    array = random.integers(-5, 5, tuple(window.n for window in windows)).astype(np.int32)
    reduction = ReduceWindow(windows, ("i32",), lanes, repeats=True)
    rows = list(pairwise(sorted(min(number, reduction.rows) for number in (0, first, reduction.rows))))
    (actual,) = _run(reduction, [array], [start], _largest, rows, known)
    (expected,) = _expected(windows, [array], [start], _largest)
    np.testing.assert_array_equal(actual, expected)


def test_windows_of_images_go_by_lines() -> None:
    image = (Window(8), *[Window(57, 3, 2, 1, 1)] * 2)
    assert ReduceWindow(image, ("f32",), 16, repeats=True).reads < 10 * 8 * 29 * 29
    assert ReduceWindow(image, ("f32",), 16).reads == 9 * 8 * 29 * 29


@pytest.mark.parametrize("shape", [(2, 100, 1), (3, 33, 5), (1, 1, 1), (2, 1, 4), (1, 16, 1), (0, 4, 1)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("lanes", [0, 8])
def test_scans_of_complex_numbers(shape: tuple[int, int, int], reverse: bool, lanes: int) -> None:
    random = np.random.default_rng(4)
    array = (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(np.complex64)
    scan = Scan(*shape, reverse, lanes)

    def write(function: Function, pointers: list[Value]) -> None:
        source, target = (Elements(pointer, "complex<f32>") for pointer in pointers)

        def add(a: Any, b: Any) -> list[Any]:
            return [(a[0][0] + b[0][0], a[0][1] + b[0][1])]

        scan.write(function, [source], [memory.constant(function, "complex<f32>", 0)], [target], add)

    actual = np.zeros_like(array)
    compiled(write, 2)(array, actual)
    expected = np.flip(np.cumsum(np.flip(array, 1), 1), 1) if reverse else np.cumsum(array, 1)
    np.testing.assert_allclose(actual, expected, atol=1e-5)


def _run(
    reduction: ReduceWindow,
    arrays: list[Any],
    start: list[int],
    combine: Any,
    rows: list[tuple[int, int]] | None = None,
    known: bool = True,
) -> list[Any]:
    count = len(arrays)

    def write(function: Function, pointers: list[Value], numbers: list[Value] | None = None) -> None:
        own = [Elements(pointer, "i32") for pointer in pointers[: 2 * count]]
        starts = [function.constant(number, "i32") for number in start]
        parts: list[Any] = [(numbers[0], numbers[1])] if numbers else rows or [None]
        for part in parts:
            reduction.write(function, own[:count], starts, own[count:], combine, pointers[-1], part)

    results = [np.full(int(np.prod(reduction.shape)) + 1, -7, np.int32) for _ in arrays]
    room = address_room(reduction.scratch + 64)
    if known:
        compiled(write, 2 * count + 1)(*arrays, *results, room)
    else:
        code = compiled(write, 2 * count + 1, 2)
        for first, last in rows or []:
            code(*arrays, *results, room, first, last)
    assert all(result[-1] == -7 for result in results)
    assert (room[reduction.scratch :] == 0xA5).all()
    return [result[:-1].reshape(reduction.shape) for result in results]


def _expected(windows: tuple[Window, ...], arrays: list[Any], start: list[int], combine: Any) -> list[Any]:
    shape = tuple(window.count for window in windows)
    found: list[Any] = [np.full(shape, number, np.int32) for number in start]
    for place in product(*(range(window.size) for window in windows)):
        columns, present = [], np.ones(shape, bool)
        for dim, (window, element) in enumerate(zip(windows, place, strict=True)):
            at = np.arange(window.count) * window.stride + element * window.dilation - window.low
            inside = (at >= 0) & (at <= (window.n - 1) * window.base) & (at % window.base == 0)
            steps = [-1 if other == dim else 1 for other in range(len(windows))]
            present &= inside.reshape(steps)
            columns.append(np.where(inside, at // window.base, 0))
        taken = [array[np.ix_(*columns)] for array in arrays]
        joined = combine(found, taken)
        found = [np.where(present, new, old) for new, old in zip(joined, found, strict=True)]
    return found
