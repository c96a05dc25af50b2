"""Sorts of integers by digits, the least significant first: a pass over all elements for each digit that differs.

Source: D. E. Knuth, "The Art of Computer Programming", volume 3, 5.2.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.algorithms.places import each, fold
from hloforge.pipelines.codegen.algorithms.scratch import InParts
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.values import I32, I64, Number, Value

_DIGIT_BITS = 8
_DIGITS = 1 << _DIGIT_BITS


@dataclass(frozen=True)
class RadixSort(InParts):
    """A sort of ``count`` words by some of their bits.

    Attributes:
        kind: the integer type of a word.
        lowest: the first of the bits that count.
        width: how many bits count.
        indexed: whether a number of 32 bits moves along with each word.
    """

    count: int
    kind: str
    lowest: int
    width: int
    indexed: bool

    @property
    def digits(self) -> int:
        return -(-self.width // _DIGIT_BITS)

    @property
    def cost(self) -> int:
        """What a call takes, in ns on a Zen 5: each digit has a table, which is cleared and summed up."""
        return self.digits * (self.count * 7 // 8 + 80)

    @property
    def word_bytes(self) -> int:
        return int(self.kind[1:]) // 8

    @property
    def _parts(self) -> list[int]:
        """The sizes of the parts of the scratch memory: words and numbers twice each, the tables."""
        sizes = [self.count * self.word_bytes] * 2 + [self.count * 4 * self.indexed] * 2
        return [*sizes, self.digits * _DIGITS * 4]

    def write(
        self, function: Function, memory: Value, word: Callable[[Value], tuple[Value, Value | None]]
    ) -> tuple[Array, Array]:
        """Write the sort.

        Args:
            memory: ``scratch`` bytes.
            word: the word at a place before the sort, and the number that moves with it.

        Returns:
            the words in order, and the numbers.
        """
        *pointers, table = self._pointers(memory)
        tables = Array(table, I32)
        function.clear(table, self.digits * _DIGITS * 4)
        self._count(function, pointers, tables, word)

        def turn(digit: Value, state: list[Value]) -> list[Value]:
            *current, shift = state
            own = Array(function.offset(table, I32, digit * _DIGITS), I32)
            first = Array(current[0], self.kind).at(0)
            # All elements have the digit of the first one: they stay where they are.
            differs = own.at(self._digit(first, shift)).compare("ne", self.count)
            following = function.branch(differs, lambda: self._passed(function, current, own, shift), lambda: current)
            return [*following, shift + _DIGIT_BITS]

        first = [*pointers, function.index(self.lowest)]
        words, _, numbers, _, _ = fold(function, 0, self.digits, first, turn)
        return Array(words, self.kind), Array(numbers, I32)

    def _digit(self, word: Value, shift: Number) -> Value:
        moved = word.shifted_right(shift.as_(self.kind) if isinstance(shift, Value) else shift)
        return (moved.as_(I64, signed=False) if self.kind != I64 else moved) & (_DIGITS - 1)

    def _count(
        self,
        function: Function,
        pointers: Sequence[Value],
        tables: Array,
        word: Callable[[Value], tuple[Value, Value | None]],
    ) -> None:
        """Write the words, and how often each digit occurs."""
        with each(function, 0, self.count) as place:
            own, number = word(place)
            Array(pointers[0], self.kind).put(own, place)
            if number is not None:
                Array(pointers[2], I32).put(number, place)
            for digit in range(self.digits):
                where = self._digit(own, self.lowest + digit * _DIGIT_BITS) + digit * _DIGITS
                tables.put(tables.at(where) + 1, where)

    def _passed(self, function: Function, pointers: Sequence[Value], table: Array, shift: Value) -> list[Value]:
        """Order the words by a digit; the pointers in their new roles."""

        def sum_up(digit: Value, before: list[Value]) -> list[Value]:
            count = table.at(digit)
            table.put(before[0], digit)
            return [before[0] + count]

        fold(function, 0, _DIGITS, [function.constant(0, I32)], sum_up)
        source, target, numbers, moved = pointers
        with each(function, 0, self.count) as place:
            word = Array(source, self.kind).at(place)
            digit = self._digit(word, shift)
            start = table.at(digit)
            table.put(start + 1, digit)
            into = start.as_(I64, signed=False)
            Array(target, self.kind).put(word, into)
            if self.indexed:
                Array(moved, I32).put(Array(numbers, I32).at(place), into)
        return [target, source, moved, numbers]
