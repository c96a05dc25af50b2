"""QR factorizations by reflectors, a block of columns per iteration, and products with their orthogonal factors.

A block's columns are transposed, so that they make vectors, and reflected column by column in a loop that becomes one
dispatch; then products of matrices reflect the rest of the matrix. What reaches over the edge is filled with zeros.

Source: LAPACK "geqrf", "orgqr", "ormqr"; Golub & Van Loan, 5.2; JAX ``jax.lax.linalg.qr``, ``householder_product``,
``ormqr``.
"""

from __future__ import annotations

from math import prod

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.idioms import batch_matmul, conjugate, matrix_transpose, zeros
from hloforge.dialect.values import Value
from hloforge.pipelines.library_calls import own_calls
from hloforge.pipelines.library_calls.blocks import (
    ROWS,
    columns_at,
    count,
    has_short_rows,
    rows_at,
    spread,
    with_columns,
    with_rows,
    zero_unless,
)
from hloforge.pipelines.library_calls.householder import block_at, block_triangle, block_vectors, reflector, with_block
from hloforge.pipelines.library_calls.matrices import identity
from hloforge.pipelines.library_calls.registry import CustomCall, custom_call_target, lapack, solver

_REAL, _COMPLEX = ("s", "d"), ("c", "z")


@custom_call_target("Qr", *lapack("geqrf"), *solver("geqrf"))
def geqrf(call: CustomCall) -> list[Value]:
    """a -> r with the vectors of reflectors below it, and their taus."""
    (a,) = call.operands
    *batch, m, n = a.dims
    if not prod(a.dims):
        return [a, zeros(a.element_type, [*batch, min(m, n)])]
    factors, taus = own_calls.qr(ops.reshape(a, (prod(batch), m, n)))
    return [ops.reshape(factors, a.dims), ops.reshape(taus, [*batch, min(m, n)])]


@custom_call_target(
    "ProductOfElementaryHouseholderReflectors",
    *lapack("orgqr", prefixes=_REAL),
    *lapack("ungqr", prefixes=_COMPLEX),
    *solver("orgqr"),
)
def orgqr(call: CustomCall) -> list[Value]:
    """Vectors of reflectors ``[..., m, n]`` and taus ``[..., k]`` -> the first n columns of their product."""
    a, taus = call.operands
    if not prod(a.dims):
        return [a]
    *batch, m, n = a.dims
    k = taus.dims[-1]
    if not k:
        return [ops.reshape(identity(a.element_type, (prod(batch), m, n)), a.dims)]
    flat = ops.reshape(a, (prod(batch), m, n))
    q = own_calls.orthogonal(flat[:, :, :k], ops.reshape(taus, (prod(batch), 1, k)), n)
    return [ops.reshape(q, a.dims)]


@custom_call_target(*lapack("ormqr", prefixes=_REAL), *lapack("unmqr", prefixes=_COMPLEX), *solver("ormqr"))
def ormqr(call: CustomCall) -> list[Value]:
    """a, taus, c -> q c, or c q, with the product q of reflectors or its adjoint."""
    a, taus, c = call.operands
    left, adjoint = call.setting("left"), call.setting("transpose")
    if not prod(c.dims) or not prod(taus.dims):
        return [c]
    flat = ops.reshape(c, (prod(c.dims[:-2]), *c.dims[-2:]))
    if left:
        return [ops.reshape(product(a, taus, flat, adjoint=adjoint), c.dims)]
    transposed = product(a, taus, conjugate(matrix_transpose(flat)), adjoint=not adjoint)
    return [ops.reshape(conjugate(matrix_transpose(transposed)), c.dims)]


