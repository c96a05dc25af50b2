"""What a kind of program draws its sizes, types and choices from; the same each time for one seed."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Choice = TypeVar("Choice")

# Sizes of real programs are often multiples of these, and as often not.
_ROUND = (8, 16, 32, 64, 128)
_SHARE_OF_ROUND = 0.35
# Of a multiplication, beside one of f32: XLA's CPU client has no fast products of narrow floats.
_COST_OF_PRODUCTS = {"float32": 1, "float64": 2, "bfloat16": 6, "float16": 6}


class Draw:
    """Random sizes and choices of one program.

    Args:
        scale: what the work of the program is divided by, as where it is batched or repeated.
    """

    def __init__(self, seed: int, name: str, scale: float = 1.0) -> None:
        self.random = np.random.default_rng([seed, zlib.crc32(name.encode())])
        self.scale = scale

    def pick(self, *choices: Choice) -> Choice:
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def number(self, low: float, high: float) -> float:
        """Evenly between two numbers, with two digits: a constant of the program."""
        return round(float(self.random.uniform(low, high)), 2)

    def size(self, low: int, high: int) -> int:
        """Evenly in the logarithm, ends included; sometimes a multiple of a power of two."""
        return self._rounded(math.exp(self.random.uniform(math.log(low), math.log(high + 1))), low, high)

    def work(self, low: float, high: float) -> float:
        """An amount of work, evenly in the logarithm; less where the program is repeated."""
        high = max(low, high / self.scale)
        return math.exp(self.random.uniform(math.log(low), math.log(high)))

    def products(self, dtype: str) -> float:
        """How many multiplications a product of matrices has."""
        return self.work(1e3, 6e8 / _COST_OF_PRODUCTS[dtype])

    def elements(self, high: float = 1e7, low: float = 10) -> int:
        """How many elements an array has."""
        return max(1, int(self.work(low, high)))

    def sizes(self, total: float, count: int, *, least: int = 1, most: int = 1 << 30) -> tuple[int, ...]:
        """So many sizes whose product is about ``total``, each at least ``least`` and at most ``most``."""
        spare = max(0.0, math.log(max(total, 1)) - count * math.log(least))
        shares = self.random.dirichlet([2.0] * count)
        return tuple(self._rounded(least * math.exp(spare * share), least, most) for share in shares)

    def shape(self, rank: int, high: float = 1e7, low: float = 10) -> tuple[int, ...]:
        """The sizes of an array of so many elements at most."""
        return self.sizes(self.elements(high, low), rank)

    def image(self, high: float, *, least: int = 8) -> tuple[int, int]:
        """Height and width, not too unlike, of at most ``high`` pixels."""
        side = max(least, math.sqrt(self.work(least**2, max(high, least**2))))
        aspect = math.exp(self.random.uniform(-0.4, 0.4))
        return self._rounded(side * aspect, least, 1 << 15), self._rounded(side / aspect, least, 1 << 15)

    def float_type(self) -> str:
        """An element type, f32 mostly."""
        return self._weighted(("float32", "bfloat16", "float64", "float16"), (0.76, 0.12, 0.08, 0.04))

    def precise_type(self) -> str:
        """One that chains of operations leave exact enough to compare."""
        return self._weighted(("float32", "float64"), (0.85, 0.15))

    def _weighted(self, names: Sequence[str], shares: Sequence[float]) -> str:
        return names[int(self.random.choice(len(names), p=shares))]

    def _rounded(self, value: float, low: int, high: int) -> int:
        size = int(value)
        if self.random.random() < _SHARE_OF_ROUND:
            step = _ROUND[int(self.random.integers(len(_ROUND)))]
            if size >= 2 * step:
                size -= size % step
        return int(min(max(size, low), high))
