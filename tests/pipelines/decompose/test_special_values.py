"""Elementwise functions of special values on the CPU: each answer is that of XLA or of StableHLO's interpreter.

The two differ where one flushes subnormal numbers, or misses a special value; numerics.md tells where.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

from hloforge.dialect.element_types import ElementType, element_type
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import Program, Signature
from hloforge.runtime.compile.compiler import compile_program
from tests.elementwise import Array
from tests.engines import shared_reference

UNARY = {
    "stablehlo": "abs cbrt ceil cosine exponential exponential_minus_one floor log log_plus_one logistic negate "
    "round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh",
    "chlo": "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc lgamma sinh square tan",
}
BINARY = {
    "stablehlo": "add atan2 divide maximum minimum multiply power remainder subtract",
    "chlo": "next_after polygamma zeta",
}
# Where both engines have no digit at a zero, scipy's answer in float64 is a third one.
EXACT = {"lgamma": scipy.special.gammaln}
# Above a few units in the last place, which is what the engines differ by; narrow types compute in wider ones.
TOLERANCES = {"f16": 5e-3, "bf16": 2e-2, "f32": 1e-4, "f64": 1e-9}


def special(row: ElementType, count: int) -> Array:
    """Zeros, infinities, NaN, extremes, and numbers about the turning points of the functions, the first ones first."""
    limits = ml_dtypes.finfo(row.dtype)
    least, most = 4 * float(limits.tiny), float(limits.max)
    values = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, most, -most, 2, -2, 0.5, -0.5, 3, least, -least, 1.5, -7.3, 10]
    values += [-10.5, 0.9, -0.99, 1.01, 1e-3, -3, 20, 50, -50, 88, -88, 150, 700, -745, 1e4, -1e6, 1e10, most / 2]
    with np.errstate(over="ignore"):
        return np.array(values[:count]).astype(row.dtype)


def text(names: dict[str, str], operands: int, row: ElementType, size: int) -> str:
    """``main`` with a result for each operation."""
    tensor = f"tensor<{size}x{row.mlir}>"
    arguments = ["%x", "%y"][:operands]
    ops = [f"{dialect}.{name}" for dialect, listed in names.items() for name in listed.split()]
    signature = f"({', '.join([tensor] * operands)}) -> {tensor}"
    lines = [f'%r{number} = "{op}"({", ".join(arguments)}) : {signature}' for number, op in enumerate(ops)]
    results = ", ".join(f"%r{number}" for number in range(len(ops)))
    types = ", ".join([tensor] * len(ops))
    typed = ", ".join(f"{name}: {tensor}" for name in arguments)
    return f"func.func @main({typed}) -> ({types}) {{\n{chr(10).join(lines)}\nreturn {results} : {types} }}"


def agree(got: Array, want: Any, row: ElementType) -> Array:
    a, b = got.astype(np.float64), np.asarray(want).astype(np.float64)
    flushed = 2 * float(ml_dtypes.finfo(row.dtype).tiny)
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= TOLERANCES[row.name] * np.abs(b) + flushed
    return np.asarray((np.isnan(a) & np.isnan(b)) | (a == b) | (np.isfinite(a) & np.isfinite(b) & near))


@pytest.mark.parametrize(("names", "operands"), [(UNARY, 1), (BINARY, 2)], ids=["unary", "binary"])
@pytest.mark.parametrize("name", ["f32", *(pytest.param(n, marks=pytest.mark.slow) for n in ("f16", "bf16", "f64"))])
def test_special_values_are_those_of_an_engine(name: str, names: dict[str, str], operands: int) -> None:
    row = element_type(name)
    grid = np.meshgrid(*[special(row, 40 if operands == 1 else 20)] * operands)
    inputs = [part.ravel() for part in grid]
    module = parse_module(text(names, operands, row, inputs[0].size))
    program = Program(module, Signature.of(module), name, "<string>")
    found = compile_program(program)(*inputs)
    engines = [shared_reference(engine).prepare(program)(*inputs) for engine in ("xla", "interpreter")]
    ops = [name for listed in names.values() for name in listed.split()]
    wrong = {}
    for op, got, *wanted in zip(ops, found, *engines, strict=True):
        with np.errstate(over="ignore"):
            known = [EXACT[op](*(x.astype(np.float64) for x in inputs)).astype(row.dtype)] if op in EXACT else []
        bad = ~np.any([agree(got, want, row) for want in [*wanted, *known]], axis=0)
        if bad.any():
            wrong[op] = [tuple(x[bad][:5] for x in inputs), got[bad][:5], *(np.asarray(w)[bad][:5] for w in wanted)]
    assert not wrong