def factored(a: Value) -> tuple[Value, Value]:
    """``own_calls.qr`` by loops."""
    batch, m, n = a.dims
    k = min(m, n)
    blocks, width = _blocks(k)
    length = max(n, blocks * width)
    padded = a if length == n else ops.pad(a, 0, [(0, 0, 0), (0, 0, 0), (0, length - n, 0)])

    def turn(start: Value, a: Value, taus: Value) -> list[Value]:
        stop = ops.min(start + width, k)
        panel, found = _panel(matrix_transpose(columns_at(a, start, width)), start, stop)
        columns = matrix_transpose(panel)
        rest = a
        if length > width:
            v = block_vectors(columns, start, stop)
            reflected = with_block(a, v, block_triangle(v, found), adjoint=True)
            right = ops.iota("s32", a.dims, 2) >= spread(start + width, a.dims)
            rest = ops.select(right, reflected, a)
        return [with_columns(rest, columns, start), with_columns(taus, found, start)]

    init = [padded, zeros(a.element_type, (batch, 1, blocks * width))]
    factors, taus = turn(constant(0, "s32"), *init) if blocks == 1 else count(constant(0, "s32"), k, width, init, turn)
    return ops.slice(factors, [0, 0, 0], a.dims, [1, 1, 1]), ops.slice(taus, [0, 0, 0], [batch, 1, k], [1, 1, 1])


def _blocks(k: int) -> tuple[int, int]:
    """The number of blocks for k columns, and their width."""
    blocks = -(-k // ROWS)
    return blocks, -(-k // blocks)


def _panel(panel: Value, start: Value, stop: Value) -> tuple[Value, Value]:
    """Reflect columns ``start .. stop - 1``, given as the rows of ``panel``; also their taus, ``[b, 1, w]``."""
    batch, width, _ = panel.dims

    def turn(place: Value, panel: Value, taus: Value) -> list[Value]:
        row = place - start
        found = reflector(rows_at(panel, row, 1), place)
        panel = with_rows(panel, found.image, row)
        taus = with_columns(taus, ops.reshape(found.tau, (batch, 1, 1)), row)
        return [_reflected(panel, found.v, conjugate(found.tau), row), taus]

    panel, taus = count(start, stop, 1, [panel, zeros(panel.element_type, (batch, 1, width))], turn)
    return panel, taus


def _reflected(panel: Value, v: Value, tau: Value, row: Value) -> Value:
    """The rows x of the panel below ``row`` as ``x - tau (adjoint(v) x) v``."""
    width = panel.dims[1]
    if has_short_rows(panel):

        def turn(number: Value, panel: Value) -> list[Value]:
            other = width - 1 - number
            x = rows_at(panel, other, 1)
            weight = tau * ops.reduce(v * x, 0, ops.add, [1, 2])
            return [with_rows(panel, x - spread(weight, x.dims) * v, other)]

        return count(constant(0, "s32"), width - 1 - row, 1, [panel], turn)[0]
    weights = batch_matmul(panel, conjugate(matrix_transpose(v)))
    numbers = ops.iota("s32", weights.dims, 1)
    weights = zero_unless(numbers > spread(row, numbers.dims), weights * spread(tau, weights.dims))
    return panel - batch_matmul(weights, v)


def orthogonal(a: Value, taus: Value, columns: int) -> list[Value]:
    """``own_calls.orthogonal`` by loops."""
    batch, m, _ = a.dims
    return [product(a, taus, identity(a.element_type, (batch, m, columns)), adjoint=False)]


def product(a: Value, taus: Value, operand: Value, *, adjoint: bool) -> Value:
    """``h0 h1 ... operand`` by reflectors in LAPACK's storage, or the adjoint's product: ``[b, m, n]``.

    Args:
        a: ``[..., m, j]``, and ``taus`` ``[..., k]`` with k <= j.
        operand: ``[b, m, n]``.
    """
    k = taus.dims[-1]
    if not k:
        return operand
    flat = ops.reshape(a, (operand.dims[0], *a.dims[-2:]))
    blocks, width = _blocks(k)
    flat = ops.slice(flat, [0, 0, 0], [*flat.dims[:2], k], [1, 1, 1])
    more = blocks * width - k
    flat = ops.pad(flat, 0, [(0, 0, 0), (0, 0, 0), (0, more, 0)])
    row = ops.pad(ops.reshape(taus, (operand.dims[0], 1, k)), 0, [(0, 0, 0), (0, 0, 0), (0, more, 0)])

    def turn(number: Value, operand: Value) -> list[Value]:
        start = number if adjoint else (blocks - 1) * width - number
        v, t = block_at(flat, row, start, width)
        return [with_block(operand, v, t, adjoint=adjoint)]

    if blocks == 1:
        return turn(constant(0, "s32"), operand)[0]
    return count(constant(0, "s32"), blocks * width, width, [operand], turn)[0]
