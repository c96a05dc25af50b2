"""Elementwise programs of one operation, and distances to the truth in units of the last place."""

from __future__ import annotations

from typing import Any

import numpy as np

from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import parse_module
from hloforge.dialect.operations import operations
from hloforge.dialect.program import entry_function
from hloforge.pipelines.framework.manager import PassManager
from hloforge.pipelines.framework.passes import Pass
from tests.engines import interpret

Array = np.ndarray[Any, Any]
SPECIAL = np.array(
    [
        *(0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 3e-310, -3e-310, 1.7e308, -1.7e308),
        *(1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, 1.5, -1e16, 1e-300),
    ]
)
PAIRS = tuple(np.array([(x, y) for x in SPECIAL for y in SPECIAL]).T)


def program(op: str, dtype: Any, sizes: str, operands: int = 1) -> str:
    """``main`` with one elementwise operation, of StableHLO or "chlo.f"; complex results leave as their parts."""
    row = element_type(dtype)
    shape = f"{sizes}x" if sizes else ""
    tensor = f"tensor<{shape}{row.mlir}>"
    names = ["%x", "%y"][:operands]
    body = f'%r = "{_named(op)}"({", ".join(names)}) : ({", ".join([tensor] * operands)}) -> {tensor}'
    arguments = ", ".join(f"{name}: {tensor}" for name in names)
    if not row.is_complex:
        return f"func.func @main({arguments}) -> {tensor} {{ {body} return %r : {tensor} }}"
    part = f"tensor<{shape}{'f32' if row.name == 'c64' else 'f64'}>"
    return f"""func.func @main({arguments}) -> ({part}, {part}) {{
      {body}
      %a = stablehlo.real %r : ({tensor}) -> {part}
      %b = stablehlo.imag %r : ({tensor}) -> {part}
      return %a, %b : {part}, {part} }}"""


def _named(op: str) -> str:
    return op if "." in op else f"stablehlo.{op}"


def evaluate(op: str, passes: tuple[Pass, ...], *inputs: Array) -> Array:
    """The operation's results by the passes and StableHLO's interpreter, which has no fused or flushed arithmetic."""
    sizes = "x".join(map(str, inputs[0].shape))
    module = parse_module(program(op, inputs[0].dtype, sizes, len(inputs)))
    PassManager(list(passes)).run(module)
    left = [inner for inner in operations(module, [_named(op)]) if inner.results[0].type == operand_type(module)]
    assert not left, f"{op} is still there"
    parts = interpret(module, *inputs)
    return parts[0] if len(parts) == 1 else complex_array(*parts)


def operand_type(module: Any) -> Any:
    """The type of the first parameter of ``main``."""
    return entry_function(module).type.inputs[0]


def complex_array(real_part: Array, imaginary_part: Array) -> Array:
    """Both parts as they are; ``a + 1j * b`` would make NaN of an infinite part."""
    result = np.empty(real_part.shape, np.result_type(real_part, np.complex64))
    result.real, result.imag = real_part, imaginary_part
    return result


def worst(got: Array, truth: Any) -> float:
    """The largest distance in ulp of the truth, where that is a normal number; infinite for a NaN or infinity."""
    with np.errstate(over="ignore"):
        want = np.asarray(truth).astype(got.dtype)
    row = np.finfo(got.dtype)
    normal = (np.abs(want) >= row.smallest_normal) & np.isfinite(want)
    distance = np.abs(got[normal].astype(np.longdouble) - np.asarray(truth)[normal])
    ulps = distance / np.spacing(np.abs(want[normal])).astype(np.longdouble)
    return float(np.max(np.where(np.isfinite(got[normal]), ulps, np.inf)))


def assert_special(got: Array, want: Array, *inputs: Array, ulps: float = 1.0) -> None:
    """Equal to the last bits: signs of zero, infinities and NaN included."""
    both_nan = np.isnan(got) & np.isnan(want)
    with np.errstate(invalid="ignore"):
        near = np.abs(got - want) <= ulps * np.spacing(np.abs(want))
    same = ((got == want) | near) & (np.signbit(got) == np.signbit(want))
    wrong = np.flatnonzero(~(both_nan | same))
    rows = [(*(float(values[i]) for values in inputs), float(got[i]), float(want[i])) for i in wrong[:8]]
    assert not rows, f"{len(wrong)} of (operands, got, want): {rows}"
