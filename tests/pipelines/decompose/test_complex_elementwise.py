"""decompose-complex-elementwise against numpy: extended precision for accuracy, C's rules for special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import Program, Signature
from hloforge.pipelines.decompose.complex_elementwise import DecomposeComplexElementwise
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.framework.passes import NativePass
from hloforge.runtime.reference.engines import reference
from tests.elementwise import Array, complex_array, evaluate, program
from tests.engines import interpret

PASSES = (DecomposeComplexElementwise(), NativePass("func.func(stablehlo-complex-math-expander)"))


def logistic(z: Array) -> Array:
    """1 / (1 + e^-z) in the half plane where nothing overflows, and its mirror image."""
    small = np.exp(np.where(z.real < 0, z, -z))
    return np.where(z.real < 0, small, np.ones_like(z)) / (1 + small)


FUNCTIONS = {
    "cbrt": lambda z: np.cbrt(np.abs(z)) * np.exp(1j * np.angle(z) / 3),
    "cosine": np.cos,
    "exponential_minus_one": np.expm1,
    "logistic": logistic,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "sine": np.sin,
    "tan": np.tan,
    "tanh": np.tanh,
}
TRUTHS = {np.complex64: np.complex128, np.complex128: np.clongdouble}


def relative_error(got: Array, truth: Array) -> float:
    """In units of the element type's epsilon, by modulus: complex arithmetic promises no more."""
    return float(np.max(np.abs(got - truth) / np.abs(truth)) / np.finfo(got.dtype).eps)


def plane(dtype: Any, count: int = 300) -> Array:
    rng = np.random.default_rng(9)
    radius = 10.0 ** rng.uniform(-6, 1.2, count)
    return (radius * np.exp(1j * rng.uniform(-np.pi, np.pi, count))).astype(dtype)


@pytest.mark.parametrize("op", FUNCTIONS)
@pytest.mark.parametrize("dtype", TRUTHS)
def test_accurate_in_the_whole_plane(op: str, dtype: Any) -> None:
    z = plane(dtype)
    assert relative_error(evaluate(op, PASSES, z), FUNCTIONS[op](z.astype(TRUTHS[dtype]))) < 4


GRID = np.array([complex(a, b) for a in (0.0, -0.0, 1.0, -2.0, 800.0, -800.0, 1e300) for b in (0.0, -0.0, 1.0, -0.5)])
INFINITE = np.array([complex(a, b) for a in (np.inf, -np.inf) for b in (0.0, -0.0, 1.0, -2.0)])


def assert_parts(got: Array, want: Array, z: Array) -> None:
    for part in ("real", "imag"):
        a, b = getattr(got, part), getattr(want, part)
        with np.errstate(invalid="ignore"):
            same = (np.isnan(a) & np.isnan(b)) | (a == b) | (np.abs(a - b) <= 1e-14 * np.abs(b))
        assert same.all(), [
            (complex(x), complex(g), complex(w)) for x, g, w in zip(z, got, want, strict=True) if g != w
        ]


@pytest.mark.parametrize("op", ["sine", "cosine", "tan", "tanh"])
def test_special_values(op: str) -> None:
    z = np.concatenate([GRID, INFINITE, complex_array(INFINITE.imag, INFINITE.real)])
    with np.errstate(all="ignore"):
        assert_parts(evaluate(op, PASSES, z), FUNCTIONS[op](z), z)


def test_large_results_do_not_overflow_early() -> None:
    z = np.array([1 + 710j, 0.1 - 710.2j, 710 + 1j], np.complex128)
    wide = z.astype(np.clongdouble)
    assert relative_error(evaluate("sine", PASSES, z[:2]), np.sin(wide[:2])) < 400
    assert relative_error(evaluate("cosine", PASSES, z[:2]), np.cos(wide[:2])) < 400


def test_logistic_at_infinity_and_at_its_poles() -> None:
    z = np.array([complex(np.inf, 1), complex(-np.inf, 1), 800 + 3j, 3.141592j, 1e-9 + 3.1415926535j])
    got = evaluate("logistic", PASSES, z)
    assert got[:3].tolist() == [1, 0, 1]
    # Around the pole at pi i, 1 + e^-z is 1 - e^-d with the distance d = z - pi i; pi is the sum of two floats.
    distance = complex_array(z.real[3:], (z.imag[3:] - np.pi) - 1.2246467991473532e-16)
    assert relative_error(got[3:], -1 / np.expm1(-distance)) < 8


def test_power_has_its_special_bases_and_exponents() -> None:
    z = np.array([0, 0, 2 + 1j, -1, 1j, 4])
    w = np.array([0, 2, 0, 0.5, 2, -0.5 + 0j])
    got = evaluate("power", PASSES, z.astype(complex), w.astype(complex))
    assert np.abs(got - [1, 0, 1, 1j, -1, 0.5]).max() < 1e-15


