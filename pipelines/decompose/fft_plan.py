"""What ``decompose-fft`` computes when it compiles: factors of a length, roots of unity, matrices, the chirp.

Tables are computed in numpy's longest float from integers that are reduced first, so that what is rounded to f64 in the
end is right to the last bit or nearly so. A complex table is a pair of real ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

Table: TypeAlias = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]

# Small factors are joined up to this product: a larger matrix costs more arithmetic and digits than it saves steps.
LARGEST_PRODUCT = 8
# Up to here, a transform is one matrix whatever its length.
LARGEST_MATRIX = 16
# A chirp costs less than a matrix for larger primes.
LARGEST_PRIME = 64


@dataclass(frozen=True)
class Transform:
    """A discrete Fourier transform of one axis.

    Attributes:
        length: the number of points, n.
        sign: of the exponent; -1 is forward.
        scale: what results are multiplied by.
        given: how many operands there are; the rest up to n are zeros.
        wanted: how many results are computed, from the first.
    """

    length: int
    sign: int
    scale: np.floating[Any]
    given: int
    wanted: int


@dataclass(frozen=True)
class Step:
    """The part of a transform that one factor does: ``[lead, columns, rest]`` to ``[rows, lead, rest]``.

    Attributes:
        matrix: ``[rows, columns]``, contracted with the columns.
        turns: ``[rows, rest]``, by which the result is multiplied; None after the last step, where rest is 1.
        rest: how many points are left to later steps.
    """

    matrix: Table
    turns: Table | None
    rest: int


def steps(transform: Transform, factors: Sequence[int]) -> Iterator[Step]:
    """The steps of a transform whose length is the product of ``factors``; of length 1 there are none."""
    rest = transform.length
    for number, size in enumerate(factors):
        cosines, sines = products(size, size, size, transform.sign)
        rest //= size
        if number == 0:
            columns = -(-transform.given // rest)
            cosines, sines = cosines[:, :columns] * transform.scale, sines[:, :columns] * transform.scale
        if rest == 1:
            rows = -(-transform.wanted * size // transform.length)
            cosines, sines = cosines[:rows], sines[:rows]
        turns = products(size, rest, size * rest, transform.sign) if rest > 1 else None
        yield Step((cosines, sines), turns, rest)


def factors(length: int) -> tuple[int, ...] | None:
    """The sizes of the matrices that transform ``length`` points, ascending; None if a prime is too large for one."""
    if length <= LARGEST_MATRIX:
        return (length,) if length > 1 else ()
    rest, large = length, []
    for prime in (number for number in range(LARGEST_PRODUCT + 1, LARGEST_PRIME + 1) if _is_prime(number)):
        while rest % prime == 0:
            large.append(prime)
            rest //= prime
    small = _small_factors(rest)
    return None if small is None else tuple(sorted((*small, *large)))


def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, number))


@cache
def _small_factors(length: int) -> tuple[int, ...] | None:
    """As few factors as possible, and of those the least sum; None if a prime factor is too large."""
    if length == 1:
        return ()
    divisors = (size for size in range(2, LARGEST_PRODUCT + 1) if length % size == 0)
    found = [(size, *rest) for size in divisors if (rest := _small_factors(length // size)) is not None]
    return min(found, key=lambda sizes: (len(sizes), sum(sizes)), default=None)


def roots(numbers: Any, length: int, sign: int) -> Table:
    """``exp(sign 2πi number / length)`` of integers: cosines and sines.

    The angle is folded into half a quadrant by integer arithmetic, so that quarter turns are exact.
    """
    quadrant, rest = np.divmod(4 * (np.asarray(numbers, np.int64) % length), length)
    folded = np.minimum(rest, length - rest)
    angle = folded * (2 * np.arctan(np.longdouble(1)) / length)
    near, far = np.cos(angle), np.sin(angle)
    x, y = np.where(folded == rest, near, far), np.where(folded == rest, far, near)
    return np.choose(quadrant, [x, -y, -x, y]), sign * np.choose(quadrant, [y, x, -y, -x])


def products(rows: int, columns: int, length: int, sign: int) -> Table:
    """``[rows, columns]`` of ``exp(sign 2πi row column / length)``."""
    return roots(np.outer(np.arange(rows), np.arange(columns)), length, sign)


def convolution_length(least: int) -> int:
    """A length of at least ``least``, at most a fifth longer from 8 on, that is a small number times a power of two."""
    sizes = (8, 9, 10, 12, 14)
    power = 1
    while sizes[-1] * power < least:
        power *= 2
    return next(size * power for size in sizes if size * power >= least)


def chirp(count: int, length: int, sign: int) -> Table:
    """``exp(sign πi j² / length)`` for j below ``count``."""
    numbers = np.arange(count, dtype=np.int64)
    return roots(numbers * numbers, 2 * length, sign)


def chirp_filter(transform: Transform, padded: int) -> Table:
    """The spectrum of the conjugate chirp from ``1 - given`` to ``wanted - 1`` on a circle of ``padded`` points.

    It is divided by ``padded``, as the inverse transform of that length asks.
    """
    given, wanted = transform.given, transform.wanted
    cosines, sines = chirp(max(given, wanted), transform.length, transform.sign)
    conjugate = cosines - 1j * sines
    circle = np.zeros(padded, conjugate.dtype)
    circle[:wanted] = conjugate[:wanted]
    circle[padded - given + 1 :] = conjugate[given - 1 : 0 : -1]
    spectrum = np.fft.fft(circle) / padded
    return spectrum.real, spectrum.imag
