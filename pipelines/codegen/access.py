"""Which elements of which arrays a loop over places reads, and what an element costs: found without writing code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hloforge.dialect.traits import TABLE, TRANSCENDENTAL
from hloforge.pipelines.codegen.elements.kinds import REALS, class_of
from hloforge.pipelines.codegen.evaluate import MOVES, Condition, Place, Rules
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.index import Index, Symbol

# Instructions of an operation, roughly: how a transcendental function compares to a sum.
_FUNCTION, _DIVISION = 16, 4


@dataclass
class Accesses(Rules):
    """What elements need.

    Args:
        memory: the arrays that are in memory.

    Attributes:
        loads: each array and the number of the element that is read.
        uses: all numbers of elements and places that the code computes.
        cost: in sums, of all elements that were asked for.
        conditions: under which something is read.
        is_irregular: whether a place depends on what is in memory and differs from one iteration to the next.
        scattered: symbols of such places; each with the counters that they differ by.
        fixed: symbols of places that are in memory and are the same in all iterations, as of a slice that begins where
            a loop's counter says; each with what ``start`` was asked.
        computed: arrays whose elements are.
    """

    memory: Callable[[Array], bool]
    loads: list[tuple[Array, Index]] = field(default_factory=list)
    uses: list[Index] = field(default_factory=list)
    cost: int = 0
    conditions: list[Condition] = field(default_factory=list)
    is_irregular: bool = False
    scattered: dict[Symbol, frozenset[Symbol]] = field(default_factory=dict)
    fixed: dict[Symbol, tuple[Array, Place, int, Any]] = field(default_factory=dict)
    computed: set[Array] = field(default_factory=set)
    _known: set[Any] = field(default_factory=set)
    _symbols: dict[Any, Index] = field(default_factory=dict)

    def copy(self) -> Accesses:
        """What goes on apart from here."""
        copied: dict[str, Any] = {n: v.copy() for n, v in vars(self).items() if isinstance(v, list | dict | set)}
        return replace(self, **copied)

    def load(self, array: Array, number: Index) -> None:
        self.loads.append((array, number))
        self.uses.append(number)
        self.cost += 1

    def in_memory(self, array: Array) -> bool:
        return self.memory(array)

    def _made(self, array: Array, place: Place) -> None:
        self.computed.add(array)
        super()._made(array, place)

    def splat(self, op: Op) -> None:
        pass

    def apply(self, op: Op, operands: Sequence[Any]) -> None:
        self.cost += cost_of(op)

    def number(self, index: Index, element: str) -> None:
        self.uses.append(index)

    def start(self, array: Array, at: Place, most: int, key: Any) -> Index:
        self.element(array, at)
        if key not in self._symbols:
            symbol = Symbol(most)
            self._symbols[key] = Index(((symbol, 1),))
            if any(index.terms for index in at):
                self.is_irregular = True
                self.scattered[symbol] = frozenset(counter for index in at for counter, _ in index.terms)
            else:
                self.fixed[symbol] = array, at, most, key
        return self._symbols[key]

    def choose(
        self, array: Array, conditions: Sequence[Condition], yes: Callable[[], Any], no: Callable[[], Any]
    ) -> None:
        known = [condition.known for condition in conditions]
        if all(known):
            yes()
        elif False in known:
            no()
        else:
            self.conditions += conditions
            self.uses += [condition.index for condition in conditions]
            self.cost += len(conditions)
            yes()
            no()

    def remembered(self, key: Any, make: Callable[[], Any]) -> None:
        if key not in self._known:
            self._known.add(key)
            make()


@dataclass
class _Reads(Accesses):
    """What one view reads."""

    read: list[tuple[Array, Place]] = field(default_factory=list)

    def element(self, array: Array, place: Place) -> None:
        self.read.append((array, place))

    def of(self, view: Op, place: Place) -> list[tuple[Array, Place]]:
        self._made(view.result, place)
        return self.read


def places_read(view: Op, place: Place, array: Array) -> set[Place]:
    """The places in an array that a view's element at a place is read from."""
    return {read for one, read in _Reads(lambda _: False).of(view, place) if one is array}


def cost_up_to(limit: int, op: Op, costs: Mapping[Array, int], is_read: Callable[[Array], bool]) -> int:
    """What an element of an elementwise operation costs if what it needs several times is computed once; above the
    limit, something above it.

    Elementwise operations need elements at their own place, of which there is one each. What two views read is taken
    for two elements. Places are left out, because most operations of a long chain ask.

    Args:
        costs: of elements of arrays that views make.
        is_read: whether an array is in memory.
    """
    seen, waiting, total = set(op.results), [op], 0
    while waiting and total <= limit:
        top = waiting.pop()
        total += cost_of(top)
        for array in top.operands:
            if array in seen:
                continue
            seen.add(array)
            if array.op is None or is_read(array):
                total += 1
            elif array.op.name in MOVES:
                total += costs[array]
            else:
                waiting.append(array.op)
    return total


def cost_of(op: Op) -> int:
    """Of an elementwise operation, in sums."""
    name = f"stablehlo.{op.name}"
    is_remainder = op.name == "remainder" and class_of(op.result.element) in tuple(REALS)
    if name in TRANSCENDENTAL or name not in TABLE or is_remainder:
        return _FUNCTION
    return _DIVISION if op.name in ("divide", "remainder", "sqrt") else 1
