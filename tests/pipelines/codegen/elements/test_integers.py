"""Integer operations of elements: XLA's CPU client judges, on all pairs of special numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pipelines.codegen.elements.loops import evaluate, loop
from tests.pipelines.codegen.elements.xla_reference import INTEGERS, assert_equal, pairs, samples, xla

_SHIFTS = ("shift_left", "shift_right_arithmetic", "shift_right_logical")
_BINARY = ("add", "and", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder", "subtract", "xor")
_UNARY = ["abs", "count_leading_zeros", "negate", "not", "popcnt", "sign"]


@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("op", [*_BINARY, *_SHIFTS])
def test_binary(op: str, element: str) -> None:
    inputs = pairs(element)
    want = xla(f"stablehlo.{op}", inputs, element)
    assert_equal(evaluate(op, inputs, element), want, inputs)


@pytest.mark.parametrize("op", [*_BINARY, *_SHIFTS])
def test_vectors(op: str) -> None:
    inputs = pairs("i32")
    assert_equal(evaluate(op, inputs, "i32", lanes=8), evaluate(op, inputs, "i32"), inputs)


@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("op", _UNARY)
def test_unary(op: str, element: str) -> None:
    if op in ("abs", "sign") and element.startswith("u"):
        pytest.skip("StableHLO has none")
    inputs = [samples(element)]
    assert_equal(evaluate(op, inputs, element), xla(f"stablehlo.{op}", inputs, element), inputs)


@pytest.mark.parametrize("op", ["add", "and", "maximum", "minimum", "multiply", "or", "xor"])
def test_flags(op: str) -> None:
    inputs = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert_equal(evaluate(op, inputs, "i1"), xla(f"stablehlo.{op}", inputs, "i1"), inputs)
    assert_equal(evaluate("not", inputs[:1], "i1"), ~inputs[0], inputs)


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "ui8", "ui16", "ui32"])
def test_quotients_need_no_division_of_integers(element: str) -> None:
    """Processors divide one pair of integers at a time."""
    for op in ("divide", "remainder"):
        assert "div" not in loop(op, [element] * 2, element).optimized.replace("fdiv", "")
