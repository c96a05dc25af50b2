"""Reductions of many short rows: as many rows at once as a vector has lanes, added up by a tree of shuffles.

A row of 24 numbers is one vector and a half. Its vectors are combined lane by lane, and then those of sixteen rows two
by two: a shuffle takes half of the lanes of both, another one the other half, and what they give is one vector for two
rows. Fifteen such pairs leave a vector of sixteen results, and take a quarter of the shuffles that transpose the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.elements.kinds import is_complex, register, single
from hloforge.pipelines.codegen.extremes import Keys
from hloforge.pipelines.codegen.graph import Op
from hloforge.pipelines.codegen.groups import Group
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.lang.values import I1, I32, Value, bits_of, is_float, lanes_of, vector_of
from hloforge.pipelines.codegen.nest_loops import sum_of
from hloforge.pipelines.codegen.row_blocks import is_extreme, is_orderless
from hloforge.pipelines.codegen.scalars import combine
from hloforge.pipelines.codegen.sum_tiles import SumTileLoops
from hloforge.pipelines.codegen.vector_places import VectorAccesses, VectorEmitter

# Numbers of a row at least, and vectors at most; blocks of rows at least, and what a term may cost, in sums.
_FEWEST, _VECTORS, _BLOCKS, _CHEAP = 8, 4, 4, 8
# Bytes within which shuffles are cheapest.
_PART = 16
_ORDERLESS = frozenset({"add", "maximum", "minimum", "and", "or"})
# Of flags those that are integers of 32 bits meanwhile: all of them or none are set.
_LOGIC = frozenset({"and", "or"})


class RowTreeLoops(SumTileLoops):
    """Writes such reductions."""

    def _are_row_trees(self, kept: Sequence[Group], reduced: Sequence[Group]) -> bool:
        """Whether all reductions are sums or extremes of short rows, of cheap terms that vectors compute."""
        nest = self._nest
        if not kept or len(reduced) != 1 or self._groups[-1] is not reduced[0] or len(nest.unstored) < len(nest.maps):
            return False
        rows, columns = kept[-1], reduced[0]
        if not all(is_orderless(op) and op.inner[0].ops[0].name in _ORDERLESS for op in nest.reductions):
            return False
        kinds = {_kind(op) for op in nest.reductions}
        if any(is_complex(op.results[0].element) for op in nest.reductions) or len({*map(bits_of, kinds)}) != 1:
            return False
        lanes = self._tree_lanes(columns)
        if not lanes or not _FEWEST <= columns.size <= _VECTORS * lanes or rows.size < _BLOCKS * lanes:
            return False
        _, known = nest.analysis(self._in_memory)
        if known.cost > _CHEAP or known.conditions or known.is_irregular:
            return False
        before = dict(self._counters)
        counters = {group: places.counter(group.size) for group in self._groups}
        for group, counter in counters.items():
            self._enter(group, counter)
        found = VectorAccesses(self._in_memory, along=counters[columns].terms[0][0], counts=True)
        for op in nest.reductions:
            found.element(op.operands[0], nest.at(self._place()))
        self._counters = before
        return found.fits

    def _tree_lanes(self, columns: Group) -> int:
        """Of the longest vectors that a row fills; 0 for elements that are no words."""
        bits = bits_of(_kind(self._nest.reductions[0]))
        if bits < 32:
            return 0
        lanes = self._writer.vector_bytes * 8 // bits
        while lanes > columns.size:
            lanes //= 2
        return lanes if lanes * bits // 8 >= _PART else 0

    def _by_row_trees(self, rows: Group, columns: Group) -> None:
        function, nest, lanes = self._function, self._nest, self._tree_lanes(columns)
        self._keys = Keys(nest.reductions, self._writer.vector_bytes)
        start, stop = self._bounds(-(-rows.size // lanes))
        with function.loop(start, stop) as block, self._emitter.scope():
            # The last rows are taken together with some before them.
            first = (block * lanes).minimum(rows.size - lanes)
            vectors: list[list[Value]] = [[] for _ in nest.reductions]
            for lane in range(lanes):
                self._enter(rows, sum_of(first, rows.size, function.index(lane)))
                for own, value in zip(vectors, self._row_vectors(columns, lanes), strict=True):
                    own.append(value)
            self._enter(rows, sum_of(first, rows.size, function.index(0)))
            self._enter(columns, places.ZERO)
            at = self._result_number()
            starts = [single(one) for op in nest.reductions for one in self._starts(op)]
            for op, own, begin in zip(nest.reductions, vectors, starts, strict=True):
                value = self._tree(op, own)
                value = self._keys.value(value) if op in self._keys else value.differs(0) if _are_flags(op) else value
                self._store(op.results[0], self._both(op, function.spread(begin, lanes), value, is_key=False), at)

    def _row_vectors(self, columns: Group, lanes: int) -> list[Value]:
        """For each reduction a vector of what a row's vectors are together."""
        function, nest = self._function, self._nest
        rest = columns.size % lanes
        starts = [*range(0, columns.size - rest, lanes), *([columns.size - lanes] if rest else [])]
        found: list[Value] = []
        for start in starts:
            symbol = Symbol(columns.size - 1, value=function.index(start))
            emitter = VectorEmitter(function, self._memory, symbol, lanes)
            self._enter(columns, Index(((symbol, 1),)))
            terms = [
                emitter.spread(single(emitter.element(op.operands[0], nest.at(self._place()))))
                for op in nest.reductions
            ]
            if start % lanes:
                terms = [self._new(op, term, rest) for op, term in zip(nest.reductions, terms, strict=True)]
            terms = [
                self._keys.key(op, term) if op in self._keys else term.as_(I32) if _are_flags(op) else term
                for op, term in zip(nest.reductions, terms, strict=True)
            ]
            found = (
                [self._both(op, one, term) for op, one, term in zip(nest.reductions, found, terms, strict=True)]
                if found
                else terms
            )
        return found

    def _new(self, op: Op, term: Value, rest: int) -> Value:
        """A vector without what the one before had; it changes no extreme, and no logic."""
        if is_extreme(op) or op.inner[0].ops[0].name in _LOGIC:
            return term
        lanes = lanes_of(term.kind)
        flags = ", ".join(f"i1 {str(lane >= lanes - rest).lower()}" for lane in range(lanes))
        is_new = Value(self._function, vector_of(I1, lanes), f"<{flags}>")
        return is_new.where(term, self._function.constant(-0.0 if is_float(term.kind) else 0, term.kind))

    def _both(self, op: Op, left: Value, right: Value, *, is_key: bool = True) -> Value:
        if op in self._keys and is_key:
            return left.maximum(right) if op.inner[0].ops[0].name == "maximum" else left.minimum(right)
        if is_key and _are_flags(op):
            return left & right if op.inner[0].ops[0].name == "and" else left | right
        (made,) = combine(self._emitter, op.inner[0], [left], [right])
        assert isinstance(made, Value)
        return made

    def _tree(self, op: Op, vectors: list[Value]) -> Value:
        """A vector with a number for each of as many vectors as it has lanes: that of all lanes."""
        function, lanes = self._function, lanes_of(vectors[0].kind)
        part = _PART * 8 // bits_of(vectors[0].kind)
        for low, high in _stages(lanes, part):
            vectors = [
                self._both(op, function.shuffle(one, other, low), function.shuffle(one, other, high))
                for one, other in zip(vectors[::2], vectors[1::2], strict=True)
            ]
        return vectors[0]


