"""Arithmetic and rounding of floats and complex numbers: XLA's CPU client judges, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.element_types import element_type
from tests.pipelines.codegen.elements.loops import evaluate
from tests.pipelines.codegen.elements.xla_reference import (
    COMPLEX,
    FLOATS,
    SUBNORMALS,
    assert_equal,
    differences,
    pairs,
    samples,
    xla,
)

_BINARY = ("add", "divide", "maximum", "minimum", "multiply", "subtract")
_UNARY = ("abs", "ceil", "floor", "negate", "round_nearest_afz", "round_nearest_even", "sign", "sqrt")


@pytest.mark.wide(3)
@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("op", [*_BINARY, "remainder"])
def test_binary(op: str, element: str) -> None:
    inputs = pairs(element)
    want = xla(f"stablehlo.{op}", inputs, element)
    assert_equal(evaluate(op, inputs, element), want, inputs)
    assert_equal(evaluate(op, inputs, element, lanes=16), want, inputs)


@pytest.mark.wide(3)
@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("op", _UNARY)
def test_unary(op: str, element: str) -> None:
    inputs = [samples(element)]
    want = xla(f"stablehlo.{op}", inputs, element)
    assert_equal(evaluate(op, inputs, element), want, inputs)
    assert_equal(evaluate(op, inputs, element, lanes=8), want, inputs)


@pytest.mark.parametrize("element", FLOATS)
def test_is_finite(element: str) -> None:
    inputs = [samples(element)]
    assert_equal(evaluate("is_finite", inputs, "i1"), np.isfinite(inputs[0]), inputs)


@pytest.mark.parametrize("element", ["bf16", "f32"])
def test_ceil_and_floor_of_subnormals(element: str) -> None:
    """Away from zero, as StableHLO says, though processors read them as zero; XLA's client gives zero."""
    x = np.array([*SUBNORMALS, 0.0, -0.0]).astype(element_type(element).dtype)
    for flushing in (False, True):
        got = evaluate("ceil", [x], element, flushing=flushing), evaluate("floor", [x], element, flushing=flushing)
        assert_equal(got[0], np.array([1, 1, -0.0, 0, -0.0]).astype(x.dtype), [x])
        assert_equal(got[1], np.array([0, 0, -1, 0, -0.0]).astype(x.dtype), [x])


def test_remainders_of_all_magnitudes() -> None:
    words = np.random.default_rng(3).integers(0, 2**32, (2, 100_000), np.uint32)
    x, y = words.view(np.float32)
    with np.errstate(invalid="ignore"):
        want = np.fmod(x, y)
    assert_equal(evaluate("remainder", [x, y], "f32"), want, [x, y])


@pytest.mark.parametrize("element", COMPLEX)
@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide"])
def test_complex(op: str, element: str) -> None:
    z, w = pairs(element)
    rng = np.random.default_rng(5)
    random = [(rng.normal(size=500) + 1j * rng.normal(size=500)).astype(z.dtype) for _ in range(2)]
    want = xla(f"stablehlo.{op}", [z, w], element)
    # Products of both kinds may be fused in one way or the other.
    assert_equal(evaluate(op, [z, w], element), want, [z, w], ulps=4)
    assert_equal(evaluate(op, [z, w], element, lanes=4), want, [z, w], ulps=4)
    got, truth = evaluate(op, random, element), xla(f"stablehlo.{op}", random, element)
    assert np.max(np.abs(got - truth) / np.abs(truth)) < 4 * np.finfo(z.dtype).eps


@pytest.mark.parametrize("element", COMPLEX)
def test_complex_parts(element: str) -> None:
    z, part = samples(element), "f32" if element == "complex<f32>" else "f64"
    assert_equal(evaluate("real", [z], part), z.real, [z])
    assert_equal(evaluate("imag", [z], part), z.imag, [z])
    assert_equal(evaluate("complex", [z.real.copy(), z.imag.copy()], element), z, [z])
    assert_equal(evaluate("negate", [z], element), -z, [z])
    assert_equal(evaluate("abs", [z], part), np.abs(z), [z], ulps=2)
    assert_equal(evaluate("sign", [z], element), xla("stablehlo.sign", [z], element), [z], ulps=2)


def test_nan_of_every_kind_stays_nan_in_half_precision() -> None:
    words = np.array([0x7F800001, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF, 0x7FC00000, 0x7FFF8000], np.uint32)
    for target in ("bf16", "f16"):
        assert np.isnan(evaluate("convert", [words.view(np.float32)], target).astype(np.float32)).all()
    assert not len(differences(np.array([np.nan]), np.array([np.nan])))
