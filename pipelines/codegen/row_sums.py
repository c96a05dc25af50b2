"""Sums along rows whose terms cost much, by vectors of our own: exponentials of a softmax, squares of differences.

LLVM computes what is left of a vector number by number, and sums are cut where chains would be long, so that each part
of a row leaves something: a row of 1,000 exponentials was eight parts of three vectors and 29 numbers. Here the last
vector of a row ends where the row ends, and what it has again of the vector before is not added. It is computed first,
because what a row's terms are made of may be where they are stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.chains import LONGEST
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.elements.kinds import is_complex, register, single
from hloforge.pipelines.codegen.extreme_rows import ExtremeLoops
from hloforge.pipelines.codegen.graph import Array
from hloforge.pipelines.codegen.groups import Group
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.lang.functions import NO_VECTORS
from hloforge.pipelines.codegen.lang.values import I1, Value, element_of, lanes_of, vector_of
from hloforge.pipelines.codegen.row_blocks import is_float_sum
from hloforge.pipelines.codegen.vector_places import VectorAccesses, VectorEmitter

# Vectors of a row at least, and those that an iteration takes: sums that do not wait for each other.
_LEAST, _CHAINS = 3, 4
# What a term costs at least, in sums, beside that it is read; and what those of an iteration may.
_DEAR, _MOST_WORK = 4, 256
# Bytes of vectors of which a processor has 16 registers, and not 32.
_FEW_REGISTERS = 32


class RowSumLoops(ExtremeLoops):
    """Writes such sums of a nest, with the maps that are beside them."""

    def _are_row_sums(self, reduced: Sequence[Group]) -> bool:
        """Whether all reductions are sums of floats along one dimension, of terms that vectors compute."""
        nest = self._nest
        if len(reduced) != 1 or self._groups[-1] is not reduced[0] or not nest.reductions:
            return False
        row = reduced[0]
        results = [result.element for op in nest.reductions for result in op.results]
        if not all(map(is_float_sum, nest.reductions)) or len({*results}) > 1 or is_complex(results[0]):
            return False
        _, known = nest.analysis(self._in_memory)
        if row.size < _LEAST * self._sum_lanes or known.cost < _DEAR or known.conditions or known.is_irregular:
            return False
        return self._have_vectors(row)

    def _have_vectors(self, row: Group) -> bool:
        """Whether all maps and terms can be computed for several places of a row at once."""
        nest, before = self._nest, dict(self._counters)
        counters = {group: places.counter(group.size) for group in self._groups}
        for group, counter in counters.items():
            self._enter(group, counter)
        found = VectorAccesses(self._in_memory, along=counters[row].terms[0][0], functions=True)
        place = nest.at(self._place())
        for array in nest.maps:
            found.made(array, place)
            if array not in nest.unstored:
                found.check(nest.stored(array, place))
                found.fits = found.fits and not is_complex(array.element)
        for op in nest.reductions:
            found.element(op.operands[0], place)
        self._counters = before
        return found.fits

    @property
    def _sum_lanes(self) -> int:
        return self._writer.vector_bytes // elements.size(self._nest.reductions[0].results[0].element)

    def _by_row_sums(self, row: Group) -> None:
        function, nest, lanes = self._function, self._nest, self._sum_lanes
        rest = row.size % lanes
        kind = vector_of(register(nest.reductions[0].results[0].element), lanes)
        none = [function.constant(-0.0, kind) for _ in nest.reductions]
        sums, last = none, None
        if rest:
            last, terms = self._vector_of_row(row, function.index(row.size - lanes), lanes)
            flags = ", ".join(f"i1 {lane >= lanes - rest}".lower() for lane in range(lanes))
            is_new = Value(function, vector_of(I1, lanes), f"<{flags}>")
            sums = [is_new.where(term, zero) for term, zero in zip(terms, none, strict=True)]
        _, known = nest.analysis(self._in_memory)
        chains = _CHAINS if known.cost * _CHAINS <= _MOST_WORK else 1
        whole = row.size - rest
        step = chains * lanes
        aligned = whole - whole % step
        block = step * LONGEST
        totals = [value for value in none for _ in range(chains)]
        if aligned > block:
            outer = function.loop(0, aligned, block, carried=totals)
            with outer as (begin, carried):
                end = (begin + block).minimum(aligned)
                parts = self._chains(row, begin, end, lanes, [value for value in none for _ in range(chains)])
                outer.next([one + part for one, part in zip(carried, parts, strict=True)])
            totals = outer.results
        elif aligned:
            totals = self._chains(row, function.index(0), function.index(aligned), lanes, totals)
        for start in range(aligned, whole, lanes):
            made, terms = self._vector_of_row(row, function.index(start), lanes)
            self._store_row(made, row, function.index(start))
            sums = [one + term for one, term in zip(sums, terms, strict=True)]
        if last is not None:
            self._store_row(last, row, function.index(row.size - lanes))
        found = []
        for number, value in enumerate(sums):
            for chain in totals[number * chains : (number + 1) * chains]:
                value = value + chain
            found.append(_total(value))
        starts = [single(start) for op in nest.reductions for start in self._starts(op)]
        place = self._result_number()
        for op, value in zip(nest.reductions, self._joined(starts, found), strict=True):
            self._store(op.results[0], value, place)

    def _chains(self, row: Group, begin: Value, end: Value, lanes: int, carried: list[Value]) -> list[Value]:
        """Sums of a part of a row, some for each reduction."""
        function, count = self._function, len(carried) // len(self._nest.reductions)
        at_once = count if self._are_computed_at_once else 1
        wide = [function.joined(carried[n : n + at_once]) for n in range(0, len(carried), at_once)]
        loop = function.loop(begin, end, count * lanes, carried=wide, hints=NO_VECTORS)
        with loop as (start, values):
            found = list(values)
            for chain in range(count // at_once):
                at = start + chain * lanes * at_once
                made, terms = self._vector_of_row(row, at, lanes * at_once)
                self._store_row(made, row, at)
                for number, term in enumerate(terms):
                    place = number * count // at_once + chain
                    found[place] = found[place] + term
            loop.next(found)
        if at_once == 1:
            return loop.results
        parts = [range(lanes * n, lanes * (n + 1)) for n in range(at_once)]
        return [function.shuffle(value, None, part) for value in loop.results for part in parts]

    @property
    def _are_computed_at_once(self) -> bool:
        """Whether the vectors of an iteration are one wide vector, which LLVM takes apart operation by operation.

        Processors without AVX-512 look ahead over two or three exponentials, whose operations wait for each other. What
        is stored beside the terms would be in registers all the while, of which they have too few.
        """
        nest = self._nest
        terms = {op.operands[0] for op in nest.reductions}
        return self._writer.vector_bytes == _FEW_REGISTERS and {*nest.maps} - nest.unstored <= terms

    def _vector_of_row(self, row: Group, start: Value, lanes: int) -> tuple[list[tuple[Array, Value]], list[Value]]:
        """What maps and the terms of reductions are at as many places as a vector has lanes."""
        nest = self._nest
        symbol = Symbol(row.size - 1, value=start)
        emitter = VectorEmitter(self._function, self._memory, symbol, lanes)
        self._enter(row, Index(((symbol, 1),)))
        place = nest.at(self._place())
        made = [(array, emitter.spread(single(emitter.made(array, place)))) for array in nest.maps]
        terms = [emitter.spread(single(emitter.element(op.operands[0], place))) for op in nest.reductions]
        return [(array, value) for array, value in made if array not in nest.unstored], terms

    def _store_row(self, made: Sequence[tuple[Array, Value]], row: Group, start: Value) -> None:
        nest, symbol = self._nest, Symbol(row.size - 1, value=start)
        self._enter(row, Index(((symbol, 1),)))
        place = nest.at(self._place())
        for array, value in made:
            memory = self._memory(array)
            assert memory is not None
            memory.store(value, self._emitter.value(nest.stored(array, place)))


def _total(vector: Value) -> Value:
    """The sum of all lanes."""
    function, lanes, kind = vector.function, lanes_of(vector.kind), element_of(vector.kind)
    short = {"float": "f32", "double": "f64"}[kind]
    zero = function.constant(-0.0, kind)
    return function.emit(f"call reassoc {kind} @llvm.vector.reduce.fadd.v{lanes}{short}({zero!r}, {vector!r})", kind)
