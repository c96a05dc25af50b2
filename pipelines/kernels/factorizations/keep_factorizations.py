"""``keep-factorizations``: choose what ``dispatch-factorizations`` computes, before all others become loops.

Before::

    %l = stablehlo.cholesky %a, lower = true : tensor<100x100xf32>

After: padded to whole strips, and a call of what represents a dispatch::

    %p = pad %a with the rows of an identity : tensor<1x112x112xf32>
    %f:2 = stablehlo.custom_call @hloforge.strips.cholesky(%p) {backend_config = {lower = true}}
    %l = slice of %f#0

What the dispatch consists of is in dialects that passes of StableHLO refuse: it is made at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import marks, ops
from hloforge.dialect.constants import full
from hloforge.dialect.idioms import matrix_transpose
from hloforge.dialect.marks import STRIPS
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import NORMALIZED, REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import CPU, PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.kernels.factorizations.strips import padded_size, suits_strips
from hloforge.pipelines.library_calls.own_calls import own_call
from hloforge.pipelines.library_calls.registry import CustomCall

CHOLESKY, SOLVE, LU = (f"{STRIPS}{name}" for name in ("cholesky", "solve", "lu"))
QR, ORTHOGONAL = f"{STRIPS}qr", f"{STRIPS}orthogonal"
TRIDIAGONAL_QL, BIDIAGONAL_QR = f"{STRIPS}tridiagonal_ql", f"{STRIPS}bidiagonal_qr"


@pattern("stablehlo.cholesky")
def cholesky(op: ir.Operation) -> Replacement:
    """A factor of any batch."""
    a = Value(op.operands[0])
    if not suits_strips(op):
        return NoMatch("an element type or a size without strips")
    lower = "lower" in op.attributes and ir.BoolAttr(op.attributes["lower"]).value
    factor, _ = _cholesky(_of_one_batch(a), lower)
    return ops.reshape(factor, a.dims)


@pattern("stablehlo.custom_call")
def own(op: ir.Operation) -> Replacement:
    """Calls of ours."""
    call = CustomCall.of(op)
    if call.target in _ITERATIONS and call.operands[0].dims[1] > 1:
        return _iterated(_ITERATIONS[call.target], *call.operands)
    if call.target == marks.CHOLESKY and suits_strips(op):
        return _cholesky(call.operands[0], call.setting("lower"))
    if call.target == marks.LU and suits_strips(op):
        return _lu(call.operands[0])
    if call.target == marks.QR and suits_strips(op):
        return _qr(call.operands[0])
    if call.target == marks.ORTHOGONAL and suits_strips(op):
        return _orthogonal(call.operands[0], call.operands[1], call.setting("columns"))
    return NoMatch("an element type, a size or a function without code of our own")


@pattern("stablehlo.triangular_solve")
def triangular_solve(op: Any) -> Replacement:
    """op(a) x = b, or x op(a) = b by the transposed equation."""
    if not suits_strips(op):
        return NoMatch("an element type or a size without strips")
    a, b = (_of_one_batch(Value(value)) for value in op.operands)
    left, lower, unit = (op.attributes[name].value for name in ("left_side", "lower", "unit_diagonal"))
    form = stablehlo.TransposeAttr(op.attributes["transpose_a"]).value
    # Real numbers have no conjugates.
    x = _solve(a, b if left else matrix_transpose(b), lower, (form != "NO_TRANSPOSE") == left, unit)
    return ops.reshape(x if left else matrix_transpose(x), Value(op.results[0]).dims)


def _of_one_batch(a: Value) -> Value:
    return ops.reshape(a, (prod(a.dims[:-2]), *a.dims[-2:]))


def _cholesky(a: Value, lower: bool) -> list[Value]:
    batch, n, _ = a.dims
    whole = _with_identity(a)
    results = [str(whole.shape), f"s32[{batch},1]"]
    factor, failed = own_call(CHOLESKY, [whole], results, lower=lower)
    return [factor[:, :n, :n], ops.reshape(failed, [batch])]


def _solve(a: Value, b: Value, lower: bool, transposed: bool, unit_diagonal: bool) -> Value:
    _, n, m = b.dims
    right = _padded(b, padded_size(b, n), padded_size(b, m))
    settings = {"lower": lower, "transposed": transposed, "unit_diagonal": unit_diagonal}
    (x,) = own_call(SOLVE, [_with_identity(a), right], [str(right.shape)], **settings)
    return x[:, :n, :m]


def _lu(a: Value) -> list[Value]:
    batch, m, n = a.dims
    pivots = min(m, n)
    # Zeros are no pivots: ties go to the first row.
    whole = _padded(a, padded_size(a, m), padded_size(a, n))
    results = [str(whole.shape), f"s32[{batch},1,{pivots}]", f"s32[{batch},1,{whole.dims[1]}]", f"s32[{batch},1,1]"]
    factors, exchanges, rows, info = own_call(LU, [whole], results, pivots=pivots)
    return [factors[:, :m, :n], exchanges, rows[:, :, :m], ops.reshape(info, [batch])]


def _qr(a: Value) -> list[Value]:
    batch, m, n = a.dims
    count = min(m, n)
    whole = _padded(a, padded_size(a, m), padded_size(a, n))
    results = [str(whole.shape), f"{a.element_type.name}[{batch},1,{padded_size(a, count)}]"]
    factors, taus = own_call(QR, [whole], results, reflectors=count)
    return [factors[:, :m, :n], taus[:, :, :count]]


def _orthogonal(a: Value, taus: Value, columns: int) -> list[Value]:
    batch, m, k = a.dims
    whole = _padded(a, padded_size(a, m), padded_size(a, k))
    size = padded_size(a, columns)
    shape = f"{a.element_type.name}[{batch},{whole.dims[1]},{size}]"
    (q,) = own_call(ORTHOGONAL, [whole, _padded(taus, 1, whole.dims[2])], [shape], columns=size)
    return [q[:, :m, :columns]]


# The methods on two diagonals of real numbers, of any size.
_ITERATIONS = {marks.TRIDIAGONAL_QL: TRIDIAGONAL_QL, marks.BIDIAGONAL_QR: BIDIAGONAL_QR}


def _iterated(target: str, d: Value, e: Value, *vectors: Value) -> list[Value]:
    padded = [_padded(rows, rows.dims[1], padded_size(rows, rows.dims[2])) for rows in vectors]
    values = [d, e, *padded]
    found = own_call(target, values, [str(value.shape) for value in values])
    return [
        *found[:2],
        *(rows[:, :, : vector.dims[2]] for rows, vector in zip(found[2:], vectors, strict=True)),
    ]


def _padded(a: Value, rows: int, columns: int) -> Value:
    """``[b, m, n]`` with zeros beside it."""
    _, m, n = a.dims
    if (m, n) == (rows, columns):
        return a
    return ops.pad(a, 0, [(0, 0, 0), (0, rows - m, 0), (0, columns - n, 0)])


def _with_identity(a: Value) -> Value:
    """``[b, n, n]`` with the rest of an identity beside it."""
    size = padded_size(a, a.dims[1])
    whole = _padded(a, size, size)
    if whole is a:
        return a
    rows, columns = (ops.iota("s32", whole.dims, axis) for axis in (1, 2))
    return ops.select(ops.eq(rows, columns) & (rows >= a.dims[1]), full(whole, 1), whole)


@register
@dataclass(frozen=True)
class KeepFactorizations(PatternPass):
    """Write factorizations of real matrices as calls that ``dispatch-factorizations`` replaces."""

    name: ClassVar[str] = "keep-factorizations"
    targets: ClassVar[frozenset[str]] = CPU
    requires: ClassVar[Facts] = NORMALIZED | frozenset({Fact.NO_LIBRARY_CALLS})
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.NO_KEPT_CALLS})
    patterns: ClassVar[tuple[Pattern, ...]] = (*cholesky, *own, *triangular_solve)
