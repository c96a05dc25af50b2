"""The few first of some keys: the least one, then the least of those above it, each by one pass of vectors.

A key and its place are one word, so that equal keys keep their order and no two words are equal. No branch depends on
the data. For ``k`` of ``n`` keys that is ``k n`` comparisons, where ranks take ``n²`` and digits some thousand steps
for any row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloforge.pipelines.codegen.algorithms.places import each, fold
from hloforge.pipelines.codegen.algorithms.rank_sort import LANES, padded
from hloforge.pipelines.codegen.algorithms.scratch import InParts
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.values import I32, I64, Value

# Bits of a key at most: a place has the rest of a word.
MOST_BITS = 32


@dataclass(frozen=True)
class ExtractFirst(InParts):
    """The first ``kept`` of ``count`` keys, in order, of equal ones those that come first.

    Attributes:
        width: of a key in bits.
    """

    kept: int
    count: int
    width: int

    @property
    def _kind(self) -> str:
        return I32 if self.width <= 16 and self.count < 1 << 16 else I64

    @property
    def _shift(self) -> int:
        return 16 if self._kind == I32 else 32

    @property
    def _parts(self) -> list[int]:
        return [padded(self.count) * int(self._kind[1:]) // 8, 4 * self.kept]

    def write(self, function: Function, memory: Value, key: Callable[[Value], Value]) -> Array:
        """Write the extraction.

        Args:
            memory: ``scratch`` bytes.
            key: an integer without a sign, by its place.

        Returns:
            the numbers of the first keys, i32, in order.
        """
        pointers, kind = self._pointers(memory), self._kind
        words, numbers = Array(pointers[0], kind), Array(pointers[1], I32)
        with each(function, 0, self.count) as place:
            word = key(place).as_(kind, signed=False) << self._shift
            words.put(word | place.as_(kind, signed=False), place)
        greatest = function.constant(-1, kind)
        if padded(self.count) > self.count:
            with each(function, self.count, padded(self.count)) as place:
                words.put(greatest, place)

        def step(place: Value, state: list[Value]) -> list[Value]:
            bound = function.spread(state[0], LANES)

            def least(start: Value, so_far: list[Value]) -> list[Value]:
                block = words.at(start, LANES)
                return [so_far[0].minimum(block.compare("uge", bound).where(block, greatest), signed=False)]

            (lanes,) = fold(function, 0, padded(self.count), [function.spread(greatest, LANES)], least, LANES)
            found = function.emit(f"call {kind} @llvm.vector.reduce.umin.v{LANES}{kind}({lanes})", kind)
            numbers.put((found & ((1 << self._shift) - 1)).as_(I32), place)
            return [found + 1]

        fold(function, 0, self.kept, [function.constant(0, kind)], step)
        return numbers
