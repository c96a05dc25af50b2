"""Fourier transforms of a few points in straight code, each point a vector of complex numbers.

Forward transforms: of 2, 4 and 8 points by halves, of an odd prime number of points with all but the first in pairs
``x[j] ± x[p - j]``: the sum meets the cosines, the difference the sines. Source: Van Loan, "Computational Frameworks
for the FFT", 1992, 1.3 and 2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

from hloforge.pipelines.codegen.lang.values import Value
from hloforge.pipelines.decompose.fft_plan import roots

# The real and the imaginary part.
Point: TypeAlias = tuple[Value, Value]

# Numbers of points for which there is code, the best ones first.
RADICES = (8, 4, 2, 3, 5, 7, 11, 13)


def transformed(points: Sequence[Point]) -> list[Point]:
    """The transform of as many points as one of ``RADICES``."""
    if len(points) == 2:
        return [plus(*points), minus(*points)]
    if len(points) % 2:
        return _prime(points)
    half = len(points) // 2
    pairs = list(zip(points[:half], points[half:], strict=True))
    even = transformed([plus(*pair) for pair in pairs])
    odd = transformed([_turned(minus(*pair), place, len(points)) for place, pair in enumerate(pairs)])
    return [point for both in zip(even, odd, strict=True) for point in both]


def times(point: Point, factor: Point) -> Point:
    """A product."""
    (a, b), (c, d) = point, factor
    return a * c - b * d, a * d + b * c


def plus(one: Point, other: Point) -> Point:
    """A sum."""
    return one[0] + other[0], one[1] + other[1]


def minus(one: Point, other: Point) -> Point:
    """A difference."""
    return one[0] - other[0], one[1] - other[1]


def _turned(point: Point, number: int, of: int) -> Point:
    """Times ``exp(-2πi number / of)``, an eighth or a quarter turn."""
    a, b = point
    if number == 0:
        return point
    if 4 * number == of:
        return b, -a
    cosine = _root(1, 8)[0]
    if 8 * number == of:
        return (a + b) * cosine, (b - a) * cosine
    return (b - a) * cosine, (a + b) * -cosine


def _prime(points: Sequence[Point]) -> list[Point]:
    count = len(points)
    first, half = points[0], count // 2
    sums = [plus(points[place], points[count - place]) for place in range(1, half + 1)]
    differences = [minus(points[place], points[count - place]) for place in range(1, half + 1)]
    total = first
    for point in sums:
        total = plus(total, point)
    found = [total] * count
    for number in range(1, half + 1):
        (a, b), turn = first, None
        for place in range(half):
            cosine, sine = _root(number * (place + 1) % count, count)
            (c, d), (e, f) = sums[place], differences[place]
            a, b = a + c * cosine, b + d * cosine
            turn = (e * sine, f * sine) if turn is None else (turn[0] + e * sine, turn[1] + f * sine)
        assert turn is not None
        found[number], found[count - number] = (a + turn[1], b - turn[0]), (a - turn[1], b + turn[0])
    return found


@cache
def _root(number: int, of: int) -> tuple[float, float]:
    """Cosine and sine of a part of a turn."""
    cosine, sine = roots(number, of, 1)
    return float(cosine), float(sine)
