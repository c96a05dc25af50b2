"""Elements of several places at once, those of a vector, which follow each other along one counter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.pipelines.codegen.access import Accesses, cost_of
from hloforge.pipelines.codegen.elements.kinds import is_complex, single
from hloforge.pipelines.codegen.elements.memory import Element
from hloforge.pipelines.codegen.emit import Emitter, Memory
from hloforge.pipelines.codegen.evaluate import Condition
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import Value, lanes_of, vector_of

# Of one operation, what costs as much as a transcendental function: elements that are computed twice, where vectors
# overlap, would cost more than a loop of their own.
_FUNCTION = 16


@dataclass
class VectorAccesses(Accesses):
    """Whether elements of a vector of places can be computed at once.

    Attributes:
        along: the counter that is a vector.
        work: of all operations, in sums.
        functions: whether transcendental functions are welcome: each element is computed once.
        counts: whether integers that count along the vector are, as a ``VectorEmitter`` makes them.
        fits: whether all that was asked for can be.
    """

    along: Symbol | None = None
    work: int = 0
    functions: bool = False
    counts: bool = False
    fits: bool = True

    def check(self, number: Index, *, step: int = 1) -> None:
        """Args: step: between the elements of a vector, besides none."""
        for symbol, factor in number.terms:
            if symbol is self.along:
                self.fits = self.fits and factor == step
            elif self._follows(symbol):
                self.fits = False

    def _follows(self, symbol: Symbol) -> bool:
        """Whether a quotient is of the vector's counter."""
        if symbol.quotient is None:
            return False
        inner, _ = symbol.quotient
        return any(one is self.along or self._follows(one) for one, _ in inner.terms)

    def choose(
        self, array: Array, conditions: Sequence[Condition], yes: Callable[[], Any], no: Callable[[], Any]
    ) -> None:
        known = [condition.known for condition in conditions]
        if all(known) or False in known:
            super().choose(array, conditions, yes, no)
            return
        # Both are not looked at: one that is never chosen, such as a part of size 0, may have no memory.
        self.conditions += conditions
        self.fits = False

    def load(self, array: Array, number: Index) -> None:
        super().load(array, number)
        self.check(number)
        self.fits = self.fits and not is_complex(array.element)

    def number(self, index: Index, element: str) -> None:
        super().number(index, element)
        is_counted = self.counts and "f" not in element and any(one is self.along for one, _ in index.terms)
        self.check(index, step=1 if is_counted else 0)

    def apply(self, op: Op, operands: Sequence[object]) -> None:
        super().apply(op, operands)
        cost = cost_of(op)
        self.work += cost
        arrays = (op.result, *op.operands)
        is_dear = cost >= _FUNCTION and not self.functions
        self.fits = self.fits and not is_dear and not any(is_complex(array.element) for array in arrays)


class VectorEmitter(Emitter):
    """Writes elements of a vector of places; what is the same at all of them stays one number.

    Args:
        along: the counter of the first place; the others follow it.
    """

    def __init__(
        self, function: Function, memory: Callable[[Array], Memory | None], along: Symbol | None, lanes: int
    ) -> None:
        super().__init__(function, memory)
        self._along, self._lanes = along, lanes

    def load(self, array: Array, number: Index) -> Element:
        made = self._made_here(array)
        if made is not None:
            return made
        is_along = any(symbol is self._along for symbol, _ in number.terms)
        memory, number = self.nearest(array, number)
        return memory.load(self.value(number), self._lanes if is_along else 0)

    def number(self, index: Index, element: str) -> Element:
        first = super().number(index, element)
        if not self._lanes or not any(symbol is self._along for symbol, _ in index.terms):
            return first
        one = single(first)
        steps = ", ".join(f"{one.kind} {lane}" for lane in range(self._lanes))
        return self.spread(one) + Value(self.function, vector_of(one.kind, self._lanes), f"<{steps}>")

    def apply(self, op: Op, operands: Sequence[Element]) -> Element:
        values = [single(operand) for operand in operands]
        if any(lanes_of(value.kind) for value in values):
            values = [self.spread(value) for value in values]
        return super().apply(op, values)

    def spread(self, value: Value) -> Value:
        """A vector, of one number if need be."""
        return value if not self._lanes or lanes_of(value.kind) else self.function.spread(value, self._lanes)
