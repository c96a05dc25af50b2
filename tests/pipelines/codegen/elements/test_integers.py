"""Integer operations of elements: XLA's CPU client judges, on all pairs of special numbers."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.pipelines.codegen.elements.memory import constant, load, store
from hloforge.pipelines.codegen.elements.table import apply
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from tests.pipelines.codegen.elements.loops import evaluate, loop
from tests.pipelines.codegen.elements.xla_reference import INTEGERS, assert_equal, pairs, samples, xla
from tests.pipelines.codegen.jit import Compiled, compiled

_SHIFTS = ("shift_left", "shift_right_arithmetic", "shift_right_logical")
_BINARY = ("add", "and", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder", "subtract", "xor")
_UNARY = ["abs", "count_leading_zeros", "negate", "not", "popcnt", "sign"]


@pytest.mark.wide(2)
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


@pytest.mark.wide(2)
@pytest.mark.parametrize(
    "element", ["i8", "ui64", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ui8", "i32"))]
)
@pytest.mark.parametrize("lanes", [0, 4])
def test_known_numbers_of_the_second_operand(element: str, lanes: int) -> None:
    x = samples(element)
    x = x[: len(x) // 4 * 4]
    limits = np.iinfo(x.dtype)
    candidates = (0, 1, 3, 7, 64, 70, 200, -1, -5, int(limits.min), int(limits.max))
    numbers = [number for number in candidates if limits.min <= number <= limits.max]
    for op in ("divide", "remainder", "power", *_SHIFTS):
        for number in numbers:
            known = np.full(len(x), number, x.dtype)
            out = np.zeros_like(x)
            _with_known(op, element, number, lanes)(x, out, len(x))
            assert_equal(out, evaluate(op, [x, known], element), [x, known])


def _with_known(op: str, element: str, number: int, lanes: int) -> Compiled:
    def write(function: Function, pointers: list[Value], numbers: list[Value]) -> None:
        known = constant(function, element, number)
        assert isinstance(known, Value)
        with function.loop(0, numbers[0], max(lanes, 1)) as i:
            assert isinstance(i, Value)
            value = load(function, pointers[0], element, i, lanes)
            other = function.spread(known, lanes) if lanes else known
            store(function, apply(op, [value, other], [element] * 2, element, {}), pointers[1], element, i)

    return compiled(write, 2, 1)
