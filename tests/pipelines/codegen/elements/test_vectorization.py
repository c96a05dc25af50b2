"""Loops over elements become vector instructions, and call nothing."""

from __future__ import annotations

import platform
import re

import pytest

from hloforge.pipelines.codegen.elements.table import supports
from tests.pipelines.codegen.elements.loops import loop

_UNARY = (
    "abs",
    "cbrt",
    "ceil",
    "cosh",
    "cosine",
    "erf",
    "erf_inv",
    "erfc",
    "exponential",
    "exponential_minus_one",
    "floor",
    "log",
    "log_plus_one",
    "logistic",
    "negate",
    "round_nearest_afz",
    "round_nearest_even",
    "rsqrt",
    "sign",
    "sine",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
)
_BINARY = ("add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract")
_ATTRIBUTES = {"comparison_direction": "LT", "compare_type": "NOTYPE"}


@pytest.mark.wide(2)
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="looks for registers of x86-64")
@pytest.mark.parametrize("element", ["bf16", "f16", "f32", "f64"])
@pytest.mark.parametrize("op", [*_UNARY, *_BINARY])
def test_functions_of_floats(op: str, element: str) -> None:
    operands = [element] * (2 if op in _BINARY else 1)
    if not supports(op, operands, element):
        pytest.skip("a pass takes it apart")
    compiled = loop(op, operands, element)
    if "expect" not in compiled.text:
        _assert_vectors(compiled.assembly)
        return
    # One that branches is called with vectors.
    assert re.search(r"call .*<\d+ x (float|double)> @kernel\.", _entry(compiled.optimized))


def _entry(text: str) -> str:
    return text[text.index("@kernel(") :]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="looks for registers of x86-64")
@pytest.mark.parametrize("element", ["i8", "ui16", "i32", "ui32", "i64"])
@pytest.mark.parametrize("op", ["add", "divide", "maximum", "multiply", "remainder", "shift_left", "xor", "compare"])
def test_integers(op: str, element: str) -> None:
    if op in ("divide", "remainder") and element == "i64":
        pytest.skip("processors divide one pair at a time")
    result = "i1" if op == "compare" else element
    _assert_vectors(loop(op, [element] * 2, result, _ATTRIBUTES).assembly)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="looks for registers of x86-64")
@pytest.mark.parametrize("source", ["bf16", "f32", "i8", "ui32", "i1"])
@pytest.mark.parametrize("target", ["bf16", "f32", "i8", "ui32", "i1"])
def test_conversions(source: str, target: str) -> None:
    if source == target:
        pytest.skip("a copy of memory, which LLVM asks the C library for")
    _assert_vectors(loop("convert", [source], target).assembly)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="looks for registers of x86-64")
@pytest.mark.parametrize("op", ["add", "multiply", "divide", "exponential", "log", "sqrt"])
def test_complex(op: str) -> None:
    operands = ["complex<f32>"] * (2 if op in ("add", "multiply", "divide") else 1)
    _assert_vectors(loop(op, operands, operands[0]).assembly)


def _assert_vectors(assembly: str) -> None:
    assert re.search(r"%[yz]mm", assembly)
    assert not re.search(r"\bcall", assembly)
