"""Stable sorts of the rows of several arrays along one dimension.

Source: StableHLO spec "sort". By keys (``sort_keys.py``): the few first of some hundred elements are extracted one
after the other, all of them move to their ranks; the first ones of many are taken out of a tree; others are sorted by
the digits of their keys. By any other comparator: insertion into short runs, which are merged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from hloforge.pipelines.codegen.algorithms.arrays import Element, Elements
from hloforge.pipelines.codegen.algorithms.extract_first import MOST_BITS, ExtractFirst
from hloforge.pipelines.codegen.algorithms.merge_sort import Less, MergeSort
from hloforge.pipelines.codegen.algorithms.places import divided, each, flat
from hloforge.pipelines.codegen.algorithms.radix_sort import RadixSort
from hloforge.pipelines.codegen.algorithms.rank_sort import padded, write_ranks
from hloforge.pipelines.codegen.algorithms.scratch import part
from hloforge.pipelines.codegen.algorithms.sort_keys import Keys, word_of
from hloforge.pipelines.codegen.algorithms.tree_selection import TreeSelection
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.values import I32, I64, Number, Value

# Computes an element of an operand at the indices [outer, place in the row, inner].
Reader = Callable[[Sequence[Number]], Element]

# Up to so many elements with keys of 32 bits, and of more, ranks are counted: where digits take longer, on a Zen 4.
_RANKED, _RANKED_WIDE = 128, 192
# What an element that is extracted takes, and one for each time that runs are merged, in ns.
_EXTRACTED, _MERGED = 12, 2


@dataclass(frozen=True)
class Sort:
    """A sort of arrays ``[outer, n, inner]`` along n.

    Attributes:
        elements: the type of each array's elements.
        order: keys, or whether a record is before another.
        kept: how many first elements of each row are asked for; None for all.
    """

    outer: int
    n: int
    inner: int
    elements: tuple[str, ...]
    order: Keys | Less
    kept: int | None = None

    @property
    def rows(self) -> int:
        return self.outer * self.inner

    @cached_property
    def count(self) -> int:
        """How many elements of each row are written."""
        return self.n if self.kept is None else min(self.kept, self.n)

    @cached_property
    def scratch(self) -> int:
        """Bytes that a call works in."""
        if not isinstance(self.order, Keys):
            return MergeSort(self.n, self.elements).scratch
        if self._is_extracted:
            return self._extraction.scratch
        if self._is_ranked:
            return sum(-(-size // 64) * 64 for size in (*self._key_bytes, padded(self.n) * 4))
        if self._is_selected:
            return self._selection.scratch
        return self._radix_bytes + (4 * self.n if len(self._keys.widths) > 1 else 0)

    @property
    def _radix_bytes(self) -> int:
        return max(self._radix(number).scratch for number in range(len(self._keys.widths)))

    @cached_property
    def _keys(self) -> Keys:
        assert isinstance(self.order, Keys)
        return self.order.packed()

    @property
    def _kinds(self) -> list[str]:
        """Integer types of the keys in memory, for vectors."""
        return [word_of(max(32, width)) for width in self._keys.widths]

    @property
    def _key_bytes(self) -> list[int]:
        return [padded(self.n) * int(kind[1:]) // 8 for kind in self._kinds]

    @property
    def reads_once(self) -> bool:
        """Whether an element of each operand is read once, and again if it is one of the first."""
        return isinstance(self.order, Keys) and (self._is_extracted or self._is_ranked or self._is_selected)

    @property
    def _is_extracted(self) -> bool:
        is_narrow = len(self._keys.widths) == 1 and self._keys.widths[0] <= MOST_BITS
        return is_narrow and self._is_ranked and 2 * self.count <= self.n

    @property
    def _extraction(self) -> ExtractFirst:
        return ExtractFirst(self.count, self.n, self._keys.widths[0])

    @property
    def _is_ranked(self) -> bool:
        return self.n <= (_RANKED if self._kinds == [I32] else _RANKED_WIDE)

    @property
    def _is_selected(self) -> bool:
        if len(self._kinds) > 1 or self.count == self.n or (self._kinds == [I32] and self._is_ranked):
            return False
        return self._selection.cost < self._cost_of_all

    @property
    def _selection(self) -> TreeSelection:
        return TreeSelection(self.count, self.n, self._keys.widths[0])

    @cached_property
    def cost(self) -> int:
        """What a row takes, in ns on a Zen 5."""
        return self._cost + (self.n // 3 if self.inner > 1 else 0)

    @property
    def _cost(self) -> int:
        if not isinstance(self.order, Keys):
            return int(_MERGED * self.n * max(1.0, math.log2(max(self.n, 1))))
        if self._is_extracted:
            return _EXTRACTED * self.count
        return self._selection.cost if self._is_selected else self._cost_of_all

    @property
    def _cost_of_all(self) -> int:
        if self._is_ranked:
            return 40 + padded(self.n) * self.n // 20
        return sum(self._radix(number).cost for number in range(len(self._keys.widths)))

    def _radix(self, key: int) -> RadixSort:
        width = self._keys.widths[key]
        if self._is_restored:
            return RadixSort(self.n, word_of(width), 0, width, False)
        if width <= 32:
            return RadixSort(self.n, I64, 32, width, False)
        return RadixSort(self.n, I64, 0, width, True)

    @property
    def _is_restored(self) -> bool:
        """Whether the keys are all there is to sort."""
        return len(self.elements) == 1 and self._keys.restore is not None

    def write(
        self,
        function: Function,
        sources: Sequence[Elements | Reader],
        targets: Sequence[Elements | None],
        memory: Value,
        rows: tuple[Number, Number] | None = None,
    ) -> None:
        """Write the loops.

        Args:
            sources: the operands, or what computes their elements.
            targets: the results, ``[outer, count, inner]``; None for those that nobody reads.
            memory: ``scratch`` bytes.
            rows: the first of the rows to sort, and the one after the last; None for all.
        """
        if not self.count or not self.rows:
            return
        first, last = rows or (0, self.rows)
        with each(function, first, last) as row:
            outer, inner = divided(row, self.inner)
            _Row(self, function, sources, targets, memory, outer, inner).sort()


@dataclass(frozen=True)
class _Row:
    """The work on one row."""

    plan: Sort
    function: Function
    sources: Sequence[Elements | Reader]
    targets: Sequence[Elements | None]
    memory: Value
    outer: Number
    inner: Number

    def sort(self) -> None:
        if not isinstance(self.plan.order, Keys):
            merged = MergeSort(self.plan.n, self.plan.elements)
            found = merged.write(self.function, self.memory, self.read, self.plan.order)
            self._copy(lambda place: place, sources=found)
        elif self.plan._is_extracted:
            self._by_selection(self.plan._extraction)
        elif self.plan._is_ranked:
            self._by_ranks()
        elif self.plan._is_selected:
            self._by_selection(self.plan._selection)
        else:
            self._by_digits()

    def read(self, place: Value) -> list[Element]:
        """The record at a place of the row."""
        return [self._element(source, place) for source in self.sources]

    def _element(self, source: Elements | Reader, place: Number) -> Element:
        if isinstance(source, Elements):
            return source.at(self._place(place, self.plan.n))
        return source([self.outer, place, self.inner])

    def _place(self, place: Number, length: int) -> Number:
        inner = self.plan.inner
        return flat([self.outer, place, self.inner], [length * inner, inner, 1])

    def _keys_in(self, memory: Value) -> list[Array]:
        """Compute the keys of the row; the greatest ones follow them."""
        arrays, start, n = [], 0, self.plan.n
        for kind, size in zip(self.plan._kinds, self.plan._key_bytes, strict=True):
            arrays.append(Array(part(memory, start), kind))
            start += -(-size // 64) * 64
        with each(self.function, 0, n) as place:
            for array, key in zip(arrays, self.plan._keys.compute(self.read(place)), strict=True):
                array.put(key.as_(array.kind, signed=False), place)
        if padded(n) > n:
            with each(self.function, n, padded(n)) as place:
                for array in arrays:
                    array.put(self.function.constant(-1, array.kind), place)
        return arrays

    def _by_ranks(self) -> None:
        function = self.function
        keys = self._keys_in(self.memory)
        ranks = Array(part(self.memory, sum(-(-size // 64) * 64 for size in self.plan._key_bytes)), I32)
        write_ranks(function, keys, self.plan.n, ranks)
        with each(self.function, 0, self.plan.n) as place:
            rank = ranks.at(place).as_(I64, signed=False)
            if self.plan.count == self.plan.n:
                self._move(place, rank)
                return
            with function.if_(rank < self.plan.count):
                self._move(place, rank)

    def _by_selection(self, selection: ExtractFirst | TreeSelection) -> None:
        keys = self.plan._keys
        numbers = selection.write(self.function, self.memory, lambda place: keys.compute(self.read(place))[0])
        self._copy(lambda place: numbers.at(place).as_(I64, signed=False))

    def _by_digits(self) -> None:
        keys, order = self.plan._keys, (lambda place: place)
        words = None
        for number in reversed(range(len(keys.widths))):
            radix = self.plan._radix(number)
            words, numbers = radix.write(self.function, self.memory, self._word(number, radix, order))
            order = _numbers_of(radix, words, numbers)
            if number:
                order = self._kept(order)
        assert words is not None
        if self.plan._is_restored and self.targets[0] is not None:
            self._restore(words)
        elif not self.plan._is_restored:
            self._copy(order)

    def _kept(self, order: Callable[[Value], Value]) -> Callable[[Value], Value]:
        """An order in memory that the sort by the next key leaves alone."""
        kept = Array(part(self.memory, self.plan._radix_bytes), I32)
        with each(self.function, 0, self.plan.n) as place:
            kept.put(order(place).as_(I32), place)
        return lambda place: kept.at(place).as_(I64, signed=False)

    def _word(
        self, key: int, radix: RadixSort, order: Callable[[Value], Value]
    ) -> Callable[[Value], tuple[Value, Value | None]]:
        """What is sorted by a key: the key, and the number of the record in one word with it or beside it."""

        def word(place: Value) -> tuple[Value, Value | None]:
            number = order(place)
            bits = self.plan._keys.compute(self.read(number))[key].as_(radix.kind, signed=False)
            if self.plan._is_restored:
                return bits, None
            return (bits, number.as_(I32)) if radix.indexed else ((bits << 32) | number, None)

        return word

    def _restore(self, words: Array) -> None:
        restore, target = self.plan._keys.restore, self.targets[0]
        assert restore is not None and target is not None
        with each(self.function, 0, self.plan.count) as place:
            target.put(restore[1](words.at(place)), self._place(place, self.plan.count))

    def _copy(self, order: Callable[[Value], Value], sources: Sequence[Elements] | None = None) -> None:
        """Write the records of some numbers of the row, or of other arrays."""
        with each(self.function, 0, self.plan.count) as place:
            self._move(order(place), place, sources)

    def _move(self, source: Value, target: Value, sources: Sequence[Elements] | None = None) -> None:
        into = self._place(target, self.plan.count)
        for number, array in enumerate(self.targets):
            if array is not None:
                array.put(sources[number].at(source) if sources else self._element(self.sources[number], source), into)


def _numbers_of(radix: RadixSort, words: Array, numbers: Array) -> Callable[[Value], Value]:
    if radix.indexed:
        return lambda place: numbers.at(place).as_(I64, signed=False)
    return lambda place: words.at(place) & 0xFFFFFFFF
