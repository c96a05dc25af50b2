"""The elementwise decompositions through IREE: they link without a libm, and neither fused nor flushed arithmetic,
vectors or dynamic shapes change what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.program import Program, Signature
from hloforge.pipelines.decompose.arctangent import DecomposeArctangent
from hloforge.pipelines.decompose.complex_elementwise import DecomposeComplexElementwise
from hloforge.pipelines.decompose.cube_root import DecomposeCubeRoot
from hloforge.pipelines.decompose.exponential import DecomposeExponential
from hloforge.pipelines.decompose.power import DecomposePower
from hloforge.pipelines.decompose.remainder import DecomposeRemainder
from hloforge.pipelines.decompose.trigonometric import DecomposeTrigonometric
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.framework.passes import NativePass
from hloforge.runtime.compile.by_iree import compile_module
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.options import CompileOptions
from tests.elementwise import PAIRS, Array, assert_special, worst

# What a pass builds, only later ones lower.
PASSES = (
    DecomposeComplexElementwise(),
    NativePass("func.func(stablehlo-complex-math-expander)"),
    DecomposeExponential(),
    DecomposeCubeRoot(),
    DecomposePower(),
    DecomposeArctangent(),
    DecomposeTrigonometric(),
    DecomposeRemainder(),
    NativePass("func.func(canonicalize,cse)"),
)
REAL = {
    "cbrt": np.cbrt,
    "cosine": np.cos,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": lambda x: np.log(np.abs(x)),
    "log_plus_one": lambda x: np.log1p(np.abs(x)),
    "sine": np.sin,
    "tan": np.tan,
    "tanh": np.tanh,
    "atan2": np.arctan2,
    "power": np.power,
    "remainder": np.fmod,
}
POSITIVE = frozenset({"log", "log_plus_one"})
COMPLEX = {
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "sqrt": np.sqrt,
    "sine": np.sin,
    "cosine": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "logistic": lambda z: 1 / (1 + np.exp(-z)),
    "cbrt": lambda z: np.cbrt(np.abs(z)) * np.exp(1j * np.angle(z) / 3),
    "power": np.power,
    "divide": np.divide,
}
BINARY = frozenset({"atan2", "divide", "power", "remainder"})


def call_all(ops: Any, *inputs: Array, dynamic: bool = False) -> dict[str, Array]:
    """One program with every operation on the same operands, one compilation, one call."""
    element = element_type(inputs[0].dtype).mlir
    tensor = f"tensor<{'?' if dynamic else len(inputs[0])}x{element}>"
    lines = [f"%p = stablehlo.abs %x : {tensor}"] if not element.startswith("complex") else []
    for op in ops:
        first = "%p" if lines and not element.startswith("complex") and op in POSITIVE else "%x"
        operands = f"{first}, %y" if op in BINARY else first
        types = f"{tensor}, {tensor}" if op in BINARY else tensor
        lines.append(f'%{op} = "stablehlo.{op}"({operands}) : ({types}) -> {tensor}')
    results = ", ".join(f"%{op}" for op in ops), ", ".join([tensor] * len(ops))
    text = f"func.func @main(%x: {tensor}, %y: {tensor}) -> ({results[1]}) {{\n"
    text += "\n".join(lines) + f"\nreturn {results[0]} : {results[1]} }}"
    module = parse_module(text)
    signature = Signature.of(module)
    PassManager(list(PASSES)).run(module)
    program = Program(module, signature, "elementwise", "<test>")
    session = compile_module(program, Target.parse("cpu"), CompileOptions()).load()
    return dict(zip(ops, session(*inputs), strict=True))


def operands(dtype: Any) -> tuple[Array, Array]:
    rng = np.random.default_rng(11)
    x = np.concatenate([rng.uniform(-3, 3, 400), rng.uniform(-30, 30, 400), 2.0 ** rng.uniform(-40, 6, 200)])
    return x.astype(dtype), rng.permutation(x).astype(dtype)


# f32 exp, log and their kin stay IREE's, within XLA's own errors.
BOUNDS = {np.float64: {"tanh": 2.5}, np.float32: {"tanh": 6.0, "exponential_minus_one": 4.5, "log_plus_one": 2.5}}


@pytest.mark.parametrize("dtype", BOUNDS)
def test_real_functions_link_and_stay_accurate(dtype: Any) -> None:
    ordinary = operands(dtype)
    # IREE and XLA flush subnormal numbers: the interpreter's tests have them.
    normal = [(np.abs(values) > 1e-305) | (values == 0) | np.isnan(values) for values in PAIRS]
    with np.errstate(over="ignore", under="ignore"):
        special = tuple(values[normal[0] & normal[1]].astype(dtype) for values in PAIRS)
    results = call_all(REAL, *map(np.concatenate, zip(ordinary, special, strict=True)))
    count = len(ordinary[0])
    wide = np.longdouble if dtype == np.float64 else np.float64
    for op, function in REAL.items():
        arity, bound = 2 if op in BINARY else 1, BOUNDS[dtype].get(op, 1.2)
        with np.errstate(all="ignore"):
            truth = function(*(x.astype(wide) for x in ordinary[:arity]))
            want = function(*(x.astype(np.float64) for x in special[:arity])).astype(dtype)
        assert worst(results[op][:count], truth) <= (0 if op == "remainder" else bound), op
        # A result that is itself subnormal is flushed.
        kept = ~((want != 0) & (np.abs(want) < np.finfo(dtype).smallest_normal))
        inputs = [x[kept] for x in special[:arity]]
        assert_special(results[op][count:][kept], want[kept], *inputs, ulps=bound)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.complex64, pytest.param(np.complex128, marks=pytest.mark.slow)])
def test_complex_functions_link_and_stay_accurate(dtype: Any) -> None:
    rng = np.random.default_rng(12)
    z, w = ((rng.normal(size=300) + 1j * rng.normal(size=300)).astype(dtype) for _ in range(2))
    results = call_all(COMPLEX, z, w)
    wide = np.complex128 if dtype == np.complex64 else np.clongdouble
    arguments = z.astype(wide), w.astype(wide)
    for op, function in COMPLEX.items():
        truth = function(*arguments[: 2 if op in BINARY else 1])
        error = np.max(np.abs(results[op] - truth) / np.abs(truth)) / np.finfo(dtype).eps
        assert error < (20 if op == "power" else 4), op


def test_dynamic_shapes() -> None:
    x, y = (values[:77] for values in operands(np.float64))
    results = call_all(REAL, x, y, dynamic=True)
    assert worst(results["sine"], np.sin(x.astype(np.longdouble))) < 1
    assert_special(results["remainder"], np.fmod(x, y), x, y, ulps=0)
