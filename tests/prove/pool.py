"""Values of a JAX function that is being written, and what its next operation may take of them.

As in ``tests/fuzz/maker.py``, a value has a depth, the number of operations in a row that rounded, so that what jumps
takes exact values only. It has a bound as well, the logarithm of its largest magnitude, so that nothing overflows:
where numbers leave the range of a type, engines differ by the order in which they add.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np

Dims = tuple[int, ...]
FLOATS = ("float32", "float64", "bfloat16", "float16")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
TINY = ("float8_e4m3fn", "float8_e5m2", "int4", "uint4", "float8_e4m3b11fnuz", "float8_e5m2fnuz")
WIDE = ("float64", "int64", "uint64", "complex128")
_SHARES = dict.fromkeys(INTEGERS, 1.5) | dict.fromkeys(TINY, 0.4) | {
    "float32": 12, "float64": 4, "bfloat16": 3, "float16": 3, "complex64": 2.5, "complex128": 1.5, "bool": 2,
    "int32": 5,
}  # fmt: skip
_SIZES = {1: 5, 2: 6, 3: 6, 4: 6, 5: 5, 6: 2, 7: 4, 8: 4, 9: 1, 13: 1.5, 16: 2, 17: 1.5, 33: 1.5, 64: 0.7, 0: 0.6}
_LONG = (100, 127, 256, 513, 1000, 2049)
LARGEST = 4096
# Of operations in a row that round: 16 bits lose more by each.
_DEEPEST = {"float32": 6, "float64": 8, "complex64": 5, "complex128": 8, "bfloat16": 3, "float16": 3}
_HIGHEST = {"float16": 9.0}


class UnfitError(Exception):
    """No value that the operation takes is there."""


@dataclass(frozen=True)
class Item:
    """A value, its depth and the binary logarithm of its bound."""

    value: Any
    depth: int = 0
    bound: float = 3.0

    @property
    def dtype(self) -> str:
        return str(self.value.dtype)

    @property
    def shape(self) -> Dims:
        return tuple(self.value.shape)


def kind_of(dtype: str) -> str:
    """``bool``, ``integer``, ``float``, ``complex`` or ``tiny``."""
    kinds = {"integer": INTEGERS, "float": FLOATS, "complex": COMPLEX, "tiny": TINY}
    return next((kind for kind, names in kinds.items() if dtype in names), "bool")


def highest(dtype: str) -> float:
    return _HIGHEST.get(dtype, 24.0)


@dataclass
class Pool:
    """The values that are there, and the choices of a program.

    Attributes:
        types: the few element types of this program.
        level: how many loops, branches and transformations are around.
        smooth: whether only differentiable operations fit.
    """

    random: Random
    types: tuple[str, ...]
    sizes: tuple[int, ...]
    items: list[Item] = field(default_factory=list)
    arguments: list[np.ndarray[Any, Any]] = field(default_factory=list)
    level: int = 0
    smooth: bool = False

    @classmethod
    def of(cls, random: Random) -> Pool:
        chosen = random.choices(list(_SHARES), list(_SHARES.values()), k=random.choice((1, 2, 2, 3)))
        sizes = random.choices(list(_SIZES), list(_SIZES.values()), k=random.choice((2, 3, 4)))
        if random.random() < 0.15:
            sizes.append(random.choice(_LONG))
        return cls(random, tuple(dict.fromkeys(chosen)), tuple(sizes))

    def inside(self, items: Sequence[Item], *, smooth: bool = False) -> Pool:
        """For a computation inside, with its parameters and some of what is outside."""
        outside = self.random.sample(self.items, min(len(self.items), 2))
        return Pool(
            Random(self.random.random()), self.types, self.sizes, [*outside, *items], level=self.level + 1,
            smooth=smooth or self.smooth,
        )  # fmt: skip

    # choices
    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def choice(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def dims(self, most: int = 4) -> Dims:
        rank = self.random.choices(range(5), (1.5, 5, 6, 3, 1))[0]
        dims = [self.choice(self.sizes) for _ in range(min(rank, most))]
        while math.prod(dims) > LARGEST:
            dims[dims.index(max(dims))] = self.choice((1, 2, 3))
        return tuple(dims)

    def shape_of(self, size: int) -> Dims:
        """Another shape of so many elements."""
        if not size:
            return self.choice(((0,), (0, 3), (2, 0), (1, 0, 2)))
        dims, left = [], size
        while left > 1 and len(dims) < 3:
            divisor = self.choice([number for number in range(1, left + 1) if left % number == 0])
            dims.append(divisor)
            left //= divisor
        return (*dims, left) if left > 1 or not dims or self.chance(0.2) else tuple(dims)

    # operands
    def pick(self, *kinds: str, depth: int | None = None, least: int = 0, most: int = 4,
             where: Callable[[Item], bool] = lambda item: True) -> Item:  # fmt: skip
        """One of the values, new ones rather than old ones.

        Args:
            depth: the greatest, of 0 for what jumps; by default one that leaves room for a rounding.
        """
        fitting = [
            item
            for item in self.items
            if kind_of(item.dtype) in (kinds or ("bool", "integer", "float", "complex"))
            and least <= len(item.shape) <= most
            and item.depth <= (_DEEPEST.get(item.dtype, 9) - 1 if depth is None else depth)
            and where(item)
        ]
        if not fitting:
            raise UnfitError
        return self.choice(fitting[-4:] if self.chance(0.7) else fitting)

    def like(self, item: Item, shape: Dims | None = None, dtype: str | None = None, depth: int | None = None) -> Item:
        """A value of this shape and type: one that is there, or a new argument or constant."""
        shape, dtype = item.shape if shape is None else shape, dtype or item.dtype
        greatest = _DEEPEST.get(dtype, 9) - 1 if depth is None else depth
        found = [i for i in self.items if (i.shape, i.dtype) == (shape, dtype) and i.depth <= greatest]
        if found and self.chance(0.7):
            return self.choice(found)
        return self.new(shape, dtype)

    def new(self, shape: Dims, dtype: str) -> Item:
        """A constant with numbers of all sizes that the type may have in a program."""
        return Item(jnp.asarray(self.numbers(shape, dtype)))

    def numbers(self, shape: Dims, dtype: str) -> np.ndarray[Any, Any]:
        generator = np.random.default_rng(self.random.getrandbits(64))
        kind = kind_of(dtype)
        if kind == "bool":
            return np.asarray(generator.random(shape) < 0.5)
        type_ = np.dtype(getattr(ml_dtypes, dtype, dtype))
        if dtype in ("int4", "uint4"):
            return np.asarray(generator.integers(0, 8, shape)).astype(type_)
        if kind == "integer":
            wide = np.iinfo(type_)
            low, high = (wide.min, wide.max) if generator.random() < 0.3 else (max(wide.min, -5), 9)
            return np.asarray(generator.integers(low, high, shape, dtype=type_, endpoint=True))
        if generator.random() < 0.3:
            numbers = generator.integers(-4, 6, shape).astype(np.float64)
        else:
            numbers = np.clip(generator.standard_normal(shape), -7, 7)
        if kind == "complex":
            return np.asarray(numbers + 1j * np.clip(generator.standard_normal(shape), -7, 7)).astype(type_)
        return np.asarray(numbers).astype(type_)

    def index(self, size: int, shape: Dims, *, outside: bool = True, dtype: str = "int32") -> np.ndarray[Any, Any]:
        """Indices, repeated, negative and beyond the ends."""
        generator = np.random.default_rng(self.random.getrandbits(64))
        slack = self.choice((0, 0, 1, 5)) if outside else 0
        low, high = -size - slack, size + slack
        if self.chance(0.5) or not outside:
            low = 0
        return np.asarray(generator.integers(low, max(high, low + 1), shape)).astype(dtype)

    def axis(self, item: Item) -> int:
        if not item.shape:
            raise UnfitError
        return int(self.random.randrange(len(item.shape))) - (len(item.shape) if self.chance(0.5) else 0)

    # results
    def add(self, value: Any, *of: Item, rounds: bool = False, bound: float | None = None) -> None:
        """A new value, of these operands."""
        dtype = str(value.dtype)
        if kind_of(dtype) in ("bool", "integer") or not of:
            self.items.append(Item(value, int(rounds), 3.0 if bound is None else bound))
            return
        depth = max((i.depth for i in of), default=0) + rounds
        if kind_of(dtype) == "tiny" and depth:
            depth = 9
        found = max((i.bound for i in of if kind_of(i.dtype) in ("float", "complex", "tiny")), default=3.0)
        self.items.append(Item(value, depth, found if bound is None else bound))


Step = Callable[[Pool], None]


@dataclass(frozen=True)
class Registered:
    make: Step
    weight: float
    smooth: bool
    nests: bool


STEPS: dict[str, Registered] = {}


def step(weight: float = 1.0, *, smooth: bool = False, nests: bool = False) -> Callable[[Step], Step]:
    """Register a way to make values.

    Args:
        smooth: whether its results have derivatives that do not jump.
        nests: whether it has computations of steps.
    """

    def register(make: Step) -> Step:
        if make.__name__ in STEPS:
            raise ValueError(f"{make.__name__} is registered")
        STEPS[make.__name__] = Registered(make, weight, smooth, nests)
        return make

    return register


def grow(pool: Pool, count: int) -> None:
    """So many random steps, where they fit."""
    fitting = [s for s in STEPS.values() if (s.smooth or not pool.smooth) and not (s.nests and pool.level > 2)]
    weights = [s.weight * (0.6 if s.nests and pool.level else 1) for s in fitting]
    made = 0
    for _ in range(4 * count):
        try:
            pool.random.choices(fitting, weights)[0].make(pool)
        except (UnfitError, TypeError, ValueError, IndexError, OverflowError, NotImplementedError):
            continue  # also what JAX does not take: a mode, a type of the operation's
        made += 1
        if made == count:
            return