@pytest.mark.parametrize("dtype", TRUTHS)
def test_power_of_ordinary_numbers(dtype: Any) -> None:
    z, w = plane(dtype), plane(dtype)[::-1] / 4
    wide = TRUTHS[dtype]
    assert relative_error(evaluate("power", PASSES, z, w), z.astype(wide) ** w.astype(wide)) < 40


def test_division_by_zero_and_infinity_follows_c() -> None:
    inf, nan = np.inf, np.nan
    rows = [
        (1 + 1j, 0j, complex(inf, inf)),
        (-1 + 2j, complex(-0.0, 0.0), complex(inf, -inf)),
        (complex(inf, 1), 1 + 0j, complex(inf, nan)),
        (1 - 1j, complex(inf, 5), 0j),
        (0j, 0j, complex(nan, nan)),
        (3e300 + 1e300j, 2e300 + 1e300j, 1.4 - 0.2j),
        (3e-300 + 1e-300j, 2e-300 + 1e-300j, 1.4 - 0.2j),
    ]
    z, w, want = (np.array(column) for column in zip(*rows, strict=True))
    assert_parts(evaluate("divide", PASSES, z, w), want, z)


@pytest.mark.parametrize("dtype", TRUTHS)
def test_modulus_neither_overflows_nor_loses_digits(dtype: Any) -> None:
    z = np.array([3e37 + 4e37j, 3e-37 - 4e-37j, 5, -1e30j, complex(np.inf, np.nan), 0, complex(np.nan, 1)], dtype)
    row = element_type(dtype)
    part = "f32" if row.name == "c64" else "f64"
    module = parse_module(f"""func.func @main(%a: tensor<7x{part}>, %b: tensor<7x{part}>) -> tensor<7x{part}> {{
      %z = stablehlo.complex %a, %b : tensor<7x{row.mlir}>
      %r = stablehlo.abs %z : (tensor<7x{row.mlir}>) -> tensor<7x{part}>
      return %r : tensor<7x{part}> }}""")
    PassManager(list(PASSES)).run(module)
    (got,) = interpret(module, z.real.copy(), z.imag.copy())
    np.testing.assert_allclose(got, np.abs(z), rtol=2 * np.finfo(dtype).eps)


EDGES = np.array([0.0, -0.0, 0.5, -2.0, 1e300, np.inf, -np.inf, np.nan])


def by_xla(op: str, *inputs: Array) -> Array:
    """The operation by XLA's CPU client."""
    module = parse_module(program(op, inputs[0].dtype, str(len(inputs[0])), len(inputs)))
    engine = reference("xla", isolated=False)
    return complex_array(*engine.prepare(Program(module, Signature.of(module), op, "<string>"))(*inputs))


@pytest.mark.parametrize("op", ["divide", "exponential_minus_one", "logistic", "power", "rsqrt"])
def test_infinite_and_undefined_operands_are_as_with_xla(op: str) -> None:
    grid = np.meshgrid(*[EDGES] * (4 if op in ("divide", "power") else 2))
    parts = [part.ravel() for part in grid]
    inputs = [complex_array(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    if op == "logistic":
        # XLA takes the angle of e^-inf for a number that is missed, the interpreter and hloforge do not.
        inputs = [z[np.isfinite(z.real) | np.isfinite(z.imag)] for z in inputs]
    if op == "power":
        # Of zero XLA knows real powers only; great angles have no digit in common.
        inputs = [z[(inputs[0] != 0) & (np.abs(inputs[1].imag) != 1e300) & (inputs[1].real != 1e300)] for z in inputs]
    got, want = evaluate(op, PASSES, *inputs), by_xla(op, *inputs)
    finite = np.isfinite(got) & np.isfinite(want)
    assert (np.abs(got - want)[finite] <= 1e-13 * np.abs(want)[finite]).all()
    for a, b in ((got.real[~finite], want.real[~finite]), (got.imag[~finite], want.imag[~finite])):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


def test_powers_of_zero() -> None:
    w = np.array([complex(1, np.inf), complex(2, np.nan), 1 + 1j, 0.5, 0, -1, 1j])
    got = evaluate("power", PASSES, np.zeros(len(w), complex), w)
    np.testing.assert_array_equal(np.isnan(got), [True, True, False, False, False, True, True])
    assert got[2:5].tolist() == [0, 0, 1]


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_arctangent_of_numbers_whose_squares_leave_the_range(size: float) -> None:
    y, x = np.array([1 + 3j, -1 + 0.5j, 3j, 2], np.complex64), np.array([2 - 1j, 1 + 1j, 1, 1 - 1j], np.complex64)
    wide_y, wide_x = y.astype(complex), x.astype(complex)
    truth = -1j * np.log((wide_x + 1j * wide_y) / np.sqrt(wide_x**2 + wide_y**2))
    assert relative_error(evaluate("atan2", PASSES, y * np.float32(size), x * np.float32(size)), truth) < 8
