"""The steps that random programs are made of, each an operation or an idiom of a few."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from hloforge.dialect.element_types import element_type
from hloforge.dialect.errors import OperationError
from hloforge.dialect.values import TupleValue, Value, leaves
from tests.fuzz.maker import DEEPEST, KINDS, Maker, UnfitError

Made = Value | Sequence[Value]


@dataclass(frozen=True)
class Step:
    """A way to make new values of those that are there.

    Attributes:
        weight: how often it is taken.
        rounds: whether its float results are rounded otherwise by each engine.
        exact: whether its operands must be exact, as of what jumps.
        nests: whether it makes computations of steps.
        is_scalar: whether it can stand in a computation of scalars.
    """

    make: Callable[[Maker], Made]
    weight: float
    rounds: bool
    exact: bool
    nests: bool
    is_scalar: bool

    @property
    def name(self) -> str:
        return self.make.__name__

    def apply(self, maker: Maker) -> list[Value]:
        """The new values, which join the pool; none if nothing fits."""
        maker.limit = 0 if self.exact or maker.exact else DEEPEST - 1 if self.rounds else DEEPEST
        maker.taken = 0
        try:
            made = self.make(maker)
        except UnfitError:
            return []
        values = [
            leaf for value in ([made] if isinstance(made, Value | TupleValue) else made) for leaf in leaves(value)
        ]
        for value in values:
            maker.pool.append((value, _depth(value, maker.taken, self.rounds)))
        return values


def _depth(value: Value, taken: int, rounds: bool) -> int:
    name = value.element_type.name
    if name not in KINDS["float"] | KINDS["complex"]:
        return 0
    if element_type(name).bits <= 8 and (taken or rounds):
        # A step of so few bits is more than any tolerance.
        return DEEPEST
    return min(DEEPEST, taken + rounds)


STEPS: list[Step] = []


def step(
    weight: float = 1.0, *, rounds: bool = False, exact: bool = False, nests: bool = False, is_scalar: bool = False
) -> Callable[[Callable[[Maker], Made]], Callable[[Maker], Made]]:
    """Register a step."""

    def register(make: Callable[[Maker], Made]) -> Callable[[Maker], Made]:
        if make.__name__ in {known.name for known in STEPS}:
            raise ValueError(f"{make.__name__} is registered")
        STEPS.append(Step(make, weight, rounds, exact, nests, is_scalar))
        return make

    return register


def grow(maker: Maker, count: int, *, only_scalars: bool = False, names: Container[str] | None = None) -> None:
    """Apply random steps; of these names, if some are given."""
    fitting = [
        known
        for known in STEPS
        if (known.is_scalar or not only_scalars)
        and not (known.nests and (maker.level > 1 or only_scalars))
        and (names is None or known.name in names)
    ]
    for _ in range(count):
        chosen = maker.random.choices(
            fitting, [known.weight * (0.4 if known.nests and maker.level else 1) for known in fitting]
        )[0]
        try:
            chosen.apply(maker)
        except OperationError as error:
            raise AssertionError(f"{chosen.name} made an invalid operation: {error}") from error
