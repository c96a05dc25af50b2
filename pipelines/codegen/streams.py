"""Large arrays are written past the caches, line by line, by vectors of our own (non-temporal stores).

A store reads its line from memory first, because the processor does not know that all of it will be written. Where no
cache holds the array until somebody reads it, that is a third of what a chain of two operands moves. Lines have to be
whole: what lies before the first and after the last whole line of a row is written as ever. LLVM makes no such vectors
of its own, since nothing tells it where lines begin.

Source: glibc's ``memmove`` does so from three quarters of the shared cache on (``x86_non_temporal_threshold``).
"""

from __future__ import annotations

import math
from dataclasses import replace

from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.elements.kinds import storage
from hloforge.pipelines.codegen.graph import Array
from hloforge.pipelines.codegen.groups import Group
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.lang.functions import NO_VECTORS, STREAMED
from hloforge.pipelines.codegen.lang.values import I64, Value
from hloforge.pipelines.codegen.nest_loops import segment_index, sum_of
from hloforge.pipelines.codegen.segments import Segment
from hloforge.pipelines.codegen.sums_apart import ApartLoops
from hloforge.pipelines.codegen.vector_places import VectorEmitter

# Bytes of a line of the caches.
LINE = 64
# The part of the cache that an array exceeds: smaller ones may still be there when they are read.
_PART = 4
# Bytes of a row whose ends cost little.
_LEAST_ROW = 1024
# Vectors that an iteration computes, so that it hides how long one takes, and what all of them may cost, in sums.
_VECTORS, _MOST_WORK = 4, 256


class StreamedLoops(ApartLoops):
    """Writes the maps of a nest past the caches."""

    def _exceeds_caches(self, part: int = 1) -> bool:
        """Whether all that a nest goes over is more than this part of the caches, at least half of it to be read.

        A core writes past the caches at some 28 GB/s, and into them faster, if nothing else takes the memory's time.
        """
        nest = self._nest
        if not self._writer.cached or nest.origin is not None:
            return False
        _, found = nest.analysis(self._in_memory)
        read = self._bytes({array for array, _ in found.loads})
        written = self._bytes({array for array in nest.maps if array not in nest.unstored})
        return read >= written and (read + written) * part > self._writer.cached

    def _bytes(self, arrays: set[Array]) -> int:
        """Of arrays, as far as a nest goes over them."""
        places = math.prod(self._nest.shape)
        return sum(min(array.elements, places) * elements.size(array.element) for array in arrays)

    def _is_streamed(self, array: Array) -> bool:
        """Whether a map is large, and nothing that these loops read lies where it is stored: that is in a cache."""
        nest = self._nest
        if array in nest.unstored or array.elements * elements.size(array.element) * _PART < self._writer.cached:
            return False
        _, found = nest.analysis(self._in_memory)
        return all(self._memory(read) is not self._memory(array) for read, _ in found.loads)

    def _streamed(self) -> list[Array]:
        """The maps that are written past the caches; none where vectors cannot be computed."""
        nest = self._nest
        if not self._groups or not self._exceeds_caches():
            return []
        row = self._groups[-1]
        _, known = nest.analysis(self._in_memory)
        if known.conditions or known.is_irregular:
            return []
        streamed = [array for array in nest.maps if self._is_streamed(array)]
        widest = max((elements.size(array.element) for array in streamed), default=0)
        if not streamed or row.size * widest < _LEAST_ROW or len(self._segments(row)) > 1:
            return []
        return streamed if self._have_vectors(row) else []

    def _by_streams(self, streamed: list[Array]) -> None:
        """A row of maps, some of which are written past the caches."""
        function, row = self._function, self._groups[-1]
        first, last = (function.index(bound) for bound in self._bounds(row.size))
        lanes, count = self._vectors_of_line(streamed)
        step = lanes * count
        begin = self._first_line(streamed, row, first, last)
        end = begin + (last - begin) - (last - begin).urem(step)
        for start, stop in ((first, begin), (end, last)):
            if start is stop:
                continue
            with function.loop(start, stop) as counter, self._emitter.scope():
                self._enter(row, segment_index(counter, Segment(0, row.size, False)))
                self._store_maps()
        with function.loop(begin, end, step, hints=NO_VECTORS) as start:
            for number in range(count):
                self._store_vectors(streamed, row, start + number * lanes, lanes)

    def _vectors_of_line(self, streamed: list[Array]) -> tuple[int, int]:
        """Lanes of vectors, and how many of them an iteration computes: whole lines of each array that is streamed.

        The narrowest elements fill a register, because halves of a line take as long; LLVM takes others in several.
        """
        _, found = self._nest.analysis(self._in_memory)
        sizes = [elements.size(array.element) for array in streamed]
        lanes = self._writer.vector_bytes // min(sizes)
        least = LINE // self._writer.vector_bytes if self._writer.vector_bytes < LINE else 1
        wide = max(elements.size(array.element) for array in (*self._nest.maps, *(array for array, _ in found.loads)))
        registers = max(wide // min(sizes), 1)
        count = _VECTORS // registers if found.cost * _VECTORS <= _MOST_WORK else 1
        return lanes, max(count, least)

    def _first_line(self, streamed: list[Array], row: Group, first: Value, last: Value) -> Value:
        """The first place of a row where lines of all arrays begin; the one after the last where there is none."""
        function = self._function
        addresses = []
        with self._emitter.scope():
            self._enter(row, sum_of(first, row.size, function.index(0)))
            place = self._nest.at(self._place())
            for array in streamed:
                memory = self._memory(array)
                assert memory is not None
                number = self._emitter.value(self._nest.stored(array, place))
                address = function.offset(memory.pointer, storage(array.element), number)
                addresses.append(function.cast("ptrtoint", address, I64))
        size = elements.size(streamed[0].element)
        head = ((function.index(0) - addresses[0]) & (LINE - 1)).udiv(size)
        rest = function.index(0)
        for address, array in zip(addresses, streamed, strict=True):
            rest = rest | (address + head * elements.size(array.element))
        return (rest & (LINE - 1)).equals(0).where((first + head).minimum(last), last)

    def _store_vectors(self, streamed: list[Array], row: Group, start: Value, lanes: int) -> None:
        """All maps at as many places of a row as a vector has lanes."""
        nest = self._nest
        symbol = Symbol(row.size - 1, value=start)
        emitter = VectorEmitter(self._function, self._memory, symbol, lanes)
        self._enter(row, Index(((symbol, 1),)))
        place = nest.at(self._place())
        made = [(array, emitter.made(array, place)) for array in nest.maps]
        for array, value in made:
            if array in nest.unstored:
                continue
            memory = self._memory(array)
            assert memory is not None
            assert isinstance(value, Value)
            number, align = emitter.value(nest.stored(array, place)), 0
            if array in streamed:
                memory = replace(memory, access=memory.access + STREAMED)
                align = min(lanes * elements.size(array.element), LINE)
            memory.store(emitter.spread(value), number, align)
