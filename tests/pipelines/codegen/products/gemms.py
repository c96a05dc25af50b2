"""Runs a product on random matrices in guarded memory and compares it with numpy's in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.operands import Matrix
from hloforge.pipelines.codegen.products.work import Work
from hloforge.pipelines.framework.machine import Machine
from tests.pipelines.codegen.kernel_text import Kernel

from .jit import compiled, machine_of, skip_unless_made
from .memory import Guarded

DTYPES: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "half": np.float16,
    "bfloat": ml_dtypes.bfloat16,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
# Relative to the sum of the terms' magnitudes, for a depth of 1,000 and less.
TOLERANCES = {"float": 2e-6, "double": 4e-15, "half": 1e-3, "bfloat": 8e-3}
Hooks = Callable[[Function, Sequence[Value]], dict[str, Any]]


def dense(kind: str, batch: Sequence[int], rows: int, columns: int, *, transposed: bool = False) -> Matrix:
    """Row-major matrices after each other; ``transposed`` if ``[columns, rows]`` lie in memory."""
    strides, step = [], rows * columns
    for size in reversed(batch):
        strides.append(step)
        step *= size
    row, column = (1, rows) if transposed else (columns, 1)
    return Matrix(kind, tuple(reversed(strides)), row, column)


@dataclass(frozen=True)
class Found:
    """What a product left.

    Attributes:
        extra: the array of the hooks.
        product: by numpy, in float64.
    """

    extra: np.ndarray[Any, Any]
    product: np.ndarray[Any, Any]


def matrix_dtype(matrix: Matrix) -> Any:
    dtype = DTYPES[matrix.kind]
    if matrix.signed or not np.issubdtype(dtype, np.integer):
        return dtype
    return np.dtype(dtype).str.replace("i", "u")


def check(
    gemm: Gemm,
    *,
    machine: Machine | None = None,
    seed: int = 0,
    at_end: bool = True,
    workers: bool = True,
    hooks: Hooks | None = None,
    extra: np.ndarray[Any, Any] | None = None,
    expect: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]] = lambda product: product,
    compares: bool = True,
    **options: Any,
) -> Found:
    """Compile the product, run each piece, and compare. A right factor that is packed apart is packed before."""
    if machine is None:
        machine = machine_of(gemm.extensions)
        skip_unless_made(machine, gemm.lhs.kind)
    random = np.random.default_rng(seed)
    left, lhs = _factor(gemm.lhs, gemm.batch, gemm.m, gemm.k, random)
    right, rhs = _factor(gemm.rhs, gemm.batch, gemm.k, gemm.n, random)
    kernel = Kernel(5, machine.vector_bytes)
    function, pointers, (workgroup,) = kernel.part(kernel.arrays, [kernel.workgroup])
    pieces = gemm.workgroups(machine) if workers else 1
    given = hooks(function, pointers[4:]) if hooks is not None else {}
    if gemm.apart:
        extra, own = np.zeros(gemm.packed_bytes(machine), np.uint8), Kernel(3, machine.vector_bytes)
        packing, (_, factor, target), (packer,) = own.part(own.arrays, [own.workgroup])
        gemm.pack(packing, factor, target, packer, machine=machine)
        compiled(own.text()).run([left, right, extra], gemm.pack_workgroups(machine))
        given = {**given, "packed": pointers[4]}
    number = workgroup if workers else None
    gemm.emit(Work(function, *pointers[:4], number, machine, **given))
    code = compiled(kernel.text(), **options)

    out = np.zeros(_extent(gemm.out, gemm.batch, gemm.m, gemm.n), matrix_dtype(gemm.out))
    scratch = np.zeros(-(-gemm.scratch(machine) // 64) * 64, np.uint8)
    arrays = [left, right, out, scratch, extra if extra is not None else np.zeros(1, np.float32)]
    rooms = [Guarded(array.nbytes, at_end=at_end) for array in arrays]
    placed = [room.array(array) for room, array in zip(rooms, arrays, strict=True)]
    code.run(placed, pieces)
    assert all(room.is_intact for room in rooms), "bytes beside an array were written"
    assert all((one == other).all() for one, other in zip(placed[:2], arrays[:2], strict=True)), "a factor was written"
    found = _view(placed[2], gemm.out, gemm.batch, gemm.m, gemm.n)
    wide_lhs, wide_rhs = lhs.astype(np.float64), rhs.astype(np.float64)
    result = Found(placed[4].copy(), np.matmul(wide_lhs, wide_rhs))
    if not compares:
        return result
    if np.issubdtype(found.dtype, np.integer):
        with np.errstate(over="ignore"):
            product = np.matmul(lhs.astype(found.dtype), rhs.astype(found.dtype))
        np.testing.assert_array_equal(found, expect(product))
        return result
    expected = expect(result.product)
    scale = np.matmul(abs(wide_lhs), abs(wide_rhs)) + abs(expected) + 1e-30
    # Sums are those of the narrowest type that takes part.
    tolerance = max(TOLERANCES[kind] for kind in (gemm.out.kind, gemm.sums))
    error = float((abs(found.astype(np.float64) - expected) / scale).max())
    assert error < tolerance, f"relative error {error:.2g}"
    return result


def _extent(matrix: Matrix, batch: Sequence[int], rows: int, columns: int) -> int:
    sizes, strides = (*batch, rows, columns), (*matrix.batch, matrix.row, matrix.column)
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


def _view(flat: np.ndarray[Any, Any], matrix: Matrix, batch: Sequence[int], rows: int, columns: int) -> Any:
    strides = [stride * flat.itemsize for stride in (*matrix.batch, matrix.row, matrix.column)]
    return np.lib.stride_tricks.as_strided(flat, (*batch, rows, columns), strides)


def _factor(matrix: Matrix, batch: Sequence[int], rows: int, columns: int, random: np.random.Generator) -> Any:
    dtype = np.dtype(matrix_dtype(matrix))
    count = _extent(matrix, batch, rows, columns)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        # With the extremes, whose sums overflow first.
        flat = random.integers(info.min, info.max, count, dtype, endpoint=True)
    else:
        flat = random.standard_normal(count).astype(dtype)
    return flat, _view(flat, matrix, batch, rows, columns)
