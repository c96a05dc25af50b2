"""Comparisons, selections and extremes of elements: XLA's CPU client judges."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pipelines.codegen.elements.loops import evaluate
from tests.pipelines.codegen.elements.xla_reference import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    assert_equal,
    pairs,
    samples,
    xla,
)

_DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")


@pytest.mark.wide(6)
@pytest.mark.parametrize("direction", _DIRECTIONS)
@pytest.mark.parametrize("element", ["i1", *INTEGERS, *FLOATS, *COMPLEX])
def test_compare(element: str, direction: str) -> None:
    if element in COMPLEX and direction not in ("EQ", "NE"):
        pytest.skip("complex numbers have no order")
    inputs = pairs(element)
    for kind in ("NOTYPE", "TOTALORDER") if element in FLOATS else ("NOTYPE",):
        suffix = f", compare_type = #stablehlo<comparison_type {kind}>" if kind != "NOTYPE" else ""
        spelled = f"{{comparison_direction = #stablehlo<comparison_direction {direction}>{suffix}}}"
        attributes = {"comparison_direction": direction, "compare_type": kind}
        want = xla("stablehlo.compare", inputs, "i1", spelled)
        assert_equal(evaluate("compare", inputs, "i1", attributes), want, inputs)
        assert_equal(evaluate("compare", inputs, "i1", attributes, lanes=16), want, inputs)


@pytest.mark.parametrize("element", ["i1", *INTEGERS, *FLOATS, *COMPLEX])
def test_select(element: str) -> None:
    yes = samples(element)
    no = yes[::-1].copy()
    flags = np.arange(len(yes)) % 3 == 0
    want = np.where(flags, yes, no)
    for lanes in (0, 4):
        assert_equal(evaluate("select", [flags, yes, no], element, lanes=lanes), want, [flags, yes, no])


@pytest.mark.parametrize("element", [*INTEGERS, *FLOATS])
def test_clamp(element: str) -> None:
    low, value = pairs(element)
    inputs = low, value, value[::-1].copy()
    assert_equal(evaluate("clamp", inputs, element), xla("stablehlo.clamp", inputs, element), inputs)


def test_complex_extremes_are_lexicographic() -> None:
    z, w = np.array([1 + 2j, 1 + 2j, 3 - 1j, 0j]), np.array([1 + 3j, 1 - 3j, 2 + 9j, -1 + 0j])
    assert list(evaluate("maximum", [z, w], "complex<f64>")) == [1 + 3j, 1 + 2j, 3 - 1j, 0j]
    assert list(evaluate("minimum", [z, w], "complex<f64>")) == [1 + 2j, 1 - 3j, 2 + 9j, -1 + 0j]


def test_complex_numbers_are_clamped_in_lexicographic_order() -> None:
    low, high = np.full(4, 1 + 1j), np.full(4, 2 - 1j)
    value = np.array([1 + 0j, 1 + 5j, 2 + 0j, 0j])
    got = evaluate("clamp", [low, value, high], "complex<f64>")
    assert list(got) == [1 + 1j, 1 + 5j, 2 - 1j, 1 + 1j]
