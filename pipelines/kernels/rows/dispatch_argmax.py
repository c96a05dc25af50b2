"""``dispatch-argmax``: argmax and argmin of rows, as loops in a dispatch of their own.

Before::

    %g, %at = stablehlo.reduce(%x init: -inf), (%iota init: 0) across dimensions = [1]
      reducer(%a, %b) (%i, %j) { %p = %a > %b or %a != %a or (%a == %b and %i < %j); return select(%p, ...) }

After::

    %at = dispatch { for each row: m = max(row); at = min over i of (row[i] == m ? i : n) }

IREE reduces pairs one after the other. Two passes over a row in the nearest cache are vector code: a maximum, and the
least (or greatest, as the computation prefers) of the positions that hold it. A row with a NaN is reduced by the
computation itself, from begin to end. ``extreme_pairs.py`` says what a computation prefers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import arith, in_context, ir
from hloforge.dialect.operations import integers, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import empty, full_vector, index, only_element, stands_in_dispatch
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.lang.elementwise import constant_number, has_code, number_type, on_numbers
from hloforge.pipelines.kernels.lang.vector_expressions import VECTOR_TYPES, Expression
from hloforge.pipelines.kernels.rows.extreme_pairs import Extreme, extreme_of

# Lines of a vector: four instructions of AVX2, the next of which does not wait for the last.
_VECTOR_LINES = 2
# Multiplications that take as long as reading an element.
_WORK = 8


@register
@dataclass(frozen=True)
class DispatchArgmax(MachinePass):
    """Make dispatches of reductions that find extremes along rows; they are in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "dispatch-argmax"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.reduce"}):
                rows = None if stands_in_dispatch(op) else _rows_of(op, self.machine)
                if rows is not None:
                    with ir.InsertionPoint(op), op.location:
                        replace(op, rows.dispatched())


