"""The few first of many keys: a block of keys is compared with the last of the best so far, and mostly left alone."""

from __future__ import annotations

from dataclasses import dataclass

from hloforge.pipelines.codegen.algorithms.places import each, fold
from hloforge.pipelines.codegen.algorithms.rank_sort import LANES, padded, write_ranks
from hloforge.pipelines.codegen.algorithms.scratch import InParts
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.values import I1, I32, I64, Value


@dataclass(frozen=True)
class SelectFirst(InParts):
    """The first ``kept`` of ``count`` keys, in order, of equal ones those that come first.

    Attributes:
        kind: the integer type of a key.
    """

    kept: int
    count: int
    kind: str

    @property
    def _capacity(self) -> int:
        """Candidates that are collected before they are ordered, and a block more."""
        return padded(max(2 * LANES, 3 * self.kept)) + LANES

    @property
    def _parts(self) -> list[int]:
        return [self._capacity * int(self.kind[1:]) // 8] * 2 + [self._capacity * 4] * 3

    def write(self, function: Function, memory: Value, keys: Array) -> Array:
        """Write the selection.

        Args:
            memory: ``scratch`` bytes.
            keys: integers without signs, with room for ``padded(count)``; the greatest ones follow the last.

        Returns:
            the numbers of the first keys, i32, in order.
        """
        *pointers, ranks = self._pointers(memory)
        greatest = function.constant(-1, self.kind)
        # Until there are candidates, every key is one; equal to the last of the best is too late after that.
        first = [*pointers, function.index(0), greatest, function.constant(1, I1)]

        def turn(start: Value, state: list[Value]) -> list[Value]:
            block = keys.at(start, LANES)
            limit, is_open = state[-2:]
            least = function.emit(f"call {self.kind} @llvm.vector.reduce.umin.v{LANES}{self.kind}({block})", self.kind)
            taken = function.branch(
                least.compare("ult", limit) | is_open,
                lambda: [self._taken(function, state, keys, start)],
                lambda: [state[-3]],
            )
            is_full = taken[0].compare("sgt", self._capacity - LANES) | start.equals(padded(self.count) - LANES)
            return function.branch(
                is_full,
                lambda: self._ordered(function, [*state[:4], taken[0]], ranks),
                lambda: [*state[:4], taken[0], limit, is_open],
            )

        return Array(fold(function, 0, padded(self.count), first, turn, LANES)[2], I32)

    def _taken(self, function: Function, state: list[Value], keys: Array, start: Value) -> Value:
        """Collect the candidates of a block; how many there are now."""
        words, _, numbers, _, count, limit, is_open = state

        def take(lane: Value, owned: list[Value]) -> list[Value]:
            place = start + lane
            key = keys.at(place)
            Array(words, self.kind).put(key, owned[0])
            Array(numbers, I32).put(place.as_(I32), owned[0])
            return [owned[0] + (key.compare("ult", limit) | is_open).as_(I64, signed=False)]

        return fold(function, 0, LANES, [count], take)[0]

    def _ordered(self, function: Function, state: list[Value], ranks: Value) -> list[Value]:
        """Order the candidates and forget all but the first."""
        words, other, numbers, moved, count = state
        write_ranks(function, [Array(words, self.kind)], count, Array(ranks, I32))
        with each(function, 0, count) as place:
            rank = Array(ranks, I32).at(place).as_(I64, signed=False)
            Array(other, self.kind).put(Array(words, self.kind).at(place), rank)
            Array(moved, I32).put(Array(numbers, I32).at(place), rank)
        limit = Array(other, self.kind).at(self.kept - 1)
        return [other, words, moved, numbers, count.minimum(self.kept), limit, function.constant(0, I1)]
