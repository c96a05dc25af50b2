"""What random programs are made with: a pool of values to take operands from, and how far each is from exact.

Engines round differently, so a comparison, a rounding or a sort of rounded numbers has no one right result. Each value
therefore has a depth, the number of operations in a row that rounded: 0 is exact, bit for bit. Operations that jump
take exact operands only, and no chain rounds more than ``DEEPEST`` times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any

from hloforge.computation import Builder
from hloforge.dialect import ops
from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import ir
from hloforge.dialect.shapes import Layout, Shape
from hloforge.dialect.values import Value
from tests.fuzz.values import array_of

DEEPEST = 3
LARGEST = 2048
Dims = tuple[int, ...]

# How often a program has each element type, and sizes.
_TYPES = {
    "f32": 12, "s32": 6, "f64": 4, "bf16": 4, "f16": 4, "s64": 2, "s8": 2, "u8": 2, "u32": 2, "s16": 1.5,
    "u16": 1.5, "u64": 1.5,
    "c64": 2.5, "c128": 1.5, "pred": 2, "s4": 0.5, "u4": 0.5, "s2": 0.2, "u2": 0.2, "f8e4m3fn": 0.5, "f8e5m2": 0.5,
    "f8e4m3": 0.2, "f8e3m4": 0.2, "f8e4m3b11fnuz": 0.3, "f8e4m3fnuz": 0.3, "f8e5m2fnuz": 0.3, "f8e8m0fnu": 0.1,
    "f4e2m1fn": 0.2, "f6e2m3fn": 0.1, "f6e3m2fn": 0.1,
}  # fmt: skip
_SIZES = {1: 5, 2: 6, 3: 6, 4: 6, 5: 4, 6: 2, 7: 3, 8: 4, 9: 1, 12: 1, 15: 1, 16: 2, 17: 1, 32: 1, 33: 1, 0: 0.7}
_RANKS = {0: 2, 1: 5, 2: 7, 3: 5, 4: 2, 5: 0.7}
_INTEGERS = frozenset(name for name in _TYPES if element_type(name).is_integer)
_FLOATS = frozenset(name for name in _TYPES if element_type(name).is_float)
_COMPLEX = frozenset({"c64", "c128"})
# Those that an arithmetic unit has.
WIDE = frozenset({"f16", "bf16", "f32", "f64"})
KINDS = {
    "integer": _INTEGERS,
    "float": _FLOATS,
    "complex": _COMPLEX,
    "pred": frozenset({"pred"}),
    "signed": frozenset(name for name in _INTEGERS if name.startswith("s")),
    "wide": WIDE,
    "inexact": WIDE | _COMPLEX,
    "number": _INTEGERS | _FLOATS | _COMPLEX,
    "real": _INTEGERS | _FLOATS,
    "ordered": _INTEGERS | _FLOATS | {"pred"},
    "bits": _INTEGERS | {"pred"},
    "any": frozenset(_TYPES),
}


def weighted(random: Random, weights: dict[Any, float]) -> Any:
    return random.choices(list(weights), list(weights.values()))[0]


@dataclass
class Maker:
    """Makes a program, or a computation inside of one.

    Attributes:
        builder: of the program, where parameters are made; None inside, where constants are made instead.
        palette: the few element types and sizes of this program.
        pool: its values so far, with their depths.
        limit: the greatest depth of an operand of the operation that is being made.
        taken: the greatest depth of its operands so far.
    """

    random: Random
    builder: Builder | None
    types: tuple[str, ...]
    sizes: tuple[int, ...]
    pool: list[tuple[Value, int]] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    arguments: list[Any] = field(default_factory=list)
    parameters: list[Value] = field(default_factory=list)
    limit: int = DEEPEST
    taken: int = 0
    level: int = 0
    exact: bool = False
    highest: int = 5
    has_borders: bool = False

    @classmethod
    def of(cls, random: Random, builder: Builder, *, has_borders: bool) -> Maker:
        chosen = {weighted(random, _TYPES) for _ in range(random.choice((1, 2, 2, 3)))}
        types = tuple(sorted(chosen | {"s32", "pred"})) if random.random() < 0.5 else tuple(sorted(chosen))
        sizes = tuple(weighted(random, _SIZES) for _ in range(random.choice((2, 3, 3, 4))))
        return cls(random, builder, types, sizes, has_borders=has_borders)

    # choices
    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def element(self, kind: str = "any") -> str:
        """A type of the palette if it has one of the kind."""
        fitting = [name for name in self.types if name in KINDS[kind]]
        if fitting and (kind != "any" or self.chance(0.95)):
            return self.random.choice(fitting)
        return str(weighted(self.random, {name: weight for name, weight in _TYPES.items() if name in KINDS[kind]}))

    def dims(self, least: int = 0, most: int = 5) -> Dims:
        rank = weighted(self.random, {rank: weight for rank, weight in _RANKS.items() if least <= rank <= most})
        sizes = [self.random.choice(self.sizes) if self.chance(0.85) else self.size() for _ in range(rank)]
        while prod(sizes) > LARGEST:
            sizes[sizes.index(max(sizes))] = self.random.choice((1, 2, 3))
        return tuple(sizes)

    def size(self) -> int:
        return int(weighted(self.random, _SIZES))

    def permutation(self, count: int) -> list[int]:
        return self.random.sample(range(count), count)

    def some(self, count: int, least: int = 0) -> list[int]:
        """Some of the numbers below ``count``, ascending."""
        if count < least:
            raise UnfitError
        return sorted(self.random.sample(range(count), self.random.randint(least, count)))

    # operands
    def pick(
        self, kind: str = "any", least: int = 0, most: int = 5, where: Callable[[Value], bool] = lambda _: True
    ) -> Value:
        """A value of a kind of element types and a number of dimensions, most often one of the last ones."""
        found = [
            number
            for number, (value, depth) in enumerate(self.pool)
            if depth <= self.limit
            and value.element_type.name in KINDS[kind]
            and least <= value.rank <= most
            and where(value)
        ]
        if found and self.chance(0.9):
            return self._take(
                self.random.choices(found, [1 + 3 * (number not in self.used) + number / 4 for number in found])[0]
            )
        for _ in range(20):
            element, dims = self.element(kind), self.dims(least, min(most, self.highest))
            made = self._leaf(element, dims)
            if where(made):
                return made
        raise UnfitError

    def like(self, element: str, dims: Sequence[int]) -> Value:
        """A value of one type and sizes: of the pool, made of one of the pool, or a new one."""
        dims = tuple(dims)
        same = [
            number
            for number, (value, depth) in enumerate(self.pool)
            if depth <= self.limit and value.element_type.name == element and tuple(value.dims) == dims
        ]
        if same and self.chance(0.75):
            return self._take(self.random.choice(same))
        if dims and self.chance(0.5):
            spread = [
                number
                for number, (value, depth) in enumerate(self.pool)
                if depth <= self.limit
                and value.element_type.name == element
                and 0 < value.rank <= len(dims)
                and list(value.dims) == list(dims[len(dims) - value.rank :])
            ]
            if spread:
                value = self._take(self.random.choice(spread))
                return ops.broadcast(value, dims[: len(dims) - value.rank])
        if not dims or self.chance(0.75):
            return self._leaf(element, dims)
        return ops.broadcast_in_dim(self._leaf(element, ()), dims, [])

    def _take(self, number: int) -> Value:
        value, depth = self.pool[number]
        self.used.add(number)
        self.taken = max(self.taken, depth)
        return value

    def _leaf(self, element: str, dims: Dims) -> Value:
        """A parameter, a constant or an iota, which joins the pool."""
        value = self._source(element, dims)
        self.pool.append((value, 0))
        self.used.add(len(self.pool) - 1)
        return value

    def _source(self, element: str, dims: Dims) -> Value:
        if self.builder is not None and len(self.arguments) < 6 and self.chance(0.8):
            return self.parameter(element, dims)
        if dims and element not in ("pred", "f8e8m0fnu") and self.chance(0.3):
            return ops.iota(element, dims, self.random.randrange(len(dims)))
        if prod(dims) > 64 or self.chance(0.3):
            return ops.broadcast_in_dim(ops.constant(array_of(self.random, element, ()), element), dims, [])
        return ops.constant(array_of(self.random, element, dims), element)

    def parameter(self, element: str, dims: Dims) -> Value:
        assert self.builder is not None
        number, array = len(self.arguments), array_of(self.random, element, dims)
        shape = Shape.array(element, *dims)
        if self.has_borders and len(dims) > 1 and self.chance(0.5):
            shape = shape.with_layout(Layout(tuple(self.permutation(len(dims)))))
        if not self.has_borders or self.chance(0.8):
            self.arguments.append(array)
            self.parameters.append(self.builder.parameter(number, shape))
            return self.parameters[-1]
        # The first of a tuple, the second of which joins the pool beside it.
        other = Shape.array(self.element(), *self.dims())
        assert other.element is not None
        self.arguments.append((array, array_of(self.random, other.element.name, other.dimensions)))
        self.parameters.append(self.builder.parameter(number, Shape.tuple_of(shape, other)))
        first, second = self.parameters[-1]
        self.pool.append((second, 0))
        return first

    def scalar(self, element: str) -> Value:
        return self.like(element, ())

    def constant(self, element: str, dims: Dims = ()) -> Value:
        return ops.constant(array_of(self.random, element, dims), element)

    # insides
    def inner(self, values: Sequence[tuple[Value, int]], *, exact: bool, highest: int = 5) -> Maker:
        """A maker of a computation that sees these values; ``highest`` is the greatest rank in it."""
        inside = (self.random, None, self.types, self.sizes, list(values))
        return Maker(*inside, level=self.level + 1, exact=exact or self.exact, highest=highest)

    def visible(self) -> list[tuple[Value, int]]:
        """What a branch sees of its surroundings."""
        return [entry for entry in self.pool if entry[1] <= self.limit]


def is_known(value: Value) -> bool:
    """Whether a value is computed of constants alone, so that XLA folds it."""
    owner = value.ir.owner
    return not isinstance(owner, ir.Block) and all(is_known(Value(operand)) for operand in owner.operation.operands)


class UnfitError(Exception):
    """Nothing in the program fits an operation: another one is tried."""
