"""Programs that compute the rounding errors of their own sums and products get them exactly, wherever they are read."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hloforge

# By name: instructions that end with the error %e of a rounded %v, of %x and %y.
_ERRORS = {
    "sum": """
  v = f32[7,18] add(x, y)
  part = f32[7,18] subtract(v, x)
  rest = f32[7,18] subtract(v, part)
  ex = f32[7,18] subtract(x, rest)
  ey = f32[7,18] subtract(y, part)
  e = f32[7,18] add(ex, ey)""",
    "square": """
  v = f32[7,18] multiply(x, x)
  n = f32[7,18] negate(v)
  f = f32[] constant(4097)
  fs = f32[7,18] broadcast(f), dimensions={}
  xf = f32[7,18] multiply(x, fs)
  xd = f32[7,18] subtract(x, xf)
  xh = f32[7,18] add(xf, xd)
  hh = f32[7,18] multiply(xh, xh)
  a = f32[7,18] add(n, hh)
  xl = f32[7,18] subtract(x, xh)
  hl = f32[7,18] multiply(xh, xl)
  b = f32[7,18] add(a, hl)
  c = f32[7,18] add(b, hl)
  ll = f32[7,18] multiply(xl, xl)
  e = f32[7,18] add(c, ll)""",
}
# Parameters, and parts of a quotient, which kernels make again.
_PARAMETERS = """
  x = f32[7,18] parameter(0)
  y = f32[7,18] parameter(1)"""
_QUOTIENT = """
  p = c64[7,18] parameter(0)
  re = f32[7,18] real(p)
  im = f32[7,18] imag(p)
  ni = f32[7,18] negate(im)
  cp = c64[7,18] complex(re, ni)
  m = f32[7,18] abs(cp)
  one = f32[] constant(1)
  ones = f32[7,18] broadcast(one), dimensions={}
  m1 = f32[7,18] add(m, ones)
  mc = c64[7,18] convert(m1)
  z = c64[7,18] divide(cp, mc)
  x = f32[7,18] imag(z)
  y = f32[7,18] real(z)"""
_PRODUCT = "g = c64[7,7] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
_ROWS = "r = f32[7] reduce(e, zero), dimensions={1}, to_apply=plus"
# What stands beside the errors: nothing, a product that no kernel of ours makes, sums of them.
_BESIDE = {"": "", "g": f"q = c64[18,7] parameter(1)\n  {_PRODUCT}", "r": f"zero = f32[] constant(0)\n  {_ROWS}"}
_TYPES = {"e": "f32[7,18]", "x": "f32[7,18]", "y": "f32[7,18]", "g": "c64[7,7]", "r": "f32[7]"}


def _run(body: str, results: list[str], *arguments: object) -> list[np.ndarray]:
    types = ", ".join(_TYPES[name] for name in results)
    text = f"""HloModule m
plus {{ pa = f32[] parameter(0)
  pb = f32[] parameter(1)
  ROOT pc = f32[] add(pa, pb) }}
ENTRY e {{{body}
  ROOT all = ({types}) tuple({", ".join(results)})
}}"""
    return list(hloforge.load(hloforge.compile(text.encode()))(*arguments))


def _exact(error: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    return wide + y - (x + y) if error == "sum" else wide**2 - x * x


@pytest.mark.parametrize(("error", "beside"), itertools.product(_ERRORS, ("", "r")))
def test_errors_of_parameters_are_exact(error: str, beside: str) -> None:
    x, y = np.random.default_rng(3).normal(size=(2, 7, 18)).astype(np.float32)
    got, *_ = _run(f"{_PARAMETERS}{_ERRORS[error]}\n  {_BESIDE[beside]}", ["e", *beside], x, y)
    np.testing.assert_array_equal(got, _exact(error, x, y))


@pytest.mark.parametrize(("error", "beside"), itertools.product(_ERRORS, _BESIDE))
def test_errors_of_a_quotient_are_exact(error: str, beside: str) -> None:
    random = np.random.default_rng(3)
    arguments = [(random.normal(size=(7, 18)) + 1j * random.normal(size=(7, 18))).astype(np.complex64)]
    x, y = _run(_QUOTIENT, ["x", "y"], *arguments)
    arguments += [np.ones((18, 7), np.complex64)] if beside == "g" else []
    got, *_ = _run(f"{_QUOTIENT}{_ERRORS[error]}\n  {_BESIDE[beside]}", ["e", *beside], *arguments)
    np.testing.assert_array_equal(got, _exact(error, x, y))
