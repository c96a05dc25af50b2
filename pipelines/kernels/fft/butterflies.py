"""Fourier transforms of a few points in straight-line code, each point a vector of complex numbers.

A length with two coprime factors is a transform along both sides of a rectangle (Good and Thomas), another composite
one has twiddle factors between them (Cooley and Tukey), and of an odd prime one all points but the first are taken in
pairs ``x[j] ± x[p - j]``: the sum meets the cosines, the difference the sines. Transforms are forward.
Source: Van Loan, "Computational Frameworks for the FFT", 1992, 1.3, 2.1 and 2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from hloforge.dialect.mlir import arith, ir, vector_dialect
from hloforge.pipelines.decompose.fft_plan import roots
from hloforge.pipelines.framework.builders import constant


@dataclass(frozen=True)
class Points:
    """Complex numbers as two vectors of floats."""

    real: Any
    imaginary: Any

    def __add__(self, other: Points) -> Points:
        return Points(add(self.real, other.real), add(self.imaginary, other.imaginary))

    def __sub__(self, other: Points) -> Points:
        return Points(subtract(self.real, other.real), subtract(self.imaginary, other.imaginary))

    def __mul__(self, other: Points) -> Points:
        return Points(
            fma(self.real, other.real, negate(multiply(self.imaginary, other.imaginary))),
            fma(self.real, other.imaginary, multiply(self.imaginary, other.real)),
        )

    @property
    def swapped(self) -> Points:
        """Real and imaginary parts exchanged, which makes an inverse transform of a forward one between two of them."""
        return Points(self.imaginary, self.real)

    def scale(self, by: Any) -> Points:
        """Both parts times a vector."""
        return Points(multiply(self.real, by), multiply(self.imaginary, by))

    def turn(self, number: int, of: int) -> Points:
        """Times ``exp(-2πi number / of)``."""
        number %= of
        if 4 * number % of == 0:
            return self._quarters(4 * number // of)
        if 8 * number % of == 0:
            eighth = Points(add(self.real, self.imaginary), subtract(self.imaginary, self.real))
            return eighth.scale(_root(self.real.type, 1, 8)[0])._quarters(8 * number // of // 2)
        return self * Points(*_root(self.real.type, number, of))

    def _quarters(self, count: int) -> Points:
        """Times ``(-i)**count``."""
        if count == 0:
            return self
        if count == 1:
            return Points(self.imaginary, negate(self.real))
        if count == 2:
            return Points(negate(self.real), negate(self.imaginary))
        return Points(negate(self.imaginary), self.real)


def transform(points: Sequence[Points]) -> list[Points]:
    """The discrete Fourier transform, in order."""
    length = len(points)
    if length == 1:
        return list(points)
    if length == 2:
        return [points[0] + points[1], points[0] - points[1]]
    first = _factor(length)
    if first == length:
        return _of_odd_prime(points)
    return _of_product(points, first)


def _factor(length: int) -> int:
    """The prime power of ``length``'s least prime, or of a power its least divisor."""
    prime = next(divisor for divisor in range(2, length + 1) if length % divisor == 0)
    power = prime
    while length % (power * prime) == 0:
        power *= prime
    return power if power < length else prime


def _of_product(points: Sequence[Points], outer: int) -> list[Points]:
    """``outer`` times ``inner`` points, by transforms of these lengths."""
    length = len(points)
    inner = length // outer
    coprime = gcd(outer, inner) == 1
    rows = []
    for column in range(inner):
        step = outer if coprime else 1
        row = transform([points[(inner * j + step * column) % length] for j in range(outer)])
        rows.append(row if coprime else [point.turn(column * k, length) for k, point in enumerate(row)])
    found = [transform([row[k] for row in rows]) for k in range(outer)]
    if coprime:
        return [found[k % outer][k % inner] for k in range(length)]
    return [found[k % outer][k // outer] for k in range(length)]


def _of_odd_prime(points: Sequence[Points]) -> list[Points]:
    length, first = len(points), points[0]
    half = range(1, length // 2 + 1)
    sums = [points[j] + points[length - j] for j in half]
    differences = [points[j] - points[length - j] for j in half]
    total = first
    for each in sums:
        total = total + each
    found = [total] * length
    for k in half:
        even, odd = first, None
        for j, sum_, difference in zip(half, sums, differences, strict=True):
            cosine, sine = _root(first.real.type, j * k, length)
            even = Points(fma(sum_.real, cosine, even.real), fma(sum_.imaginary, cosine, even.imaginary))
            odd = (
                difference.scale(sine)
                if odd is None
                else Points(fma(difference.real, sine, odd.real), fma(difference.imaginary, sine, odd.imaginary))
            )
        assert odd is not None
        turned = Points(negate(odd.imaginary), odd.real)
        found[k], found[length - k] = even + turned, even - turned
    return found


def _root(type_: Any, number: int, of: int) -> tuple[Any, Any]:
    """``exp(-2πi number / of)`` as vectors of equal elements."""
    cosine, sine = roots(number, of, -1)
    return splat(type_, float(cosine)), splat(type_, float(sine))


def splat(type_: Any, number: float) -> Any:
    """A vector of equal elements."""
    element = ir.FloatAttr.get(type_.element_type, number)
    return constant(ir.DenseElementsAttr.get_splat(type_, element))


def add(one: Any, other: Any) -> Any:
    """The sum of two vectors of floats."""
    return arith.addf(one, other)


def subtract(one: Any, other: Any) -> Any:
    """The difference of two vectors of floats."""
    return arith.subf(one, other)


def multiply(one: Any, other: Any) -> Any:
    """The product of two vectors of floats, by elements."""
    return arith.mulf(one, other)


def negate(one: Any) -> Any:
    """A vector of floats with the other sign."""
    return arith.negf(one)


def fma(one: Any, other: Any, sum_: Any) -> Any:
    """``one * other + sum_``, rounded once."""
    return vector_dialect.fma(one, other, sum_)