def _rows_of(op: ir.Operation, machine: Machine) -> _Rows | None:
    """The rows of a reduction to a position in each; None for other reductions."""
    if len(op.results) != 2 or not Value(op.operands[0]).shape.is_static:
        return None
    whole, reduced = Value(op.operands[0]), integers(op, "dimensions")
    if whole.element_type.name not in VECTOR_TYPES or Value(op.results[1]).element_type.name not in ("s32", "s64"):
        return None
    is_worth = whole.shape.element_count >= machine.dispatch_elements
    if any(size != 1 for size in whole.dims[reduced[-1] + 1 :]) or not is_worth:
        return None
    size, extreme = whole.dims[reduced[-1]], extreme_of(op)
    length = _VECTOR_LINES * machine.line_bytes * 8 // whole.element_type.bits
    if extreme is None or not length <= size < 1 << 31:
        return None
    # A computation of numbers alone runs on the rows that have a NaN.
    if not all(has_code(inner.operation) for inner in list(op.regions[0].blocks[0].operations)[:-1]):
        return None
    expression = Expression.of(whole, (1, prod(whole.dims) // size, size))
    return None if expression is None else _Rows(op, extreme, expression, length, machine.computed_elements)


@dataclass(frozen=True)
class _Rows:
    """Rows in each of which an extreme is looked for.

    Attributes:
        op: the reduction.
        expression: how a row is computed.
        length: of a vector, no longer than a row.
        at_once: about how many elements a workgroup takes.
    """

    op: Any
    extreme: Extreme
    expression: Expression
    length: int
    at_once: int

    @property
    def size(self) -> int:
        return self.expression.dims[2]

    @property
    def positions(self) -> Any:
        """The integers that count in a vector: as wide as its numbers."""
        return ir.IntegerType.get_signless(Value(self.op.operands[0]).element_type.bits)

    def dispatched(self) -> list[Value]:
        """The reduction's results."""
        count = self.expression.dims[1]
        group = min(count, max(1, self.at_once // self.size))
        operands = self.expression.operands
        types = [ir.RankedTensorType.get([count], number_type(result)) for result in self.op.results]

        def run(places: Sequence[Any], memory: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
            # The last group begins earlier, so that it has as many rows.
            first = code.combine(arith.minsi, code.combine(arith.muli, places[0], group), count - group)
            arrays = [code.load(m, o.type, [0] * len(o.type.shape)) for m, o in zip(memory, operands, strict=True)]

            def find(at: Any, *found: Any) -> list[Any]:
                pair = self._found(arrays, code.combine(arith.addi, first, at))
                return [code.write(one, into, at) for one, into in zip(pair, found, strict=True)]

            parts = [empty(ir.RankedTensorType.get([group], type_.element_type)) for type_ in types]
            for part, target in zip(code.for_each(group, parts, find), targets, strict=True):
                code.store(part, target, [first])

        work = _WORK * count * self.size
        made = code.workgroups([-(-count // group)], operands, (), types, run, work=work)
        return [ops.reshape(Value(m), Value(r).dims) for m, r in zip(made, self.op.results, strict=True)]

    def _found(self, arrays: Sequence[Any], row: Any) -> list[Any]:
        """The extreme of a row and its position, as numbers of the results' types."""
        best, has_nan = self._best(arrays, row)
        at = self._place(arrays, row, best)
        value = self._number(arrays, row, at)
        place = code.cast(arith.index_cast, at, number_type(self.op.results[1]))
        if has_nan is None:
            return [value, place]
        stop = code.choose(has_nan, index(self.size), index(0))
        folded = self._folded(arrays, row, stop)
        return [code.choose(has_nan, *pair) for pair in zip(folded, (value, place), strict=True)]

    def _vector(self, arrays: Sequence[Any], row: Any, at: Any, length: int) -> Any:
        return self.expression.evaluate(arrays, [index(0), row, at], length)

    def _number(self, arrays: Sequence[Any], row: Any, at: Any) -> Any:
        return only_element(self._vector(arrays, row, at, 1))

    def _along(self, carried: Sequence[Any], body: Any) -> list[Any]:
        """``carried = body(at, *carried)`` for vectors that cover a row; the last one may cover some elements twice."""
        last = self.size - self.length
        return code.for_each(
            self.size,
            carried,
            lambda at, *values: body(code.combine(arith.minsi, at, last) if self.size % self.length else at, *values),
            step=self.length,
        )

    def _best(self, arrays: Sequence[Any], row: Any) -> tuple[Any, Any]:
        """The extreme of the numbers of a row that are no NaN, and whether there is one; None of integers."""
        is_float = Value(self.op.operands[0]).element_type.is_float
        flags = ir.VectorType.get([self.length], self.positions)
        start = _filled(self.op.operands[2], self.length)
        none = full_vector(code.number(0, self.positions), self.length)

        def join(at: Any, best: Any, *nan: Any) -> list[Any]:
            vector = self._vector(arrays, row, at, self.length)
            if not is_float:
                return [code.combine(arith.maxsi if self.extreme.is_greatest else arith.minsi, best, vector)]
            # One instruction on x86, which leaves the best where the other is NaN.
            is_better = code.compare_floats("OGT" if self.extreme.is_greatest else "OLT", vector, best)
            best = code.choose(is_better, vector, best)
            unordered = code.cast(arith.extsi, code.compare_floats("UNO", vector, vector), flags)
            return [best, code.combine(arith.ori, nan[0], unordered)]

        found = self._along([start, none] if is_float else [start], join)
        kind = ("MAX" if self.extreme.is_greatest else "MIN") + ("IMUMF" if is_float else "SI")
        best = code.reduced(kind, found[0])
        return best, code.compare("slt", code.least(found[1]), 0) if is_float else None

    def _place(self, arrays: Sequence[Any], row: Any, best: Any) -> Any:
        """The first or last position in a row that holds a number; 0 where none does."""
        wanted, counting = full_vector(best, self.length), self.positions
        steps = code.counted(self.length, counting)
        none = full_vector(code.number(self.size if self.extreme.is_first else -1, counting), self.length)
        better, kind = (arith.minsi, "MINSI") if self.extreme.is_first else (arith.maxsi, "MAXSI")

        def join(at: Any, found: Any) -> list[Any]:
            vector = self._vector(arrays, row, at, self.length)
            start = full_vector(code.cast(arith.index_cast, at, counting), self.length)
            places = code.choose(_equal(vector, wanted), code.combine(arith.addi, start, steps), none)
            return [code.combine(better, found, places)]

        place = code.reduced(kind, self._along([none], join)[0])
        # A row of NaN holds no number, and is not asked for one.
        bounded = code.combine(arith.maxsi, code.combine(arith.minsi, place, self.size - 1), 0)
        return code.cast(arith.index_cast, bounded, ir.IndexType.get())

    def _folded(self, arrays: Sequence[Any], row: Any, stop: Any) -> list[Any]:
        """The computation's own result from a row's first elements, one after the other."""
        block = self.op.regions[0].blocks[0]

        def turn(at: Any, *best: Any) -> list[Any]:
            place = code.cast(arith.index_cast, at, best[1].type)
            known = dict(zip(block.arguments, (*best, self._number(arrays, row, at), place), strict=True))
            *inner, end = (op.operation for op in block.operations)
            for op in inner:
                known[op.results[0]] = on_numbers(op, [known[operand] for operand in op.operands])
            return [known[operand] for operand in end.operands]

        return code.for_each(stop, [_filled(init) for init in self.op.operands[2:]], turn)


def _equal(one: Any, other: Any) -> Any:
    if isinstance(one.type.element_type, ir.IntegerType):
        return code.compare("eq", one, other)
    return code.compare_floats("OEQ", one, other)


def _filled(constant: Any, length: int = 0) -> Any:
    """The number of a constant; a vector of it if a length is given."""
    return constant_number(constant.owner, length)
