"""Extremes of floats that follow each other in memory, by vectors of our own.

A maximum that is NaN where a number is, and of zeros the positive one, takes LLVM six instructions a vector, each of
which waits for the one before. Here what these two rules ask for is kept beside the extreme: the extreme of what is no
NaN, whether there was a NaN, and the signs of all numbers. If a maximum is a zero, no number was above it, so that it
is +0 if and only if a number has no sign. All of it takes two instructions and a half, which wait for one. What other
loops read is reduced as integers (``extremes.py``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen import index as places
from hloforge.pipelines.codegen.elements.kinds import register, single
from hloforge.pipelines.codegen.graph import Op
from hloforge.pipelines.codegen.groups import Group
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.lang.functions import NO_VECTORS, Function
from hloforge.pipelines.codegen.lang.values import (
    FLOAT,
    HALF,
    I1,
    Value,
    bits_of,
    element_of,
    integer_of,
    lanes_of,
    vector_of,
)
from hloforge.pipelines.codegen.nest_loops import NestLoops
from hloforge.pipelines.codegen.row_blocks import is_extreme
from hloforge.pipelines.codegen.vector_places import VectorAccesses, VectorEmitter

_FLOATS = frozenset({"f32", "f64", "bf16", "f16"})
# Extremes that do not wait for each other, and vectors that an iteration takes, an even number.
_CHAINS, _VECTORS = 4, 8
# What all terms of an iteration may cost, in sums.
_MOST_WRITTEN = 64
# Bytes of vectors from which on processors have masks: flags of shorter ones are vectors themselves.
_MASKED = 64


@dataclass
class _Extreme:
    """An extreme so far.

    Attributes:
        values: of what is no NaN, of so many vectors each.
        signs: a vector of bits: of a maximum those that all numbers have, of a minimum those of any.
        nan: flags of lanes, or integers whose bits are all set, where there was a NaN.
    """

    function: Function
    greatest: bool
    values: list[Value]
    signs: Value
    nan: Value

    def parts(self) -> list[Value]:
        return [*self.values, self.signs, self.nan]

    def of(self, parts: Sequence[Value]) -> _Extreme:
        *values, signs, nan = parts
        return _Extreme(self.function, self.greatest, values, signs, nan)

    def _better(self, one: Value, other: Value) -> Value:
        """Of two numbers the extreme: the second one if the first is NaN, as processors do."""
        return (one > other if self.greatest else one < other).where(one, other)

    def add(self, terms: Sequence[Value]) -> None:
        for number, term in enumerate(terms):
            place = number % len(self.values)
            self.values[place] = self._better(term, self.values[place])
            self.signs = self.signs & term.bits() if self.greatest else self.signs | term.bits()
        # One comparison tells it of two vectors.
        for one, other in zip(terms[:-1:2], terms[1::2], strict=True):
            self._add_flags(one.compare("uno", other))
        if len(terms) % 2:
            self._add_flags(terms[-1].is_nan())

    def _add_flags(self, flags: Value) -> None:
        is_mask = self.nan.kind == flags.kind
        self.nan = self.nan | (flags if is_mask else self.function.cast("sext", flags, element_of(self.nan.kind)))

    def result(self) -> Value:
        """Of all lanes."""
        function, values = self.function, list(self.values)
        while len(values) > 1:
            values = [self._better(*values[place : place + 2]) for place in range(0, len(values), 2)]
        name = "fmax" if self.greatest else "fmin"
        extreme = _reduced(function, name, values[0], "nnan nsz ")
        nan = self.nan if self.nan.kind.endswith(f"{I1}>") else self.nan.compare("ne", 0)
        signs = _reduced(function, "and" if self.greatest else "or", self.signs.compare("slt", 0))
        zero = signs.where(function.constant(-0.0, extreme.kind), function.constant(0.0, extreme.kind))
        found = extreme.equals(0).where(zero, extreme)
        return _reduced(function, "or", nan).where(function.constant(math.nan, extreme.kind), found)


class ExtremeLoops(NestLoops):
    """Writes reductions of a nest that are extremes of rows."""

    @property
    def _row_lanes(self) -> int:
        kinds = {_wide(op) for op in self._nest.reductions}
        return self._writer.vector_bytes * 8 // bits_of(*kinds) if len(kinds) == 1 else 0

    def _are_extremes(self, reduced: Sequence[Group]) -> bool:
        """Whether reductions are extremes of floats that vectors read."""
        nest = self._nest
        if not reduced or self._groups[-1] is not reduced[-1] or nest.maps or not nest.reductions:
            return False
        if not all(is_extreme(op) and op.results[0].element in _FLOATS for op in nest.reductions):
            return False
        lanes = self._row_lanes
        _, known = nest.analysis(self._in_memory)
        # What a condition excludes everywhere may have no memory.
        if not lanes or reduced[-1].size < lanes or known.conditions or known.is_irregular:
            return False
        before = dict(self._counters)
        counters = {group: places.counter(group.size) for group in self._groups}
        for group, counter in counters.items():
            self._enter(group, counter)
        found = VectorAccesses(self._in_memory, along=counters[reduced[-1]].terms[0][0])
        place = nest.at(self._place())
        for op in nest.reductions:
            found.element(op.operands[0], place)
        self._counters = before
        return found.fits and found.cost * 2 <= _MOST_WRITTEN

    def _by_vectors(self, reduced: Sequence[Group]) -> None:
        """Extremes of a row, or of several dimensions of which the last is one."""
        *outer, row = reduced
        lanes, reductions = self._row_lanes, self._nest.reductions
        extremes = [self._begin(op, lanes) for op in reductions]
        carried = self._over_rows(outer, row, extremes, [part for one in extremes for part in one.parts()])
        found = [
            one.result().as_(register(op.results[0].element))
            for one, op in zip(_unpacked(extremes, carried), reductions, strict=True)
        ]
        starts = [single(start) for op in reductions for start in self._starts(op)]
        number = self._result_number()
        for op, value in zip(reductions, self._joined(starts, found), strict=True):
            self._store(op.results[0], value, number)

    def _begin(self, op: Op, lanes: int) -> _Extreme:
        function = self._function
        kind = vector_of(_wide(op), lanes)
        word = integer_of(kind)
        greatest = op.inner[0].ops[0].name == "maximum"
        least = function.constant(-math.inf if greatest else math.inf, kind)
        flags = vector_of(I1, lanes) if self._writer.vector_bytes >= _MASKED else word
        signs = function.constant(-1 if greatest else 0, word)
        return _Extreme(function, greatest, [least] * _CHAINS, signs, function.constant(0, flags))

    def _over_rows(
        self, outer: Sequence[Group], row: Group, extremes: Sequence[_Extreme], carried: list[Value]
    ) -> list[Value]:
        if not outer:
            return self._over_row(row, extremes, carried)
        group, *rest = outer
        loop = self._function.loop(0, group.size, carried=carried)
        with loop as (counter, values), self._emitter.scope():
            self._enter(group, counter)
            loop.next(self._over_rows(rest, row, extremes, values))
        return loop.results

    def _over_row(self, row: Group, extremes: Sequence[_Extreme], carried: list[Value]) -> list[Value]:
        function, lanes = self._function, self._row_lanes
        count = -(-row.size // lanes)
        # The last vector begins early enough to end in the row: what it has again changes no extreme.
        last = row.size - lanes
        whole = 0
        if count > 2 * _VECTORS:
            whole = (count - 1) // _VECTORS * _VECTORS
            loop = function.loop(0, whole * lanes, _VECTORS * lanes, carried=carried, hints=NO_VECTORS)
            with loop as (start, values):
                starts = [start + number * lanes for number in range(_VECTORS)]
                loop.next(self._with_vectors(row, extremes, starts, values))
            carried = loop.results
        rest = [function.index(min(number * lanes, last)) for number in range(whole, count)]
        return self._with_vectors(row, extremes, rest, carried)

    def _with_vectors(
        self, row: Group, extremes: Sequence[_Extreme], starts: Sequence[Value], carried: Sequence[Value]
    ) -> list[Value]:
        """Extremes with so many vectors, which begin at these places of a row."""
        now = _unpacked(extremes, carried)
        terms: list[list[Value]] = [[] for _ in now]
        for start in starts:
            symbol = Symbol(row.size - 1, value=start)
            emitter = VectorEmitter(self._function, self._memory, symbol, self._row_lanes)
            self._enter(row, Index(((symbol, 1),)))
            place = self._nest.at(self._place())
            for own, op in zip(terms, self._nest.reductions, strict=True):
                own.append(emitter.spread(single(emitter.element(op.operands[0], place))).as_(_wide(op)))
        for one, own in zip(now, terms, strict=True):
            one.add(own)
        return [part for one in now for part in one.parts()]


def _wide(op: Op) -> str:
    """The type in which an extreme is found: of f16 f32, which has all its numbers and which all processors compute."""
    kind = register(op.results[0].element)
    return FLOAT if kind == HALF else kind


def _unpacked(extremes: Sequence[_Extreme], carried: Sequence[Value]) -> list[_Extreme]:
    size = len(carried) // len(extremes)
    return [one.of(carried[number * size : (number + 1) * size]) for number, one in enumerate(extremes)]


def _reduced(function: Function, name: str, vector: Value, flags: str = "") -> Value:
    """One number of all lanes."""
    lanes, kind = lanes_of(vector.kind), element_of(vector.kind)
    short = {"float": "f32", "double": "f64"}.get(kind, kind)
    return function.emit(f"call {flags}{kind} @llvm.vector.reduce.{name}.v{lanes}{short}({vector!r})", kind)
