"""``decompose-fft``: Fourier transforms of any length by products with small matrices.

Before::

    %y = stablehlo.fft %x, type = FFT, length = [1000] : (tensor<64x1000xcomplex<f32>>) -> tensor<64x1000xcomplex<f32>>

After, with 1000 = 5 · 5 · 5 · 8, on real and imaginary parts::

    for each factor r:   x[lead, r, rest] -> y[k, lead, rest] = w[k, rest] * sum over j of F[k, j] x[lead, j, rest]

Each product puts its new index in front of the others, so that the last one leaves the results in order. A length with
a prime factor above 64 is a convolution with a chirp (Bluestein), whose length factors well. A real operand spares the
products with its imaginary part, and a half spectrum those rows or columns of the last or first matrix that it lacks.

The inverse real transform of the half spectrum X is the real part of a complex one, where all but X[0] and X[n/2] count
twice and what is missing is zero; like XLA's, it takes no notice of the imaginary parts of these two. The factor 1/n is
a part of the first matrix.
Source: XLA "Fft"; Van Loan, "Computational Frameworks for the FFT", 1.4, 2.3 and 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.idioms import zeros
from hloforge.dialect.mlir import ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.decompose import fft_plan
from hloforge.pipelines.decompose.fft_plan import Table, Transform
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern


@dataclass(frozen=True)
class Parts:
    """A complex array as two real ones.

    Attributes:
        imaginary: None where it is known to be zero.
    """

    real: Value
    imaginary: Value | None

    def each(self, function: Callable[[Value], Value]) -> Parts:
        """A function that keeps zeros, applied to both parts."""
        return Parts(function(self.real), None if self.imaginary is None else function(self.imaginary))

    def reshape(self, *dims: int) -> Parts:
        """Both parts in other sizes."""
        return self.each(lambda part: ops.reshape(part, dims))

    def multiply(self, table: Table, product: Callable[[Value, Value], Value]) -> Parts:
        """The complex product of a table and this array, by a ``product`` of a real table and a real array."""
        cosines, sines = (constant(part, self.real.element_type) for part in table)
        if self.imaginary is None:
            return Parts(product(cosines, self.real), product(sines, self.real))
        return Parts(
            product(cosines, self.real) - product(sines, self.imaginary),
            product(sines, self.real) + product(cosines, self.imaginary),
        )

    def scale(self, table: Table, *dimensions: int) -> Parts:
        """Each element times the element of a table that lies along ``dimensions``."""
        return self.multiply(table, lambda by, part: ops.broadcast_in_dim(by, part.dims, dimensions) * part)


@pattern("stablehlo.fft")
def by_matrices(op: ir.Operation) -> Replacement:
    """All four kinds, one to three axes, of which each comes to be in front of the others, the last one first."""
    if not is_static(op):
        return NoMatch("dynamic size")
    operand, result = Value(op.operands[0]), Value(op.results[0])
    if prod(result.dims) == 0:
        return zeros(result.element_type, result.dims)
    kind, lengths = _kind_and_lengths(op)
    x = Parts(ops.real(operand), ops.imag(operand)) if operand.element_type.is_complex else Parts(operand, None)
    if kind == "IRFFT":
        x = _double_inner(x, lengths[-1])
    for transform in _transforms(kind, lengths):
        x = _last_to_front(x, transform)
    batch = prod(result.dims[: result.rank - len(lengths)])
    x = _transpose(x.reshape(prod(result.dims) // batch, batch)).reshape(*result.dims)
    if not result.element_type.is_complex:
        return x.real
    return ops.complex(x.real, full(x.real, 0) if x.imaginary is None else x.imaginary)


def _kind_and_lengths(op: Any) -> tuple[str, list[int]]:
    return stablehlo.FftTypeAttr(op.attributes["fft_type"]).value, [int(size) for size in op.attributes["fft_length"]]


def _double_inner(x: Parts, length: int) -> Parts:
    """The half spectrum, with twice the coefficients that represent two of the whole one."""
    numbers = np.arange(x.real.dims[-1])
    weights = constant(np.where((numbers == 0) | (2 * numbers == length), 1, 2), x.real.element_type)
    return x.each(lambda part: part * ops.broadcast_in_dim(weights, part.dims, [part.rank - 1]))


def _transforms(kind: str, lengths: Sequence[int]) -> Iterator[Transform]:
    """What is done to each axis, from the last to the first."""
    inverse = kind in ("IFFT", "IRFFT")
    for axis, length in reversed(list(enumerate(lengths))):
        known = length // 2 + 1 if axis == len(lengths) - 1 else length
        yield Transform(
            length=length,
            sign=1 if inverse else -1,
            scale=np.longdouble(1) / (length if inverse else 1),
            given=known if kind == "IRFFT" else length,
            wanted=known if kind == "RFFT" else length,
        )


def _last_to_front(x: Parts, transform: Transform) -> Parts:
    """``[..., given]`` to ``[wanted, ...]``."""
    *outer, given = x.real.dims
    x = x.reshape(prod(outer), given)
    factors = fft_plan.factors(transform.length)
    x = _by_chirp(x, transform) if factors is None else _by_factors(x, transform, factors)
    return x.reshape(transform.wanted, *outer)


def _by_factors(x: Parts, transform: Transform, factors: Sequence[int]) -> Parts:
    """``[outer, given]`` to ``[wanted, outer]``."""
    outer, _ = x.real.dims
    for step in fft_plan.steps(transform, factors):
        rows, columns = step.matrix[0].shape
        x = _widen(x, columns * step.rest)
        lead, _ = x.real.dims
        x = x.reshape(lead, columns, step.rest).multiply(step.matrix, _contract)
        if step.turns is not None:
            x = x.scale(step.turns, 0, 2)
        x = x.reshape(rows * lead, step.rest)
    x = x.reshape(x.real.dims[0] // outer, outer)
    return x.each(lambda part: ops.slice(part, [0, 0], [transform.wanted, outer]))


def _contract(matrix: Value, part: Value) -> Value:
    """``[rows, columns]`` and ``[lead, columns, rest]`` to ``[rows, lead, rest]``."""
    return ops.dot_general(matrix, part, ops.DotDimensionNumbers([1], [1]))


def _widen(x: Parts, size: int) -> Parts:
    """``[m, n]`` to ``[m, size]`` by zeros."""
    missing = size - x.real.dims[1]
    return x.each(lambda part: ops.pad(part, 0, [(0, 0), (0, missing)]))


def _transpose(x: Parts) -> Parts:
    return x.each(lambda part: ops.transpose(part, [1, 0]))


def _by_chirp(x: Parts, transform: Transform) -> Parts:
    """``[outer, given]`` to ``[wanted, outer]``, with jk = (j² + k² - (k - j)²) / 2 in the exponents (Bluestein)."""
    given, wanted, length = transform.given, transform.wanted, transform.length
    padded = fft_plan.convolution_length(given + wanted - 1)
    factors, one = fft_plan.factors(padded), np.longdouble(1)
    assert factors is not None
    x = x.scale(fft_plan.chirp(given, length, transform.sign), 1)
    x = _by_factors(x, Transform(padded, -1, one, given, padded), factors)
    x = _transpose(x.scale(fft_plan.chirp_filter(transform, padded), 0))
    x = _by_factors(x, Transform(padded, 1, one, padded, wanted), factors)
    cosines, sines = fft_plan.chirp(wanted, length, transform.sign)
    return x.scale((cosines * transform.scale, sines * transform.scale), 0)


@register
@dataclass(frozen=True)
class DecomposeFft(Pass):
    """Replace Fourier transforms of static size."""

    name: ClassVar[str] = "decompose-fft"
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SAFE_PRODUCTS})

    def run(self, module: ir.Module) -> None:
        apply_patterns(module, by_matrices)
