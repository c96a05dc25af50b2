"""Sums over rows and columns whose rows do not follow each other in what is read: one sum for each column first.

Rows of thirty numbers that are loops of their own cost their ends and the latency of their sums. A line of sums, one
for each column, is vectors of which none waits for another; it is added up in the end, once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hloforge.dialect.element_types import Kind, element_type
from hloforge.pipelines.codegen.elements import memory as elements
from hloforge.pipelines.codegen.elements.memory import Element
from hloforge.pipelines.codegen.emit import parts
from hloforge.pipelines.codegen.graph import Op
from hloforge.pipelines.codegen.groups import Group
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.nest_loops import element_of
from hloforge.pipelines.codegen.row_blocks import is_float_sum, is_orderless
from hloforge.pipelines.codegen.sums import DEAR, SumLoops

# Columns of a line, fewest if their terms cost much, and rows from which on it pays.
_FEWEST, _FEWEST_DEAR, _MOST, _ROWS = 9, 5, 512, 8


class ApartLoops(SumLoops):
    """Writes such sums."""

    def _are_apart(self, reduced: Sequence[Group]) -> bool:
        """Whether sums over some dimensions are first those of each place of the last one."""
        nest = self._nest
        _, found = nest.analysis(self._in_memory)
        if len(reduced) < 2 or self._groups[-1] is not reduced[-1] or found.conditions or found.is_irregular:
            return False
        rows, columns = math.prod(group.size for group in reduced[:-1]), reduced[-1].size
        fewest = _FEWEST_DEAR if found.cost >= DEAR else _FEWEST
        is_worth_it = rows >= _ROWS and fewest <= columns <= _MOST
        return is_worth_it and all(neutral(op) is not None for op in nest.reductions)

    def _by_sums_apart(self, reduced: Sequence[Group]) -> None:
        function, emitter, reductions, (*rows, columns) = self._function, self._emitter, self._nest.reductions, reduced
        results = [result for op in reductions for result in op.results]
        size = columns.size
        lines = [self._line(result, size) for result in results]
        with function.loop(0, size) as column, emitter.scope():
            for line, op in zip(lines, reductions, strict=True):
                line.store(constant_of_neutral(function, op), column)
        self._add_lines(self._pieces_of(rows), {}, lines, function.index(0), size, columns, size)
        starts = [part for op in reductions for element in self._starts(op) for part in parts(element)]
        loop = function.loop(0, size, carried=starts)
        with loop as (column, values), emitter.scope():
            loop.next(self._joined(values, [line.load(column) for line in lines]))
        totals, number = iter(loop.results), self._result_number()
        for result in results:
            self._store(result, element_of(result.element, totals), number)


def neutral(op: Op) -> int | float | None:
    """What a reduction of one array may begin with and not change; None where nobody knows, or the order matters."""
    if is_float_sum(op):
        return -0.0
    kind = element_type(op.results[0].element)
    if not is_orderless(op) or len(op.results) != 1:
        return None
    known = {"or": 0, "and": -1}
    if kind.is_integer:
        is_signed = kind.kind is Kind.SIGNED
        most = (1 << kind.bits - is_signed) - 1
        known |= {"add": 0, "xor": 0, "multiply": 1, "maximum": -most - 1 if is_signed else 0, "minimum": most}
    elif kind.kind is not Kind.PRED:
        return None
    return known.get(op.inner[0].ops[0].name)


def constant_of_neutral(function: Function, op: Op) -> Element:
    """The number that a reduction begins with, as an element."""
    number, element = neutral(op), op.results[0].element
    assert number is not None
    is_complex = element.startswith("complex")
    return elements.constant(function, element, complex(number, number) if is_complex else number)
