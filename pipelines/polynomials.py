"""Polynomials by Estrin's scheme, of whatever adds and multiplies: values of a program or of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, cast


class _Number(Protocol):
    def __add__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...


N = TypeVar("N", bound=_Number)


def estrin(x: N, coefficients: Sequence[float]) -> N:
    """A polynomial of two terms and more; ``coefficients`` from the constant term up.

    It has some more products than Horner's rule, but few operations wait for each other.
    """
    terms: list[Any] = list(coefficients)
    power: Any = x
    while len(terms) > 2:
        pairs = [power * high + low for low, high in zip(terms[::2], terms[1::2], strict=False)]
        terms = [*pairs, *terms[len(pairs) * 2 :]]
        power = power * power
    return cast(N, power * terms[1] + terms[0])
