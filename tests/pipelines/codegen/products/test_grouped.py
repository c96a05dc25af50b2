"""Products of rows with the matrix of their group by registers for tiles, against numpy, in memory with guards."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hloforge.pipelines.codegen.products import grouped, tile_registers
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.grouped import GroupedGemm
from hloforge.pipelines.codegen.products.operands import Matrix
from hloforge.pipelines.codegen.products.work import Work
from tests.pipelines.codegen.kernel_text import Kernel as Text

from .jit import TILED, WITH_TILES, compiled
from .memory import Guarded


def _check(sizes: tuple[int, int, int], members: np.ndarray[Any, Any], out: str, turned: bool) -> None:
    """Args: sizes: rows, terms and columns. members: which rows belong to which group, of each batch."""
    (rows, k, n), (batch, groups, _) = sizes, members.shape
    random = np.random.default_rng(rows)
    lhs = random.standard_normal((batch, rows, k)).astype(ml_dtypes.bfloat16)
    rhs = random.standard_normal((batch, groups, k, n)).astype(ml_dtypes.bfloat16)
    gemm = Gemm(
        (batch, groups),
        -(-rows // groups),
        n,
        k,
        Matrix("bfloat", (rows * k, 0), k, 1),
        Matrix("bfloat", (groups * k * n, k * n), *((1, k) if turned else (n, 1))),
        Matrix(out, (rows * n, 0), n, 1),
        WITH_TILES,
    )
    text = Text(5, TILED.vector_bytes)
    function, pointers, (workgroup,) = text.part(text.arrays, [text.workgroup])
    product = GroupedGemm(gemm, rows, pointers[4])
    assert product._plan(TILED).arithmetic == tile_registers.arithmetic_of(gemm)
    product.emit(Work(function, *pointers[:4], workgroup, TILED))
    stored = np.ascontiguousarray(rhs.swapaxes(-1, -2) if turned else rhs)
    results = np.full((batch, rows, n), np.nan, ml_dtypes.bfloat16 if out == "bfloat" else np.float32)
    scratch = np.full(-(-product.scratch(TILED) // 64) * 64, 0xFF, np.uint8)
    arrays = [lhs, stored, results, scratch, members]
    rooms = [Guarded(array.nbytes, at_end=turned) for array in arrays]
    placed = [room.array(array) for room, array in zip(rooms, arrays, strict=True)]
    compiled(text.text()).run(placed, product.workgroups(TILED))
    assert all(room.is_intact for room in rooms), "bytes beside an array were written"
    wide, matrices = lhs.astype(np.float64), rhs.astype(np.float64)
    belongs = members.astype(np.float64)
    expected = np.einsum("bgr,brk,bgkn->brn", belongs, wide, matrices)
    scale = np.einsum("bgr,brk,bgkn->brn", belongs, abs(wide), abs(matrices)) + 1e-30
    error = float((abs(placed[2].astype(np.float64) - expected) / scale).max())
    assert error < (8e-3 if out == "bfloat" else 1e-5), f"relative error {error:.2g}"


@pytest.mark.wide(4)
@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("out", ["bfloat", "float"])
@pytest.mark.parametrize("sizes", [(90, 64, 48), (150, 72, 64), (200, 96, 16)], ids=str)
def test_rows_by_tile_registers(
    sizes: tuple[int, int, int], out: str, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups of one row, of none and of many; then rows that belong to several groups, or to none."""
    if not allowed:
        monkeypatch.setattr(tile_registers, "_REQUEST", 0)
    # Several copies of rows for a group.
    monkeypatch.setattr(grouped, "_COPIED_ROWS", 64)
    random, rows = np.random.default_rng(7), sizes[0]
    alone = np.zeros((2, 4, rows), np.uint8)
    for batch in range(2):
        owner = random.choice([0, 2, 2, 2], rows)
        owner[5] = 3
        alone[batch, owner, np.arange(rows)] = 1
    shared = (random.random((1, 3, rows)) < 0.4).astype(np.uint8)
    for turned in (False, True):
        _check(sizes, alone, out, turned)
        _check(sizes, shared, out, turned)