def _are_flags(op: Op) -> bool:
    return op.inner[0].ops[0].name in _LOGIC and register(op.results[0].element) == I1


def _kind(op: Op) -> str:
    """The type of a reduction's numbers meanwhile."""
    return I32 if _are_flags(op) else register(op.results[0].element)


def _stages(lanes: int, part: int) -> list[tuple[list[int], list[int]]]:
    """Lanes of two vectors that pairs of shuffles take: within parts of registers first, then whole parts."""
    # Of a part: lanes of the first vector, and of the second one by +part.
    inner: list[tuple[list[int], list[int]]]
    inner = {2: [([0, 2], [1, 3])], 4: [([0, 4, 1, 5], [2, 6, 3, 7]), ([0, 1, 4, 5], [2, 3, 6, 7])]}[part]
    # Of parts, likewise.
    outer: list[tuple[list[int], list[int]]]
    outer = {
        1: [],
        2: [([0, 2], [1, 3])],
        4: [([0, 1, 4, 5], [2, 3, 6, 7]), ([0, 2, 4, 6], [1, 3, 5, 7])],
    }[lanes // part]
    found = []
    for pair in inner:
        low, high = (
            [lane % part + begin + lanes * (lane // part) for begin in range(0, lanes, part) for lane in picked]
            for picked in pair
        )
        found.append((low, high))
    for pair in outer:
        low, high = ([one * part + lane for one in picked for lane in range(part)] for picked in pair)
        found.append((low, high))
    return found
