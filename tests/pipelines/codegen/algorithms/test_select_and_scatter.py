"""Scatters to selected elements, against loops that follow the specification's text."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from hloforge.pipelines.codegen.algorithms.arrays import Elements
from hloforge.pipelines.codegen.algorithms.select_and_scatter import SelectAndScatter
from hloforge.pipelines.codegen.algorithms.windows import Window
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from tests.pipelines.codegen.jit import address_room, compiled


@st.composite
def _windows(draw: Any) -> tuple[Window, ...]:
    found = []
    for _ in range(draw(st.integers(1, 4))):
        n = draw(st.integers(1, 9))
        low, high = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        moved = Window(n, draw(st.integers(1, min(n + low + high, 18))), draw(st.integers(1, 3)), low, high)
        found.append(draw(st.sampled_from([Window(n), moved])))
    return tuple(found)


@given(_windows(), st.integers(0, 100), st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_selected_element_of_each_window_takes_the_source(
    windows: tuple[Window, ...], seed: int, known: bool
) -> None:
    random = np.random.default_rng(seed)
    operand = random.integers(0, 4, tuple(window.n for window in windows)).astype(np.float32)
    operand[random.random(operand.shape) < 0.1] = np.nan
    source = random.integers(1, 9, tuple(window.count for window in windows)).astype(np.float32)
    plan = SelectAndScatter(windows, "f32")

    def write(function: Function, pointers: list[Value]) -> None:
        arrays = [Elements(pointer, "f32") for pointer in pointers[:3]]
        zero = function.constant(1.0, "float")
        parts: list[Any] = [None] if known else [(0, plan.rows // 2), (plan.rows // 2, plan.rows)]
        for part in parts:
            plan.write(
                function,
                *arrays[:2],
                zero,
                arrays[2],
                lambda a, b: a >= b,  # type: ignore[operator,return-value]
                lambda a, b: a + b,  # type: ignore[operator,return-value,arg-type]
                pointers[3],
                part,
            )

    actual = np.zeros_like(operand)
    compiled(write, 4)(operand, source, actual, address_room(plan.scratch))
    expected = np.ones_like(operand)
    for index in np.ndindex(source.shape):
        selected: Any = None
        for place in product(*(range(window.size) for window in windows)):
            at = tuple(
                number * window.stride + element - window.low
                for number, element, window in zip(index, place, windows, strict=True)
            )
            if not all(0 <= one < window.n for one, window in zip(at, windows, strict=True)):
                continue
            if selected is None or not operand[selected] >= operand[at]:
                selected = at
        if selected is not None:
            expected[selected] += source[index]
    np.testing.assert_array_equal(actual, expected)
