"""``@hloforge.grouped_product`` and ``grouped_contraction`` as the geometries of ``products/grouped*.py``."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from hloforge.dialect.marks import GROUPED_CONTRACTION
from hloforge.pipelines.codegen.contractions import emit, storage_kind
from hloforge.pipelines.codegen.graph import Op
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.products.gemm import Gemm
from hloforge.pipelines.codegen.products.grouped import GroupedGemm
from hloforge.pipelines.codegen.products.grouped_contraction import GroupedContraction
from hloforge.pipelines.codegen.products.operands import Matrix
from hloforge.pipelines.library_calls.registry import CustomCall

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator


def write_grouped_product(generator: Generator, op: Op, share: Share | None) -> None:
    """The code of a call, as ``passes/grouped_products.py`` says what it is."""
    product = replace(grouped_product_of(op, generator.extensions), members=generator.pointer(op.operands[2]))
    emit(generator, op, product, share)


def grouped_product_workgroups(generator: Generator, op: Op) -> int:
    """How many workgroups a call is shared out to."""
    return grouped_product_of(op, generator.extensions).workgroups(generator.machine)


def grouped_product_of(op: Op, extensions: frozenset[str]) -> GroupedGemm | GroupedContraction:
    """The product of rows, or over rows, that a call is."""
    call = CustomCall.of(op.mlir)
    if call.target == GROUPED_CONTRACTION:
        return _contraction(op, extensions)
    lhs, rhs, _ = op.operands
    (*batch, rows, k), n, groups = lhs.shape, op.result.shape[-1], rhs.shape[-3]
    matrix = (1, k) if call.setting("transposed") else (n, 1)
    gemm = Gemm(
        (math.prod(batch), groups),
        -(-rows // groups),
        n,
        k,
        Matrix(storage_kind(lhs.element), (rows * k, 0), k, 1),
        Matrix(storage_kind(rhs.element), (groups * k * n, k * n), *matrix),
        Matrix(storage_kind(op.result.element), (rows * n, 0), n, 1),
        extensions,
        strips=op.strips,
    )
    return GroupedGemm(gemm, rows)


def _contraction(op: Op, extensions: frozenset[str]) -> GroupedContraction:
    lhs, rhs, members = op.operands
    (*batch, groups, rows), m, n = members.shape, lhs.shape[-1], rhs.shape[-1]
    gemm = Gemm(
        (math.prod(batch), groups),
        m,
        n,
        rows,
        Matrix(storage_kind(lhs.element), (rows * m, 0), 1, m),
        Matrix(storage_kind(rhs.element), (rows * n, 0), n, 1),
        Matrix(storage_kind(op.result.element), (groups * m * n, m * n), n, 1),
        extensions,
    )
    return GroupedContraction(gemm)
