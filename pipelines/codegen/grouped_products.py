"""``@hloforge.grouped_product`` as the geometry of ``products/grouped.py``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hloforge.pipelines.codegen.contractions import emit, storage_kind
from hloforge.pipelines.codegen.graph import Op
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.grouped import GroupedGemm
from hloforge.pipelines.codegen.products.operands import Matrix
from hloforge.pipelines.library_calls.registry import CustomCall

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator


def write_grouped_product(generator: Generator, op: Op, share: Share | None) -> None:
    """The code of a call: rows ``[m, k]``, matrices and members ``[g, m]``, as ``passes/grouped_products.py`` says."""
    product = replace(grouped_product_of(op, generator.extensions), members=generator.pointer(op.operands[2]))
    emit(generator, op, product, share)


def grouped_product_workgroups(generator: Generator, op: Op) -> int:
    """How many workgroups a call is shared out to."""
    return grouped_product_of(op, generator.extensions).workgroups(generator.machine)


def grouped_product_of(op: Op, extensions: frozenset[str]) -> GroupedGemm:
    """The product of rows that a call is."""
    lhs, rhs, _ = op.operands
    (rows, k), (_, n), groups = lhs.shape, op.result.shape, rhs.shape[0]
    is_transposed = bool(CustomCall.of(op.mlir).setting("transposed"))
    matrix = Matrix(storage_kind(rhs.element), (k * n,), *((1, k) if is_transposed else (n, 1)))
    gemm = Gemm(
        (groups,),
        -(-rows // groups),
        n,
        k,
        Matrix(storage_kind(lhs.element), (0,), k, 1),
        matrix,
        Matrix(storage_kind(op.result.element), (0,), n, 1),
        extensions,
        strips=op.strips,
    )
    return GroupedGemm(gemm, rows)
