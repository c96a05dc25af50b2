"""decompose-logarithm against numpy's longest float."""

from __future__ import annotations

import numpy as np
import pytest

from hloforge.dialect.element_types import element_type
from hloforge.dialect.operations import operations
from hloforge.importers.reader import read
from hloforge.pipelines.decompose.logarithm import DecomposeLogarithm, is_unsafe
from tests.elementwise import SPECIAL, assert_special, evaluate, worst
from tests.engines import interpret, shared_reference

RANGES = {"near 1": (-0.5, 0.5), "any": (-708, 709), "subnormal": (-744, -708)}


@pytest.mark.parametrize("name", RANGES)
def test_within_an_ulp(name: str) -> None:
    x = np.exp(np.random.default_rng(5).uniform(*RANGES[name], 2000))
    x = x[x > 0]
    assert worst(evaluate("log", (DecomposeLogarithm(),), x), np.log(x.astype(np.longdouble))) < 0.9


def test_special_values() -> None:
    with np.errstate(invalid="ignore", divide="ignore"):
        want = np.log(SPECIAL)
    assert_special(evaluate("log", (DecomposeLogarithm(),), SPECIAL), want, SPECIAL)


@pytest.mark.parametrize(("element", "narrow_only"), [("f32", False), ("bf16", False), ("bf16", True)])
def test_subnormal_numbers_are_those_of_xla(element: str, narrow_only: bool) -> None:
    program = read(
        f"func.func @main(%x: tensor<8x{element}>) -> tensor<8x{element}> {{\n"
        f"%r = stablehlo.log %x : tensor<8x{element}>\n return %r : tensor<8x{element}> }}"
    )
    x = np.array([0, -0.0, 1e-40, -1e-40, 1.2e-38, 2, np.inf, np.nan]).astype(element_type(element).dtype)
    copy = program.clone()
    DecomposeLogarithm(narrow_only).run(copy.module)
    (logarithm,) = operations(copy.module, ["stablehlo.log"])
    assert not is_unsafe(logarithm)
    got, want = interpret(copy.module, x)[0], shared_reference("xla").prepare(program)(x)
    np.testing.assert_allclose(*(np.asarray(values).astype(np.float32).ravel() for values in (got, want)), rtol=2**-7)


def test_sizes_may_be_known_to_the_call_alone() -> None:
    program = read(
        "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
        "%r = stablehlo.log %x : tensor<?xf32>\n return %r : tensor<?xf32> }"
    )
    DecomposeLogarithm().run(program.module)
    x = np.array([1, 1e-40], np.float32)
    np.testing.assert_array_equal(interpret(program.module, x)[0], np.array([0, -np.inf], np.float32))


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_others_are_left_alone(element: str) -> None:
    program = read(
        f"func.func @main(%x: tensor<8x{element}>) -> tensor<8x{element}> {{\n"
        f"%r = stablehlo.log %x : tensor<8x{element}>\n return %r : tensor<8x{element}> }}"
    )
    DecomposeLogarithm(narrow_only=True).run(program.module)
    (logarithm,) = operations(program.module, ["stablehlo.log"])
    assert is_unsafe(logarithm)
