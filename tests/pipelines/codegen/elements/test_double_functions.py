"""Functions of f64 that branch: exact digits by mpmath, of numbers and of vectors, and each lane by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

import hloforge
from tests.elementwise import SPECIAL, worst
from tests.pipelines.codegen.elements.loops import evaluate
from tests.pipelines.codegen.elements.xla_reference import assert_equal
from tests.pipelines.codegen.whole_programs import compiled

Array = np.ndarray[Any, Any]
Exact = Callable[..., Any]
# Bits of a product of the largest double with 2/pi, and of a result.
_DIGITS = 1300


def _exactly(function: Exact, *inputs: Array) -> Array:
    with mpmath.workprec(_DIGITS):
        exact = [function(*(mpmath.mpf(float(one)) for one in ones)) for ones in zip(*inputs, strict=True)]
        high = np.array([float(number) for number in exact])
        low = [float(number - mpmath.mpf(top)) for number, top in zip(exact, high, strict=True)]
    return high.astype(np.longdouble) + np.array(low)


@cache
def _angles() -> Array:
    """Of all sizes, and next to multiples of a quarter turn, where the digits cancel."""
    random = np.random.default_rng(0)
    turns = np.concatenate([np.arange(-40, 40), random.integers(1, 1 << 20, 80)])
    near = turns * (np.pi / 2)
    sizes = [random.uniform(-10, 10, 80), random.uniform(-(2.0**20), 2.0**20, 80), 10.0 ** random.uniform(-12, 308, 80)]
    return np.concatenate([*sizes, near, np.nextafter(near, np.inf), 2.0**20 * np.linspace(0.9999, 1.0001, 40)])


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize(("op", "exact", "bound"), [("sine", mpmath.sin, 0.8), ("cosine", mpmath.cos, 0.8)])
def test_angles_of_any_size(op: str, exact: Exact, bound: float, lanes: int) -> None:
    x = np.random.default_rng(lanes).permutation(_angles())
    assert worst(evaluate(op, [x], "f64", lanes=lanes), _exactly(exact, x)) < bound


def test_tangents_of_any_angle() -> None:
    x = _angles()
    assert worst(evaluate("tan", [x], "f64"), _exactly(mpmath.tan, x)) < 0.95


def test_what_an_angle_becomes_depends_on_no_other_lane() -> None:
    x = _angles()
    alone = evaluate("sine", [x], "f64")
    mixed = np.where(np.arange(x.size * 8) % 8 == 3, np.repeat(x, 8), 1e300)
    np.testing.assert_array_equal(evaluate("sine", [mixed], "f64", lanes=8)[3::8], alone)


@pytest.mark.parametrize("op", ["log", "log_plus_one"])
def test_logarithms_of_few_numbers(op: str) -> None:
    random, near = np.random.default_rng(1), np.random.default_rng(2).uniform(-1, 1, 400)
    x = np.concatenate([random.uniform(0.01, 20, 400), 2.0 ** random.uniform(-1000, 1020, 200), 1 + near * 0.1])
    if op == "log_plus_one":
        x = np.concatenate([x, near, near * 2.0 ** random.uniform(-60, 0, 400)])
    exact = mpmath.log if op == "log" else mpmath.log1p
    for lanes in (0, 8):
        few = {"elements": 1}
        assert worst(evaluate(op, [x], "f64", few, lanes=lanes), _exactly(exact, x)) < 0.8
        special = np.array([0.0, -0.0, -1.0, -2.0, np.inf, -np.inf, np.nan, -5e-324])
        with np.errstate(all="ignore"):
            want = np.where(np.abs(special) < 1e-300, -np.inf, np.log(special)) if op == "log" else np.log1p(special)
        assert_equal(evaluate(op, [special], "f64", few, lanes=lanes), want, [special])


@pytest.mark.parametrize("lanes", [0, 8])
def test_angles_of_two_sides(lanes: int) -> None:
    random = np.random.default_rng(3)
    y, x = (
        np.concatenate([random.normal(size=300), random.normal(size=300) * 10.0 ** random.uniform(-290, 290, 300)])
        for _ in range(2)
    )
    truth = _exactly(mpmath.atan2, y, x)
    normal = np.abs(truth) > 1e-300
    assert worst(evaluate("atan2", [y, x], "f64", lanes=lanes)[normal], truth[normal]) < 0.7
    y, x = (sides.ravel() for sides in np.meshgrid(SPECIAL, SPECIAL))
    assert_equal(evaluate("atan2", [y, x], "f64", lanes=lanes, flushing=False), np.arctan2(y, x), [y, x], 1.0)


def test_arrays_of_a_program() -> None:
    """Whole registers, what is left of them, and angles that a function of one number reduces."""
    x = np.concatenate([np.linspace(-9, 9, 1021), [1e22, -1e300, np.inf]])
    text = "func.func @main(%x: tensor<1024xf64>) -> tensor<1024xf64> { %r = stablehlo.sine %x : tensor<1024xf64>"
    got = np.asarray(compiled(hloforge.as_program(f"{text} return %r : tensor<1024xf64> }}")).load()(x))
    assert worst(got[:-1], _exactly(mpmath.sin, x[:-1])) < 0.8
    assert np.isnan(got[-1])
