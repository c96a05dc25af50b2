"""The first of some keys in order: a tree of minima, out of which one key after the other is taken.

A node is a vector of some minima, each of a node of the level below; the lowest nodes are the keys. To take the least
key, its way down is followed, it is replaced by the greatest number, and the minima of its way up are computed anew.
No branch depends on the data: ``n`` keys take one pass, and each of the first ones some vectors for each level.

Source: D. E. Knuth, "The Art of Computer Programming", volume 3, 5.2.3, "tree selection".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from hloforge.pipelines.codegen.algorithms.places import each, while_
from hloforge.pipelines.codegen.algorithms.scratch import InParts
from hloforge.pipelines.codegen.algorithms.sort_keys import word_of
from hloforge.pipelines.codegen.lang.functions import Array, Function
from hloforge.pipelines.codegen.lang.values import I32, I64, Value, bits_of, element_of, lanes_of

# Keys of a node.
_LEAST_LANES, _MOST_LANES = 8, 64


@dataclass(frozen=True)
class TreeSelection(InParts):
    """The first ``kept`` of ``count`` keys, in order, of equal ones those that come first.

    Attributes:
        width: of a key in bits, 64 at most.
    """

    kept: int
    count: int
    width: int

    @cached_property
    def kind(self) -> str:
        """The integer type of a key in memory."""
        return word_of(max(16, self.width))

    @cached_property
    def levels(self) -> list[tuple[int, int]]:
        """How many nodes each level has, the keys first, and of how many lanes."""
        height, lanes = 1, _LEAST_LANES
        while _MOST_LANES**height < self.count:
            height += 1
        while lanes**height < self.count:
            lanes *= 2
        levels, count = [], self.count
        while count > lanes:
            count = -(-count // lanes)
            levels.append((count, lanes))
        return [*levels, (1, max(_LEAST_LANES, 1 << (count - 1).bit_length()))]

    @property
    def cost(self) -> int:
        """What a call takes, in ns on a Zen 5."""
        return self.count // 8 + self.kept * (10 + 6 * len(self.levels))

    @property
    def _parts(self) -> list[int]:
        return [*(nodes * lanes * bits_of(self.kind) // 8 for nodes, lanes in self.levels), 4 * self.kept]

    def write(self, function: Function, memory: Value, key: Callable[[Value], Value]) -> Array:
        """Write the selection.

        Args:
            memory: ``scratch`` bytes.
            key: an integer without a sign, by its place.

        Returns:
            the numbers of the first keys, i32, in order.
        """
        *pointers, last = self._pointers(memory)
        levels, numbers = [Array(pointer, self.kind) for pointer in pointers], Array(last, I32)
        greatest = function.constant(-1, self.kind)
        self._fill(function, levels, key)
        top = levels[-1].at(0, self.levels[-1][1])

        def is_left(state: list[Value]) -> Value:
            count, least, _ = state
            flag = count < self.kept
            return flag if self._has_room else flag & least.differs(greatest)

        def take(state: list[Value]) -> list[Value]:
            count, least, node = state
            place, least, node = self._taken(function, levels[:-1], least, node)
            numbers.put(place.as_(I32), count)
            return [count + 1, least, node]

        found = while_(function, [function.index(0), _least(top), top], is_left, take)[0]
        if not self._has_room:
            self._take_greatest(function, numbers, key, found)
        return numbers

    @property
    def _has_room(self) -> bool:
        """Whether no key is the greatest number, which stands for those that were taken."""
        return self.width < bits_of(self.kind)

    def _fill(self, function: Function, levels: list[Array], key: Callable[[Value], Value]) -> None:
        """Compute the keys and the minima."""
        greatest = function.constant(-1, self.kind)
        used = [self.count, *(nodes for nodes, _ in self.levels[:-1])]
        for array, size, (nodes, lanes) in zip(levels, used, self.levels, strict=True):
            if size < nodes * lanes:
                with each(function, size, nodes * lanes) as place:
                    array.put(greatest, place)

        # All keys and then their minima: numbers that come from memory come faster in one loop than in pieces.
        with each(function, 0, self.count) as place:
            levels[0].put(key(place).as_(self.kind, signed=False), place)
        for source, target, (nodes, lanes) in zip(levels, levels[1:], self.levels, strict=False):
            with each(function, 0, nodes) as node:
                target.put(_least(source.at(node * lanes, lanes)), node)

    def _taken(self, function: Function, levels: list[Array], least: Value, top: Value) -> tuple[Value, Value, Value]:
        """Take the least key: its place, the least of those left, and the highest node without it."""
        greatest, lanes = function.constant(-1, self.kind), self.levels[0][1]
        starts: list[Value] = []
        nodes, (place, flag) = [top], _first(top.equals(least))
        flags = [flag]
        for array in reversed(levels):
            starts.append(place * lanes)
            nodes.append(array.at(starts[-1], lanes))
            lane, flag = _first(nodes[-1].equals(least))
            place = starts[-1] + lane
            flags.append(flag)
        # The minimum of the other lanes of each node does not wait for the nodes below.
        others = [_least(flag.where(greatest, node)) for flag, node in zip(flags, nodes, strict=True)]
        value = greatest
        changed: list[Value] = []
        for node, flag, other in zip(reversed(nodes), reversed(flags), reversed(others), strict=True):
            changed.append(flag.where(value, node))
            value = other.minimum(value, signed=False)
        for array, start, node in zip(levels, reversed(starts), changed[:-1], strict=True):
            array.put(node, start)
        return place, value, changed[-1]

    def _take_greatest(self, function: Function, numbers: Array, key: Callable[[Value], Value], found: Value) -> None:
        """Take keys that are the greatest number until there are enough: nobody can tell them from those taken."""

        def is_left(state: list[Value]) -> Value:
            return state[1] < self.kept

        def take(state: list[Value]) -> list[Value]:
            place, count = state
            numbers.put(place.as_(I32), count)
            is_greatest = key(place).as_(self.kind, signed=False).equals(-1)
            return [place + 1, count + is_greatest.as_(I64, signed=False)]

        while_(function, [function.index(0), found], is_left, take)


def _least(node: Value) -> Value:
    kind, lanes = element_of(node.kind), lanes_of(node.kind)
    return node.function.emit(f"call {kind} @llvm.vector.reduce.umin.v{lanes}{kind}({node})", kind)


def _first(flags: Value) -> tuple[Value, Value]:
    """The first lane whose flag holds, and the flags of this one lane alone."""
    function, kind = flags.function, f"i{lanes_of(flags.kind)}"
    bits = function.emit(f"bitcast {flags} to {kind}", kind)
    lowest = bits & -bits
    return bits.call("cttz").as_(I64, signed=False), function.emit(f"bitcast {lowest} to {flags.kind}", flags.kind)
