"""Factorizations and triangular systems: StableHLO's operations and our own calls, as ``algorithms/`` compute them.

``library_calls/own_calls.py`` says what the calls mean. Matrices of a batch are shared out to workgroups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hloforge.dialect import marks
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.pipelines.codegen import sharing
from hloforge.pipelines.codegen.algorithms.bidiagonal import Bidiagonal
from hloforge.pipelines.codegen.algorithms.bidiagonal_merging import BidiagonalVectors
from hloforge.pipelines.codegen.algorithms.cholesky import Cholesky
from hloforge.pipelines.codegen.algorithms.hessenberg import Hessenberg
from hloforge.pipelines.codegen.algorithms.lu import LU, Factorization
from hloforge.pipelines.codegen.algorithms.merging import TridiagonalEigenvectors
from hloforge.pipelines.codegen.algorithms.qr import QR, Orthogonal
from hloforge.pipelines.codegen.algorithms.reflected import Reflected
from hloforge.pipelines.codegen.algorithms.triangular_solve import TriangularSolve
from hloforge.pipelines.codegen.algorithms.tridiagonal import Tridiagonal
from hloforge.pipelines.codegen.emit import accessing
from hloforge.pipelines.codegen.graph import Op
from hloforge.pipelines.codegen.handing_out import hand_out
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Number, Value
from hloforge.pipelines.codegen.nest_loops import Share
from hloforge.pipelines.codegen.refusal import RefusedError
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.library_calls.registry import CustomCall, target_of

if TYPE_CHECKING:
    from hloforge.pipelines.codegen.blocks import Generator

_Rows = tuple[Number, Number] | None
# Their element types; narrower ones are computed in f32.
_ELEMENTS = frozenset({"f32", "f64", "complex<f32>", "complex<f64>"})
# Rows from which on threads share the steps of a matrix.
_SHARED_ROWS = 128


@dataclass(frozen=True)
class _Work:
    """What an operation computes.

    Attributes:
        batch: matrices.
        multiplications: of all of them.
        scratch: bytes that a workgroup works in.
        write: the loops over some matrices, given the memory to work in.
    """

    batch: int
    multiplications: float
    scratch: int
    write: Callable[[Generator, Function, Value, _Rows], None]


def write_factorization(generator: Generator, op: Op, share: Share | None) -> None:
    """The code of an operation or call. Raises RefusedError for an unknown call."""
    work = _work(generator, op)
    memory = sharing.scratch(generator, work.scratch, share)
    function = generator.writer.function
    with accessing(function, ""):
        work.write(generator, function, memory, sharing.rows_of(share, work.batch))


def factorization_workgroups(generator: Generator, op: Op) -> int:
    """How many workgroups an operation or call is shared out to."""
    work, machine = _work(generator, op), generator.machine
    return sharing.pieces(work.batch, work.multiplications, machine.vector_bytes // 4, machine)


def _work(generator: Generator, op: Op) -> _Work:
    name = target_of(op.mlir) if op.name == "custom_call" else op.name
    found = _WORKS.get(name)
    if found is None:
        raise RefusedError(f"a call of {name}")
    if op.operands[0].element not in _ELEMENTS:
        raise RefusedError(f"{name} of {op.operands[0].element}")
    return found(op, generator.machine)


def _cholesky(op: Op, machine: Machine) -> _Work:
    (a,) = op.operands
    *batch, n, _ = a.shape
    count = math.prod(batch)
    plan = Cholesky(count, n, a.element, _lower(op), machine.vector_bytes)

    def write(generator: Generator, function: Function, memory: Value, rows: _Rows) -> None:
        failed = generator.elements(op.results[1]) if len(op.results) > 1 else None
        plan.write(function, generator.elements(a), generator.elements(op.results[0]), memory, failed, rows)

    return _Work(count, count * n**3 / 6, plan.scratch, write)


def _lower(op: Op) -> bool:
    if op.name == "custom_call":
        return bool(CustomCall.of(op.mlir).setting("lower"))
    return "lower" in op.mlir.attributes and ir.BoolAttr(op.attribute("lower")).value


def _triangular_solve(op: Op, machine: Machine) -> _Work:
    a, b = op.operands
    *batch, rows, columns = b.shape
    count = math.prod(batch)
    left, lower, unit = (ir.BoolAttr(op.attribute(name)).value for name in ("left_side", "lower", "unit_diagonal"))
    form = stablehlo.TransposeAttr(op.attribute("transpose_a")).value
    shape = (rows, columns)
    plan = TriangularSolve(
        count, shape, b.element, left, lower, unit, form == "TRANSPOSE", form == "ADJOINT", machine.vector_bytes
    )

    def write(generator: Generator, function: Function, memory: Value, rows: _Rows) -> None:
        plan.write(function, generator.elements(a), generator.elements(b), generator.elements(op.result), memory, rows)

    n, rights = shape if left else shape[::-1]
    return _Work(plan.strips, count * rights * n * n / 2, plan.scratch, write)


def _lu(op: Op, machine: Machine) -> _Work:
    (a,) = op.operands
    count, m, n = a.shape
    plan = LU(count, m, n, a.element, machine.vector_bytes)

    def write(generator: Generator, function: Function, memory: Value, rows: _Rows) -> None:
        found = Factorization(*map(generator.elements, op.results))
        hand = partial(hand_out, generator, _shares(count, min(m, n), machine))
        plan.write(function, generator.elements(a), found, memory, rows, hand)

    return _Work(count, count * m * n * min(m, n) / 3, plan.scratch, write)


def _qr(op: Op, machine: Machine) -> _Work:
    (a,) = op.operands
    count, m, n = a.shape
    plan = QR(count, m, n, a.element, machine.vector_bytes)

    def write(generator: Generator, function: Function, memory: Value, rows: _Rows) -> None:
        factors, taus = map(generator.elements, op.results)
        hand = partial(hand_out, generator, _shares(count, min(m, n), machine))
        plan.write(function, generator.elements(a), factors, taus, memory, rows, hand)

    return _Work(count, 2 * count * m * n * min(m, n) / 3, plan.scratch, write)


def _orthogonal(op: Op, machine: Machine) -> _Work:
    a, taus = op.operands
    count, m, reflectors = a.shape
    columns = op.result.shape[2]
    plan = Orthogonal(count, m, reflectors, columns, a.element, machine.vector_bytes)

    def write(generator: Generator, function: Function, memory: Value, rows: _Rows) -> None:
        factors, scales, target = (generator.elements(array) for array in (a, taus, op.result))
        hand = partial(hand_out, generator, _shares(count, min(m, reflectors), machine))
        plan.write(function, factors, scales, target, memory, rows, hand)

    return _Work(count, 2 * count * m * reflectors * columns, plan.scratch, write)


def _tridiagonal(op: Op, machine: Machine) -> _Work:
    (a,) = op.operands
    count, n, _ = a.shape
    shares = _shares(count, n, machine)
    plan = Tridiagonal(count, n, a.element, shares, machine.vector_bytes)

    def write(generator: Generator, function: Function, memory: Value, rows: _Rows) -> None:
        reflectors, diagonals = map(generator.elements, op.results)
        hand = partial(hand_out, generator, shares)
        plan.write(function, generator.elements(a), reflectors, diagonals, memory, hand, rows)

    return _Work(count, 2 * count * n**3 / 3, plan.scratch, write)


def _bidiagonal(op: Op, machine: Machine) -> _Work:
    (a,) = op.operands
    count, n, _ = a.shape
    shares = _shares(count, n, machine)
    plan = Bidiagonal(count, n, a.element, shares, machine.vector_bytes)

    def write(generator: Generator, function: Function, memory: Value, rows: _Rows) -> None:
        left, right, diagonals = map(generator.elements, op.results)
        hand = partial(hand_out, generator, shares)
        plan.write(function, generator.elements(a), left, right, diagonals, memory, hand, rows)

    return _Work(count, 4 * count * n**3 / 3, plan.scratch, write)


def _hessenberg(op: Op, machine: Machine) -> _Work:
    (a,) = op.operands
    count, n, _ = a.shape
    shares = _shares(count, n, machine)
    plan = Hessenberg(count, n, a.element, shares, machine.vector_bytes)

    def write(generator: Generator, function: Function, memory: Value, rows: _Rows) -> None:
        form, reflectors, taus = map(generator.elements, op.results)
        hand = partial(hand_out, generator, shares)
        plan.write(function, generator.elements(a), form, reflectors, taus, memory, hand, rows)

    return _Work(count, 2 * count * n**3, plan.scratch, write)


def _tridiagonal_eigenvectors(op: Op, machine: Machine) -> _Work:
    d, e = op.operands
    count, n = d.shape
    shares = _shares(count, n, machine)
    plan = TridiagonalEigenvectors(count, n, d.element, shares, machine.vector_bytes)

    def write(generator: Generator, function: Function, memory: Value, rows: _Rows) -> None:
        values, left, vectors = map(generator.elements, op.results)

        given = generator.elements(d), generator.elements(e)
        plan.write(function, *given, values, vectors, memory, partial(hand_out, generator, shares), rows)
        function.clear(left.pointer, count * n * left.size)

    return _Work(count, 2 * count * n**3 / 3, plan.scratch, write)


def _bidiagonal_vectors(op: Op, machine: Machine) -> _Work:
    d, e = op.operands
    count, n = d.shape
    shares = _shares(count, n, machine)
    plan = BidiagonalVectors(count, n, d.element, shares, machine.vector_bytes)

    def write(generator: Generator, function: Function, memory: Value, rows: _Rows) -> None:
        values, missing, left, right = map(generator.elements, op.results)
        given = generator.elements(d), generator.elements(e)
        plan.write_both(function, *given, values, left, right, memory, partial(hand_out, generator, shares), rows)
        function.clear(missing.pointer, count * n * missing.size)

    return _Work(count, 4 * count * n**3 / 3, plan.scratch, write)


def _shares(count: int, n: int, machine: Machine) -> int:
    """How many workgroups share a matrix of n rows; one where those of a batch are shared out."""
    return machine.workers if count == 1 and n >= _SHARED_ROWS else 1


def _reflected(op: Op, machine: Machine) -> _Work:
    reflectors, taus, c = op.operands
    count, columns, n = c.shape
    plan = Reflected(count, n, columns, c.element, machine.vector_bytes)

    def write(generator: Generator, function: Function, memory: Value, rows: _Rows) -> None:
        given = generator.elements(reflectors), generator.elements(taus), generator.elements(c)
        plan.write(function, *given, generator.elements(op.result), memory, rows)

    return _Work(plan.strips, count * columns * n**2, plan.scratch, write)


_WORKS: dict[str, Callable[[Op, Machine], _Work]] = {
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    marks.CHOLESKY: _cholesky,
    marks.LU: _lu,
    marks.QR: _qr,
    marks.ORTHOGONAL: _orthogonal,
    marks.TRIDIAGONAL: _tridiagonal,
    marks.BIDIAGONAL: _bidiagonal,
    marks.HESSENBERG: _hessenberg,
    marks.TRIDIAGONAL_EIGENVECTORS: _tridiagonal_eigenvectors,
    marks.BIDIAGONAL_VECTORS: _bidiagonal_vectors,
    marks.REFLECTED: _reflected,
}
# Calls that stay calls.
NATIVE = tuple(sorted(name for name in _WORKS if name.startswith(marks.PREFIX)))
