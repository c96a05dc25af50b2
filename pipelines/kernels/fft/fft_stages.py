"""The stages of a Fourier transform, and the table of the factors that they read.

A stage of radix r makes transforms that are r times longer of those of ``done`` points each (Stockham's autosort)::

    y[q + done (r p + k)] = w(p k / (r rest)) · sum over j of w(j k / r) x[q + done (p + rest j)],  w(t) = exp(-2πi t)

for q below ``done`` and p below ``rest``; the product of r, ``done`` and ``rest`` is the length. The last stage leaves
the points in order. Source: Van Loan, "Computational Frameworks for the FFT", 1992, 1.7 and 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from hloforge.pipelines.decompose.fft_plan import products
from hloforge.pipelines.framework.machine import AVX2

# What a point costs in a stage of each radix, beside the stage of radix 4: measured in rows of a nearest cache. They
# compare the code of the stages with each other, and stay beside it. Primes above 31 would be long code, and cost as
# much as a convolution.
_COSTS = {2: 0.9, 3: 1.0, 4: 1.0, 5: 1.2, 6: 1.3, 7: 1.7, 8: 1.25, 9: 1.8, 10: 1.7, 11: 2.8, 12: 1.8, 13: 3.5, 16: 1.8}
_COSTS |= {prime: prime * 0.27 for prime in (17, 19, 23, 29, 31)}
# Convolutions by transforms have a length that is a multiple of this: whole vectors of f32 after a stage of radix 8.
_WHOLE = 8 * AVX2.half_line // 4


@dataclass
class Table:
    """The numbers that a kernel reads, in one row."""

    parts: list[np.ndarray[Any, Any]] = field(default_factory=list)
    size: int = 0

    def add(self, *rows: Any) -> int:
        """Rows of numbers, one after the other; returns where the first one starts."""
        start = self.size
        for row in rows:
            self.parts.append(np.asarray(row).reshape(-1))
            self.size += self.parts[-1].size
        return start

    @property
    def numbers(self) -> np.ndarray[Any, Any]:
        """All of them, and one more so that there is one."""
        return np.concatenate([*self.parts, np.zeros(1)])


@dataclass(frozen=True)
class Stage:
    """One pass over the points.

    Attributes:
        radix: r.
        done: the product of the radices before.
        rest: the product of those after.
        factors: where the twiddle factors start in the table: for each p, those of k from 1 to r - 1, each as real and
            imaginary part. Where vectors run along p, which is the first index then, it is the last one.
    """

    radix: int
    done: int
    rest: int
    factors: int


def stages(length: int, table: Table, *, along: bool) -> list[Stage]:
    """The stages of a length that has ``radices``; adds their factors to the table.

    Args:
        along: whether vectors are points of one row, so that those of the first stage run along p.
    """
    found: list[Stage] = []
    done, rest = 1, length
    for radix in radices(length) or ():
        rest //= radix
        # [2, rest, radix - 1]
        factors = np.stack(products(rest, radix, radix * rest, -1))[:, :, 1:]
        axes = (2, 0, 1) if along and done == 1 else (1, 2, 0)
        found.append(Stage(radix, done, rest, table.add(factors.transpose(axes)) if rest > 1 else 0))
        done *= radix
    return found


def radices(length: int) -> tuple[int, ...] | None:
    """The radices of the stages that cost least, 8 in front; None if a prime factor is too large for straight code."""
    found = _cheapest(length)
    return None if found is None else tuple(sorted(found[1], key=lambda radix: (radix != 8, -radix)))


@cache
def _cheapest(length: int) -> tuple[float, tuple[int, ...]] | None:
    """The least cost of a point, and the radices."""
    if length == 1:
        return 0.0, ()
    options = (
        (cost + rest[0], (radix, *rest[1]))
        for radix, cost in _COSTS.items()
        if length % radix == 0 and (rest := _cheapest(length // radix)) is not None
    )
    return min(options, default=None)


@cache
def convolution_length(least: int) -> int:
    """The length of at least ``least`` whose transform costs least, of the multiples of a few vectors."""
    start = -(-least // _WHOLE) * _WHOLE
    # Products of small primes are dense: none further away costs less.
    sizes = range(start, start + start // 16 + 8 * _WHOLE, _WHOLE)
    costs = {size: found[0] * size for size in sizes if (found := _cheapest(size))}
    return min(costs, key=lambda size: costs[size])
