"""Conversions between element types: XLA's CPU client judges."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hloforge.dialect.element_types import element_type
from tests.engines import interpret
from tests.pipelines.codegen.elements.loops import evaluate
from tests.pipelines.codegen.elements.xla_reference import COMPLEX, FLOATS, INTEGERS, assert_equal, samples, xla

_REAL = ("i1", *INTEGERS, *FLOATS)
_FORMATS = [(5, 2), (8, 7), (8, 0), (3, 0), (1, 1), (11, 5), (4, 3), (5, 10), (8, 23), (11, 52), (2, 60)]


@pytest.mark.wide(3)
@pytest.mark.parametrize("target", [*_REAL, *COMPLEX])
@pytest.mark.parametrize("source", [*_REAL, *COMPLEX])
def test_convert(source: str, target: str) -> None:
    if source in COMPLEX and target not in COMPLEX:
        pytest.skip("XLA's client has none")
    inputs = [samples(source, subnormal=True)]
    want = xla("stablehlo.convert", inputs, target)
    assert_equal(evaluate("convert", inputs, target), want, inputs)
    if {"f32", "bf16"} & {source, target}:
        assert_equal(evaluate("convert", inputs, target, lanes=8), want, inputs)


def test_complex_to_real_takes_the_real_part() -> None:
    assert list(evaluate("convert", [np.array([300.5 + 2j, -1 - 1j])], "i8")) == [127, -1]


def _doubles_between_narrow_ones() -> NDArray[np.float64]:
    steps = np.arange(-40, 41) * 2.0**-30
    return np.concatenate([middle + steps for middle in (1 + 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-11, 1 + 3 * 2.0**-8)])


def test_double_is_rounded_twice_to_bfloat() -> None:
    x = _doubles_between_narrow_ones()
    assert_equal(evaluate("convert", [x], "bf16"), xla("stablehlo.convert", [x], "bf16"), [x])


def test_double_is_rounded_twice_to_half() -> None:
    # As XLA does, but where the processor has AVX512-FP16, whose instruction rounds once: so numpy judges.
    x = _doubles_between_narrow_ones()
    assert_equal(evaluate("convert", [x], "f16"), x.astype(np.float32).astype(np.float16), [x])


@pytest.mark.parametrize(
    ("source", "target"),
    [("f32", "i32"), ("ui32", "f32"), ("f64", "i64"), ("i64", "f64"), ("bf16", "i16"), ("i16", "bf16"), ("ui8", "i8")],
)
def test_bitcast(source: str, target: str) -> None:
    x = samples(source)
    assert evaluate("bitcast_convert", [x], target).tobytes() == x.tobytes()


@pytest.mark.parametrize("source", ["f16", "ui16"])
def test_bitcast_of_halves(source: str) -> None:
    target = "ui16" if source == "f16" else "f16"
    words = np.arange(1 << 16, dtype=np.uint16)
    got = evaluate("bitcast_convert", [words.view(element_type(source).dtype)], target).view(np.uint16)
    # Loads may make signalling NaN quiet.
    quiet = np.where((words & 0x7FFF) > 0x7C00, 0x200, 0)
    np.testing.assert_array_equal(got | quiet, words | quiet)


@pytest.mark.parametrize("element", FLOATS)
def test_reduce_precision(element: str) -> None:
    x = samples(element)
    tensor = f"tensor<{len(x)}x{element}>"
    for exponent, mantissa in _FORMATS:
        text = f"""func.func @main(%x: {tensor}) -> {tensor} {{
          %r = stablehlo.reduce_precision %x, format = e{exponent}m{mantissa} : {tensor}
          return %r : {tensor} }}"""
        got = evaluate("reduce_precision", [x], element, {"exponent_bits": exponent, "mantissa_bits": mantissa})
        assert_equal(got, interpret(text, x)[0], [x])


def test_bfloat_of_every_word() -> None:
    """Through a register and back: loads and stores keep the bits."""
    words = np.arange(1 << 16, dtype=np.uint16)
    out = evaluate("convert", [words.view(element_type("bf16").dtype)], "bf16")
    np.testing.assert_array_equal(out.view(np.uint16), words)
