"""Functions of elements: numpy and mpmath in more digits say how far they are from the truth, XLA what is special."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from hloforge.pipelines.codegen.elements.memory import constant, load, store
from hloforge.pipelines.codegen.elements.table import apply
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from tests.elementwise import worst
from tests.pipelines.codegen.elements.loops import Array, evaluate
from tests.pipelines.codegen.elements.xla_reference import assert_equal, pairs, samples, xla
from tests.pipelines.codegen.jit import compiled

_Reference = Callable[[Any], Any]


def _by_mpmath(function: Callable[[Any], Any]) -> _Reference:
    def evaluated(x: Array) -> Array:
        with mpmath.workdps(40):
            exact = [function(mpmath.mpf(float(number))) for number in x]
            high = np.array([float(number) for number in exact])
            low = np.array([float(number - mpmath.mpf(float(number))) for number in exact])
        return high.astype(np.longdouble) + low

    return evaluated


_FUNCTIONS: dict[str, _Reference] = {
    "cbrt": np.cbrt,
    "cosh": np.cosh,
    "cosine": np.cos,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sine": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "erf": _by_mpmath(mpmath.erf),
    "erfc": _by_mpmath(mpmath.erfc),
    "erf_inv": _by_mpmath(mpmath.erfinv),
}
# In units of the last place. XLA's own errors on these numbers, f32 and f64: exponential_minus_one 5.5 and 4.4,
# log_plus_one 2.5 and 72, sinh 8 and 15, tanh 4.3 and 6.4, erf 4.9 and 2.0, erfc 64 and 500, erf_inv 65 and 1e5.
_BOUNDS = {
    "cbrt": {"f32": 0.501, "f64": 0.75},
    "cosh": {"f32": 1.5, "f64": 1.5},
    "cosine": {"f32": 0.502, "f64": 0.8},
    "exponential": {"f32": 1.0, "f64": 0.65},
    "exponential_minus_one": {"f32": 1.05, "f64": 1.1},
    "log": {"f32": 0.85, "f64": 0.8},
    "log_plus_one": {"f32": 1.4, "f64": 1.3},
    "logistic": {"f32": 2.3, "f64": 2.3},
    "rsqrt": {"f32": 1.5, "f64": 1.5},
    "sine": {"f32": 0.502, "f64": 0.8},
    "sinh": {"f32": 2.0, "f64": 2.0},
    "sqrt": {"f32": 0.501, "f64": 0.501},
    "tan": {"f32": 0.503, "f64": 0.95},
    "tanh": {"f32": 4.5, "f64": 1.5},
    "erf": {"f32": 5.5, "f64": 2.5},
    "erfc": {"f32": 3.5, "f64": 3.5},
    "erf_inv": {"f32": 4.0, "f64": 5.0},
}
_CASES = [(op, element) for op, bounds in _BOUNDS.items() for element in bounds]
_POSITIVE = frozenset({"log", "rsqrt", "sqrt"})
_SLOW = frozenset({"erf", "erfc", "erf_inv"})
_CHLO = _SLOW | {"cosh", "sinh"}


def _operands(op: str, element: str) -> Array:
    rng, count = np.random.default_rng(11), 300 if op in _SLOW else 30_000
    near = rng.uniform(-1, 1, count)
    if op == "erf_inv":
        x = np.concatenate([near, 1 - 2.0 ** rng.uniform(-20, 0, count)])
    elif op in _SLOW:
        x = np.concatenate([near * 3, rng.uniform(-3, 9 if element == "f32" else 26, count)])
    else:
        tiny = near * 2.0 ** rng.uniform(-40, 8, count)
        far = near * 2.0 ** (127 if element == "f32" else 1020)
        wide = op in ("cbrt", "cosine", "log", "rsqrt", "sine", "sqrt", "tan")
        x = np.concatenate([near, near * 9, near * 80, tiny, *([far, near * 1e6] if wide else [])])
    if op in _POSITIVE:
        x = np.abs(x)
    if op == "log_plus_one":
        x = np.concatenate([near, np.abs(x)])
    return x.astype(np.float32 if element == "f32" else np.float64)


@pytest.mark.wide(3)
@pytest.mark.parametrize(("op", "element"), _CASES)
def test_errors(op: str, element: str) -> None:
    x = _operands(op, element)
    truth = _FUNCTIONS[op](x.astype(np.longdouble))
    assert worst(evaluate(op, [x], element), truth) < _BOUNDS[op][element]


@pytest.mark.wide(3)
@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("op", _FUNCTIONS)
def test_special_values(op: str, element: str) -> None:
    x = samples(element)
    want = xla(f"{'chlo' if op in _CHLO else 'stablehlo'}.{op}", [x], element)
    # XLA's erfc and erf_inv lose digits near their ends.
    ulps = {
        "erfc": 2000.0,
        "erf_inv": 100.0,
        "exponential_minus_one": 6.0,
        "tanh": 6.0,
        "cosh": 16.0,
        "sinh": 16.0,
    }.get(op, 4.0)
    if element == "f16":
        # XLA flushes, or rounds twice, what is subnormal there.
        kept = ~(np.abs(want.astype(np.float32)) < 2.0**-14) | (want == 0) & (
            op not in ("logistic", "exponential", "erfc")
        )
        x, want = x[kept], want[kept]
    assert_equal(evaluate(op, [x], element), want, [x], ulps)
    assert_equal(evaluate(op, [x], element, lanes=8), want, [x], ulps)


@pytest.mark.parametrize(("op", "element"), _CASES)
def test_nan_of_any_bits_stays_nan(op: str, element: str) -> None:
    """Arithmetic on the bits of numbers makes finite ones of some NaN."""
    if element == "f64":
        x = np.array([0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF, 0xFFF8000000000000, 2**64 - 1], np.uint64).view(
            np.float64
        )
    else:
        x = np.array([0x7F800001, 0x7FFFFFFF, 0xFFC00000, 0xFFFFFFFF], np.uint32).view(np.float32)
    assert np.isnan(evaluate(op, [x], element)).all()


@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("op", ["atan2", "power"])
def test_special_pairs(op: str, element: str) -> None:
    inputs = pairs(element)
    want = xla(f"stablehlo.{op}", inputs, element)
    size = np.abs(want.astype(np.float64))
    # Results that are subnormal are flushed, or not, by the way that they are computed.
    normal = (size == 0) | ~(size < (2.0**-14 if element == "f16" else 2.0**-120))
    tiny = np.abs(evaluate(op, inputs, element).astype(np.float64)) < 2.0**-14
    kept = normal & ~(tiny & (element == "f16"))
    inputs = inputs[0][kept], inputs[1][kept]
    assert_equal(evaluate(op, inputs, element), want[kept], inputs, ulps=3)
    assert_equal(evaluate(op, inputs, element, lanes=8), want[kept], inputs, ulps=3)


def test_errors_of_pairs() -> None:
    rng = np.random.default_rng(12)
    x, y = ((rng.normal(size=50_000) * 2.0 ** rng.uniform(-60, 60, 50_000)).astype(np.float32) for _ in range(2))
    assert worst(evaluate("atan2", [y, x], "f32"), np.arctan2(y.astype(np.float64), x.astype(np.float64))) < 0.502
    base, exponent = rng.uniform(0.01, 20, 50_000), rng.uniform(-25, 25, 50_000)
    base, exponent = base.astype(np.float32), exponent.astype(np.float32)
    truth = np.power(base.astype(np.float64), exponent.astype(np.float64))
    assert worst(evaluate("power", [base, exponent], "f32"), truth) < 0.502


def test_bfloat_functions_are_rounded_ones_of_f32() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(samples("bf16").dtype)
    x = every[np.abs(every.astype(np.float32)) < 50]
    got = evaluate("exponential", [x], "bf16")
    want = np.exp(x.astype(np.float64)).astype(np.float32).astype(x.dtype)
    assert_equal(got, want, [x])


@pytest.mark.parametrize("op", ["cbrt", "log_plus_one", "sine", "sinh", "tan", "tanh"])
def test_subnormal_operands(op: str) -> None:
    """As docs/numerics.md promises where subnormals are flushed."""
    x = np.array([1e-40, -1e-40, 3e-39, 1e-45], np.float32)
    want = _FUNCTIONS[op](x.astype(np.float64)).astype(np.float32)
    assert_equal(evaluate(op, [x], "f32"), want, [x])


@pytest.mark.parametrize("op", ["exponential", "log", "sqrt"])
def test_complex(op: str) -> None:
    rng, count = np.random.default_rng(13), 5000
    z = np.concatenate(
        [
            rng.normal(size=count) + 1j * rng.normal(size=count),
            20 * (rng.normal(size=count) + 1j * rng.normal(size=count)),
            np.exp(rng.normal(size=count) * 1e-4 + 1j * rng.uniform(-3.2, 3.2, count)),
        ]
    ).astype(np.complex64)
    truth = {"exponential": np.exp, "log": np.log, "sqrt": np.sqrt}[op](z.astype(np.complex128))
    finite = np.abs(truth) < 1e38
    error = np.abs(evaluate(op, [z], "complex<f32>") - truth) / np.abs(truth)
    assert np.max(error[finite & (np.abs(truth) > 1e-37)]) < np.finfo(np.float32).eps


@pytest.mark.parametrize("op", ["exponential", "log", "sqrt"])
def test_complex_special_values(op: str) -> None:
    """C17 Annex G, by the C library behind numpy; the sign of NaN and what it leaves open is not compared."""
    z = samples("complex<f32>")
    # Zeros of no certain sign; and the root of what is just below the real axis, where XLA takes the upper side.
    z = z[~(np.isneginf(z.real) & ~np.isfinite(z.imag) if op == "exponential" else (z.imag == 0) & np.signbit(z.imag))]
    with np.errstate(all="ignore"):
        want = {"exponential": np.exp, "log": np.log, "sqrt": np.sqrt}[op](z.astype(np.complex128)).astype(np.complex64)
    got = evaluate(op, [z], "complex<f32>")
    for part in ("real", "imag"):
        left, right = getattr(got, part), getattr(want, part)
        assert_equal(np.nan_to_num(left, nan=7.0), np.nan_to_num(right, nan=7.0), [z], ulps=2)


@pytest.mark.parametrize("exponent", [1.0, 2.0, 3.0, -1.0, 0.5, 1.5])
@pytest.mark.parametrize("lanes", [0, 8])
def test_powers_with_a_known_exponent(exponent: float, lanes: int) -> None:
    x = samples("f32")
    x = x[: len(x) // 8 * 8]

    def write(function: Function, pointers: list[Value], numbers: list[Value]) -> None:
        known = constant(function, "f32", exponent)
        assert isinstance(known, Value)
        with function.loop(0, numbers[0], max(lanes, 1)) as i:
            assert isinstance(i, Value)
            base = load(function, pointers[0], "f32", i, lanes)
            other = function.spread(known, lanes) if lanes else known
            store(function, apply("power", [base, other], ["f32", "f32"], "f32", {}), pointers[1], "f32", i)

    out = np.zeros_like(x)
    called = compiled(write, 2, 1)
    called(x, out, len(x))
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), np.full(len(x), exponent)).astype(np.float32)
    normal = (np.abs(want) >= 2.0**-126) | (want == 0) | np.isnan(want)
    assert_equal(out[normal], want[normal], [x[normal]], ulps=1.5)
    # The exponential's last coefficient.
    assert ("3EF00C0E4E15189C" in called.text.upper()) == (exponent == 1.5)
