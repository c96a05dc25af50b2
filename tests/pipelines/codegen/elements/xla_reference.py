"""What XLA's CPU client computes for one elementwise operation, and operands that try its corners."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import in_context, parse_module
from hloforge.runtime.reference.jaxlib_engines import XlaEngine
from tests.pipelines.codegen.elements.loops import Array

INTEGERS = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
FLOATS = ("f16", "bf16", "f32", "f64")
COMPLEX = ("complex<f32>", "complex<f64>")
_NUMBERS = (
    *(0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 1.5, -1.5, 2, -2, 2.5, -2.5, 3, -3, 7, -7, 100, -100),
    *(0.49999997, -0.49999997, 8388609.0, -8388609.0, 1e-3, 1e9, -1e9, 3e9, -3e9, 1e19, -1e19, 65504, 65520, 70000),
    *(127.5, -128.5, 255.5, 1e-30, 1e37, 3.4e38, 88.7, 89, -87.3, -88, -104, 20, -20, 9, -9),
)
SUBNORMALS = (1e-38, 1e-40, -1e-40)


@cache
def _engine() -> XlaEngine:
    return XlaEngine()


def xla(op: str, inputs: Sequence[Array], result: str, attributes: str = "") -> Array:
    """``op`` with the dialect's prefix; ``attributes`` as MLIR spells them in braces."""
    types = [f"tensor<{len(array)}x{element_type(array.dtype).mlir}>" for array in inputs]
    target = f"tensor<{len(inputs[0])}x{result}>"
    names = ", ".join(f"%a{place}" for place in range(len(types)))
    arguments = ", ".join(f"%a{place}: {type_}" for place, type_ in enumerate(types))
    text = f"""func.func @main({arguments}) -> {target} {{
      %r = "{op}"({names}) {attributes} : ({", ".join(types)}) -> {target}
      return %r : {target} }}"""
    module = parse_module(text)
    with in_context(module):
        asm = str(module.operation.get_asm(binary=False, enable_debug_info=False)).encode()
    return _engine().compile(asm)(inputs)[0]


def samples(element: str, *, subnormal: bool = False) -> Array:
    """Special and random numbers of a type."""
    row, rng = element_type(element), np.random.default_rng(7)
    if element == "i1":
        return np.array([False, True])
    if row.is_integer:
        least, greatest = (
            (0, 2**row.bits - 1) if element[0] == "u" else (-(2 ** (row.bits - 1)), 2 ** (row.bits - 1) - 1)
        )
        numbers = [0, 1, 2, 3, 5, 7, 100, row.bits - 1, row.bits, row.bits + 1, -1, -2, -3, -7, -100]
        numbers += [least, least + 1, greatest, greatest - 1]
        kept = np.array([n for n in numbers if least <= n <= greatest], row.dtype)
        return np.concatenate([kept, rng.integers(least, greatest, 30, row.dtype, endpoint=True)])
    if row.is_complex:
        parts = _NUMBERS[:16]
        result = np.empty(len(parts) ** 2, row.dtype)
        result.real, result.imag = np.repeat(parts, len(parts)), np.tile(parts, len(parts))
        return result
    wide = [*_NUMBERS, *(SUBNORMALS if subnormal else ()), *rng.normal(size=40), *10 ** rng.uniform(-6, 6, 30)]
    with np.errstate(over="ignore"):
        narrow = np.array(wide).astype(row.dtype)
    least_normal = float(ml_dtypes.finfo(row.dtype).smallest_normal)
    size = np.abs(narrow.astype(np.float64))
    return narrow[(size == 0) | ~(size < least_normal) | subnormal]


def pairs(element: str) -> tuple[Array, Array]:
    """All pairs of samples; some thousands of complex ones."""
    numbers = samples(element)
    if element in COMPLEX:
        rng = np.random.default_rng(8)
        return rng.choice(numbers, 3000), rng.choice(numbers, 3000)
    return np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))


def differences(got: Array, want: Array, ulps: float = 0.0) -> Array:
    """Places where numbers are not equal to so many last places, signs of zero included; NaN equals NaN."""
    if np.iscomplexobj(got):
        return np.union1d(differences(got.real, want.real, ulps), differences(got.imag, want.imag, ulps))
    if got.dtype.kind in "iub":
        return np.flatnonzero(got != want)
    left, right = (array.astype(np.float64) for array in (got, want))
    with np.errstate(all="ignore"):
        near = np.abs(left - right) <= ulps * float(ml_dtypes.finfo(got.dtype).eps) * np.abs(right)
    same = ((left == right) | near) & (np.signbit(left) == np.signbit(right))
    return np.flatnonzero(~(same | (np.isnan(left) & np.isnan(right))))


def assert_equal(got: Array, want: Array, inputs: Sequence[Any], ulps: float = 0.0) -> None:
    """No ``differences``; the first ones are printed."""
    wrong = differences(got, want, ulps)
    rows = [(*(array[place] for array in inputs), got[place], want[place]) for place in wrong[:6]]
    assert not rows, f"{len(wrong)} of (operands, got, want): {rows}"
