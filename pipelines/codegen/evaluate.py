"""Elements of arrays by their places: what each operation that computes one element from a few says about it.

An array that is not in memory is a function from a place to an element. Views are functions of the place alone, so that
no operation that only moves elements needs memory of its own; elementwise operations are those of
``elements/table.py``. The same rules serve twice: ``access.py`` asks which elements of which arrays are read, and
``emit.py`` writes the code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from hloforge.dialect.mlir import ir, stablehlo
from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.index import Index
from hloforge.pipelines.codegen.refusal import RefusedError

Place = tuple[Index, ...]
# An element in the code; None where only places are looked at.
Made = Any

MOVES = frozenset(
    [
        "broadcast_in_dim",
        "reshape",
        "transpose",
        "slice",
        "reverse",
        "pad",
        "concatenate",
        "iota",
        "constant",
        "dynamic_slice",
        "gather",
        "dynamic_update_slice",
    ]
)


class Rules(ABC):
    """Elements by places; what is done with them is a subclass's."""

    @abstractmethod
    def load(self, array: Array, number: Index) -> Made:
        """An element of an array in memory."""

    @abstractmethod
    def in_memory(self, array: Array) -> bool:
        """Whether an array is in memory."""

    @abstractmethod
    def splat(self, op: Op) -> Made:
        """The element that a constant repeats."""

    @abstractmethod
    def apply(self, op: Op, operands: Sequence[Made]) -> Made:
        """An elementwise operation."""

    @abstractmethod
    def number(self, index: Index, element: str) -> Made:
        """A place as an element."""

    @abstractmethod
    def start(self, array: Array, at: Place, most: int, key: Any) -> Index:
        """The element of an array as a place, between 0 and ``most``."""

    @abstractmethod
    def choose(
        self, array: Array, conditions: Sequence[Condition], yes: Callable[[], Made], no: Callable[[], Made]
    ) -> Made:
        """One of two elements, the first where all conditions hold. Only that one is computed."""

    @abstractmethod
    def remembered(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made for a key, as long as its code is reached."""

    def element(self, array: Array, place: Place) -> Made:
        """The element of an array at a place."""
        if self.in_memory(array):
            number = places.linear(place, array.shape)
            return self.remembered((array, number), lambda: self.load(array, number))
        return self.remembered((array, place), lambda: self._made(array, place))

    def made(self, array: Array, place: Place) -> Made:
        """The element of an array that is being written; whoever reads it at this place has it from here."""
        element = self._made(array, place)
        for key in ((array, place), (array, places.linear(place, array.shape))):
            self.remembered(key, lambda: element)
        return element

    def _made(self, array: Array, place: Place) -> Made:
        op = array.op
        if op is None:
            raise RefusedError("an argument that is not in memory")
        rule = getattr(self, f"_{op.name}", None) if op.name in MOVES else self._elementwise
        assert rule is not None
        return rule(op, place)

    def _elementwise(self, op: Op, place: Place) -> Made:
        return self.apply(op, [self.element(operand, place if operand.shape else ()) for operand in op.operands])

    def _constant(self, op: Op, place: Place) -> Made:
        return self.splat(op)

    def _iota(self, op: Op, place: Place) -> Made:
        along = ir.IntegerAttr(op.attribute("iota_dimension")).value
        return self.number(place[along], op.result.element)

    def _broadcast_in_dim(self, op: Op, place: Place) -> Made:
        (operand,) = op.operands
        dims = op.integers("broadcast_dimensions")
        return self.element(
            operand,
            tuple(places.ZERO if size == 1 else place[d] for d, size in zip(dims, operand.shape, strict=True)),
        )

    def _reshape(self, op: Op, place: Place) -> Made:
        (operand,) = op.operands
        return self.element(operand, places.reshaped(place, op.result.shape, operand.shape))

    def _transpose(self, op: Op, place: Place) -> Made:
        found = [places.ZERO] * len(place)
        for index, d in zip(place, op.integers("permutation"), strict=True):
            found[d] = index
        return self.element(op.operands[0], tuple(found))

    def _slice(self, op: Op, place: Place) -> Made:
        starts, strides = op.integers("start_indices"), op.integers("strides")
        found = (index * stride + start for index, start, stride in zip(place, starts, strides, strict=True))
        return self.element(op.operands[0], tuple(found))

    def _reverse(self, op: Op, place: Place) -> Made:
        dims = set(op.integers("dimensions"))
        shape = op.result.shape
        found = (index * -1 + (shape[d] - 1) if d in dims else index for d, index in enumerate(place))
        return self.element(op.operands[0], tuple(found))

    def _pad(self, op: Op, place: Place) -> Made:
        operand, value = op.operands
        low, interior = op.integers("edge_padding_low"), op.integers("interior_padding")
        conditions, found = [], []
        for index, size, before, between in zip(place, operand.shape, low, interior, strict=True):
            moved, step = index - before, between + 1
            conditions.append(Condition(moved, max((size - 1) * step + 1, 0), step))
            found.append((moved, step))
        return self.choose(
            op.result,
            conditions,
            lambda: self.element(operand, tuple(moved.over(step) for moved, step in found)),
            lambda: self.element(value, ()),
        )

    def _concatenate(self, op: Op, place: Place) -> Made:
        along = ir.IntegerAttr(op.attribute("dimension")).value
        # Those of size 0 have no memory, and loops that are one do not know that no place is theirs.
        operands = [operand for operand in op.operands if operand.shape[along]] or op.operands[:1]
        starts, start = [], 0
        for operand in operands:
            starts.append(start)
            start += operand.shape[along]

        def of(first: int, last: int) -> Made:
            """Among these operands; the last one counts no more."""
            index = place[along]
            while first + 1 < last and index.low >= starts[first + 1]:
                first += 1
            while first + 1 < last and index.high < starts[last - 1]:
                last -= 1
            if first + 1 == last:
                inner = (*place[:along], index - starts[first], *place[along + 1 :])
                return self.element(operands[first], inner)
            middle = (first + last) // 2
            before = Condition(index, starts[middle])
            return self.choose(op.result, [before], lambda: of(first, middle), lambda: of(middle, last))

        return of(0, len(operands))

    def _starts(self, op: Op, starts: Sequence[Array], most: Sequence[int]) -> list[Index]:
        return [
            places.ZERO if room == 0 else self.start(start, (), room, (op, d))
            for d, (start, room) in enumerate(zip(starts, most, strict=True))
        ]

    def _dynamic_slice(self, op: Op, place: Place) -> Made:
        operand, *starts = op.operands
        most = [size - part for size, part in zip(operand.shape, op.result.shape, strict=True)]
        moved = self._starts(op, starts, most)
        return self.element(operand, tuple(index + start for index, start in zip(place, moved, strict=True)))

    def _dynamic_update_slice(self, op: Op, place: Place) -> Made:
        operand, update, *starts = op.operands
        most = [size - part for size, part in zip(operand.shape, update.shape, strict=True)]
        moved = self._starts(op, starts, most)
        inner = tuple(index - start for index, start in zip(place, moved, strict=True))
        conditions = [
            Condition(index, part) for index, part, room in zip(inner, update.shape, most, strict=True) if room
        ]
        return self.choose(
            op.result, conditions, lambda: self.element(update, inner), lambda: self.element(operand, place)
        )

    def _gather(self, op: Op, place: Place) -> Made:
        operand, starts = op.operands
        numbers = stablehlo.GatherDimensionNumbers(op.attribute("dimension_numbers"))
        sizes = op.integers("slice_sizes")
        offsets, vector = numbers.offset_dims, numbers.index_vector_dim
        batch = [place[d] for d in range(len(place)) if d not in offsets]
        found = [places.ZERO] * operand.rank
        gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
        for d, source in zip([d for d in range(operand.rank) if d not in gone], offsets, strict=True):
            found[d] = place[source]
        batches = [d for d in range(starts.rank) if d != vector]
        for d, source in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
            found[d] = batch[batches.index(source)]
        for number, d in enumerate(numbers.start_index_map):
            room = operand.shape[d] - sizes[d]
            if room == 0:
                continue
            where = list(batch)
            if vector < starts.rank:
                where.insert(vector, places.constant(number))
            found[d] = found[d] + self.start(starts, tuple(where), room, (op, number, tuple(where)))
        return self.element(operand, tuple(found))


class Condition:
    """A place lies at or above 0 and below a limit, and is a multiple of a step there.

    Attributes:
        index: may be negative.
    """

    __slots__ = ("index", "limit", "step")

    def __init__(self, index: Index, limit: int, step: int = 1) -> None:
        self.index, self.limit, self.step = index, limit, step

    @property
    def known(self) -> bool | None:
        """Whether it always or never holds; None if that depends."""
        if self.index.low >= self.limit or self.index.high < 0:
            return False
        if self.index.low >= 0 and self.index.high < self.limit and self.step == 1:
            return True
        return None
