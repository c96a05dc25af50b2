"""Products of complex matrices of all forms and sizes, against numpy, in memory with guards on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hloforge.pipelines.codegen.products.complex_products import ComplexGemm
from hloforge.pipelines.codegen.products.operands import Matrix
from hloforge.pipelines.codegen.products.work import Work
from hloforge.pipelines.framework.machine import AVX2, AVX512, NEON, Machine
from tests.pipelines.codegen.kernel_text import Kernel

from .gemms import dense
from .jit import HOST, compiled
from .memory import Guarded

_DTYPES: dict[str, Any] = {"float": np.complex64, "double": np.complex128}
# Relative to the sum of the terms' magnitudes.
_TOLERANCES = {"float": 2e-6, "double": 4e-15}


def product(m: int, k: int, n: int, kind: str = "float", *, batch: Sequence[int] = (), turned: str = "") -> ComplexGemm:
    """Dense matrices; ``turned`` names the factors that are stored with their sizes exchanged."""
    return ComplexGemm(
        tuple(batch),
        m,
        n,
        k,
        dense(kind, batch, m, k, transposed="l" in turned),
        dense(kind, batch, k, n, transposed="r" in turned),
        dense(kind, batch, m, n),
    )


def check(gemm: ComplexGemm, *, machine: Machine = HOST, at_end: bool = True, workers: bool = True) -> None:
    """Compile the product, run each piece, and compare."""
    random = np.random.default_rng(0)
    (left, lhs), (right, rhs) = (
        _factor(matrix, gemm.batch, *sizes, random)
        for matrix, sizes in ((gemm.lhs, (gemm.m, gemm.k)), (gemm.rhs, (gemm.k, gemm.n)))
    )
    kernel = Kernel(4, machine.vector_bytes)
    function, pointers, (workgroup,) = kernel.part(kernel.arrays, [kernel.workgroup])
    pieces = gemm.workgroups(machine) if workers else 1
    gemm.emit(Work(function, *pointers[:4], workgroup if workers else None, machine))
    code = compiled(kernel.text())
    out = np.zeros((*gemm.batch, gemm.m, gemm.n), _DTYPES[gemm.out.kind])
    arrays = [left, right, out, np.zeros(-(-gemm.scratch(machine) // 64) * 64, np.uint8)]
    rooms = [Guarded(array.nbytes, at_end=at_end) for array in arrays]
    placed = [room.array(array) for room, array in zip(rooms, arrays, strict=True)]
    code.run(placed, pieces)
    assert all(room.is_intact for room in rooms), "bytes beside an array were written"
    wide = lhs.astype(np.complex128), rhs.astype(np.complex128)
    expected, scale = np.matmul(*wide), np.matmul(*map(abs, wide)) + 1e-30
    error = float((abs(placed[2] - expected) / scale).max())
    assert error < _TOLERANCES[gemm.out.kind], f"relative error {error:.2g}"


def _factor(matrix: Matrix, batch: Sequence[int], rows: int, columns: int, random: np.random.Generator) -> Any:
    sizes, strides = (*batch, rows, columns), (*matrix.batch, matrix.row, matrix.column)
    count = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    flat = (random.standard_normal(count) + 1j * random.standard_normal(count)).astype(_DTYPES[matrix.kind])
    view = np.lib.stride_tricks.as_strided(flat, sizes, [stride * flat.itemsize for stride in strides])
    return flat, view


SIZES = [
    (1, 1, 1),
    (3, 3, 3),
    (17, 5, 31),
    (64, 64, 64),
    (127, 70, 53),
    (33, 300, 130),
    (1, 40, 250),
    (2, 37, 130),
    (4, 19, 700),
    (1, 100, 1),
    (70, 45, 1),
    (29, 2, 3),
    (70, 45, 3),
    (6, 50, 200),
    (9, 4000, 5),
    (40, 3000, 20),
]


@pytest.mark.parametrize("turned", ["", "l", "r", "lr"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sizes_and_orders(size: tuple[int, int, int], turned: str) -> None:
    check(product(*size, turned=turned))
    check(product(*size, "double", turned=turned), at_end=False)


@pytest.mark.parametrize("machine", [AVX2, AVX512, NEON], ids=["avx2", "avx512", "neon"])
@pytest.mark.parametrize("turned", ["", "l", "r", "lr"])
def test_vectors_of_other_widths(machine: Machine, turned: str) -> None:
    for size in ((5, 9, 7), (1, 33, 40), (40, 33, 2), (20, 70, 90)):
        for kind in ("float", "double"):
            check(product(*size, kind, turned=turned), machine=machine)


@pytest.mark.parametrize("size", [(400, 300, 300), (8, 3000, 400), (1, 900, 1500), (40, 2000, 300)], ids=str)
@pytest.mark.parametrize("turned", ["", "l", "r", "lr"])
def test_workers(size: tuple[int, int, int], turned: str) -> None:
    gemm = product(*size, turned=turned)
    assert gemm.workgroups(HOST) > 1
    check(gemm)


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 60),
    st.lists(st.integers(1, 3), max_size=2),
    st.sampled_from(["", "l", "r", "lr"]),
    st.sampled_from(["float", "double"]),
)
@settings(max_examples=60, deadline=None)
def test_any_size(m: int, k: int, n: int, batch: list[int], turned: str, kind: str) -> None:
    check(product(m, k, n, kind, batch=batch, turned=turned))


def test_a_batch_between_rows_and_columns() -> None:
    """Rows of the left factor lie as far apart as batches ask for, and one factor serves all matrices."""
    m, k, n, count = 5, 9, 21, 4
    lhs = Matrix("float", (k,), count * k, 1)
    check(ComplexGemm((count,), m, n, k, lhs, Matrix("float", (0,), n, 1), dense("float", (count,), m, n)))
