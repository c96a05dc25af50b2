"""``dispatch-softmax``: softmax and similar functions of rows, as loops in a dispatch of their own.

Before::

    %m = stablehlo.reduce(%x init: -inf) applies stablehlo.maximum across dimensions = [1]
    %e = stablehlo.exponential(%x - broadcast %m)
    %s = stablehlo.reduce(%e init: 0) applies stablehlo.add across dimensions = [1]
    %y = stablehlo.divide %e, (broadcast %s)

After::

    %y = dispatch { for each row: m = max(x); y = exp(x - m), s = sum(y); y = y / s }

IREE computes the exponentials once for their sum and again for the result. Here a row stays in the nearest cache, and
the result's own memory keeps them. ``row_expressions.py`` says what is computed so: the logarithm of a softmax, scales
and biases before and after as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import AnyOp, arith, in_context, ir
from hloforge.dialect.operations import in_order, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import combiner
from hloforge.pipelines.framework.builders import (
    empty,
    full_vector,
    index,
    read_vector,
    stands_in_dispatch,
    write_vector,
)
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.lang.elementwise import arithmetic, constant_number, has_code, on_numbers
from hloforge.pipelines.kernels.lang.row_expressions import EXPONENTIAL, REDUCE, RowExpression, Spread
from hloforge.pipelines.kernels.lang.vector_expressions import is_stored

# Elements that are worth a dispatch of their own, by those that are moved one by one in its time.
_WORTH = 4
# Operations that are looked at for the end of an expression.
_MOST_FOLLOWERS = 32
# Floats of a vector.
_LENGTH = 16
# Multiplications that take as long as an element.
_WORK = 64
_SHAPING = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")
_IDENTITIES = {"stablehlo.add": -0.0, "stablehlo.maximum": -inf, "stablehlo.minimum": inf}
_KINDS = {"stablehlo.add": "ADD", "stablehlo.maximum": "MAXIMUMF", "stablehlo.minimum": "MINIMUMF"}


@register
@dataclass(frozen=True)
class DispatchSoftmax(MachinePass):
    """Make dispatches of normalized exponentials of rows; they are in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "dispatch-softmax"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        if not operations(module, {REDUCE}):
            # Nothing is normalized, and each exponential would be looked at with all that follows.
            return
        with in_context(module):
            found = operations(module, {EXPONENTIAL})
            places = {op: place for place, op in enumerate(found)}
            # The end of one expression, which is erased, may be the next exponential.
            erased = set()
            for place, op in enumerate(found):
                rows = None if place in erased or stands_in_dispatch(op) else _rows_of(op, self.machine)
                if rows is not None:
                    erased.add(places.get(rows.root))
                    with ir.InsertionPoint(rows.root), rows.root.location:
                        replace(rows.root, [rows.dispatched()])


def _rows_of(exponential: ir.Operation, machine: Machine) -> _Rows | None:
    """The rows that are computed from exponentials and from a reduction of these; None where there are none."""
    whole = Value(exponential.results[0])
    if not whole.shape.is_static or whole.rank < 2 or whole.element_type.name != "f32":
        return None
    if whole.shape.element_count < _WORTH * machine.dispatch_elements or whole.dims[-1] < _LENGTH:
        return None
    for root in reversed(_followers(exponential, whole.dims)):
        expression = RowExpression.of(root.results[0])
        if expression is not None and _is_whole(root, expression, exponential):
            return _Rows(root, expression, exponential, machine.computed_elements)
    return None


def _followers(exponential: Any, dims: tuple[int, ...]) -> list[Any]:
    """What is computed from an exponential row by row, in order; those of the array's own sizes."""
    found, waiting = {exponential}, [exponential]
    while waiting and len(found) <= _MOST_FOLLOWERS:
        users = {use.owner.operation for result in waiting.pop().results for use in result.uses}
        new = [user for user in users - found if user.block == exponential.block and _is_by_rows(user)]
        found |= set(new)
        waiting += new
    return in_order(op for op in found if Value(op.results[0]).dims == dims)


def _is_by_rows(op: AnyOp) -> bool:
    return op.name in _SHAPING or op.name == REDUCE or has_code(op)


def _is_whole(root: Any, expression: RowExpression, exponential: Any) -> bool:
    """Whether the exponentials are reduced, nobody else reads what is made of them, and arrays lie in memory."""
    computed = expression.computed
    later = computed[computed.index(exponential) :] if exponential in computed else []
    if not any(op.name == REDUCE and op.operands[0].owner in later for op in later if op is not root):
        return False
    reduced = [op for op in computed if op.name == REDUCE]
    inner = [op for op in {*later, *reduced} if op != root]
    is_closed = all(use.owner.operation in computed for op in inner for result in op.results for use in result.uses)
    return is_closed and all(map(is_stored, expression.arrays))


@dataclass(frozen=True)
class _Rows:
    """Rows of an array that depend on exponentials and their reductions.

    Attributes:
        root: the operation that makes the array.
        exponential: its numbers stay in the memory of the result, if that is computed from them.
        at_once: about how many elements a workgroup takes.
    """

    root: Any
    expression: RowExpression
    exponential: Any
    at_once: int

    def dispatched(self) -> Value:
        """The array."""
        expression = self.expression
        rows, size = expression.rows, expression.size
        group = min(rows, max(1, self.at_once // size))
        operands = expression.operands
        element = self.root.results[0].type.element_type

        def run(places: Sequence[Any], memory: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
            # The last group begins earlier, so that it has as many rows.
            first = code.combine(arith.minsi, code.combine(arith.muli, places[0], group), rows - group)
            arrays = [code.load(m, o.type, [0, 0]) for m, o in zip(memory, operands, strict=True)]
            target = empty(ir.RankedTensorType.get([group, size], element))

            def compute(at: Any, into: Any) -> list[Any]:
                return [_Row(self, arrays, code.combine(arith.addi, first, at), at).computed(into)]

            code.store(code.for_each(group, [target], compute)[0], targets[0], [first, 0])

        whole = ir.RankedTensorType.get([rows, size], element)
        made = code.workgroups([-(-rows // group)], operands, (), [whole], run, work=_WORK * rows * size)
        return ops.reshape(Value(made[0]), expression.dims)


class _Row:
    """The code of one row.

    Attributes:
        row: its number in the arrays.
        at: its number in the result's part.
        numbers: the row's number of each value that has one.
        is_kept: whether the exponentials lie in the result.
    """

    def __init__(self, rows: _Rows, arrays: Sequence[Any], row: Any, at: Any) -> None:
        self.rows, self.row, self.at = rows, row, at
        expression = rows.expression
        values = [*expression.arrays, *expression.vectors, *expression.numbers, *expression.scalars]
        self.contents = dict(zip(values, arrays, strict=True))
        zero = index(0)
        self.numbers = {value: code.read(self.contents[value], row, zero) for value in expression.numbers}
        self.is_kept = False

    def computed(self, into: Any) -> Any:
        """The part of the result with the row written into it."""
        expression = self.rows.expression
        for op in expression.computed:
            if op.name == REDUCE:
                self.numbers[op.results[0]], into = self._reduced(op, into)
            elif not expression.is_wide(op.results[0]):
                self.numbers[op.results[0]] = self._number(op)
        root = self.rows.root.results[0]

        def write(column: Any, length: int, into: Any) -> list[Any]:
            vector = self._vectors(column, length, into)[root]
            return [write_vector(vector, into, [self.at, column])]

        return code.in_steps(expression.size, _LENGTH, [into], write)[0]

    def _number(self, op: AnyOp) -> Any:
        """The row's number of a value."""
        match self.rows.expression.spread(op):
            case Spread.NUMBERS:
                return self.numbers[op.operands[0]]
            case Spread.SCALAR:
                return self.scalar(op.operands[0])
        if op.name == "stablehlo.constant":
            return constant_number(op)
        return on_numbers(op, [self.numbers[operand] for operand in op.operands])

    def scalar(self, value: Any) -> Any:
        """The number that all rows share."""
        return code.read(self.contents[value], index(0), index(0))

    def _reduced(self, op: AnyOp, into: Any) -> tuple[Any, Any]:
        """The reduction of a row, and the result's part, in which exponentials may lie from now on."""
        size, name = self.rows.expression.size, combiner(op)
        keeps = self._is_to_keep(op)

        def take(column: Any, length: int, into: Any) -> tuple[Any, Any]:
            vectors = self._vectors(column, length, into)
            if keeps:
                into = write_vector(vectors[self.rows.exponential.results[0]], into, [self.at, column])
            return vectors[op.operands[0]], into

        def turn(column: Any, total: Any, into: Any) -> list[Any]:
            vector, into = take(column, _LENGTH, into)
            return [_join(name, total, vector), into]

        start = full_vector(code.float_number(_IDENTITIES[name], op.results[0].type.element_type), _LENGTH)
        whole = size // _LENGTH * _LENGTH
        total, into = code.for_each(whole, [start, into], turn, step=_LENGTH)
        number = _join(name, constant_number(op.operands[1].owner), _total(name, total))
        if size > whole:
            vector, into = take(index(whole), size - whole, into)
            number = _join(name, number, _total(name, vector))
        self.is_kept = self.is_kept or keeps
        return number, into

    def _is_to_keep(self, reduction: Any) -> bool:
        """Whether a pass computes exponentials that the result is computed from as well."""
        made = self.rows.exponential.results[0]
        if self.is_kept or made not in self._elements(reduction.operands[0]):
            return False
        return made in self._elements(self.rows.root.results[0])

    def _elements(self, value: Any) -> list[Any]:
        """The values whose elements an element of a value is computed from, each after what it needs."""
        expression, found = self.rows.expression, [value]
        for op in reversed(expression.computed):
            if op.results[0] in found and op.name != REDUCE:
                found += [v for v in op.operands if expression.is_wide(v) and v not in found]
        needed = {op.results[0]: op for op in expression.computed if op.results[0] in found}
        return [*(v for v in found if v not in needed), *needed]

    def _vectors(self, column: Any, length: int, into: Any) -> _Vectors:
        return _Vectors(self, column, length, into)


class _Vectors(dict[Any, Any]):
    """Vectors of values at a column, each computed when it is asked for."""

    def __init__(self, row: _Row, column: Any, length: int, into: Any) -> None:
        super().__init__()
        self.row, self.column, self.length, self.into = row, column, length, into

    def __missing__(self, value: Any) -> Any:
        self[value] = made = self._made(value)
        return made

    def _made(self, value: Any) -> Any:
        row, expression = self.row, self.row.rows.expression
        if row.is_kept and value == row.rows.exponential.results[0]:
            return read_vector(self.into, [row.at, self.column], self.length)
        if value in expression.arrays:
            return read_vector(row.contents[value], [row.row, self.column], self.length)
        op = value.owner
        if op.name == "stablehlo.constant":
            return constant_number(op, self.length)
        match expression.spread(op):
            case Spread.NUMBERS:
                return full_vector(row.numbers[op.operands[0]], self.length)
            case Spread.SCALAR:
                return full_vector(row.scalar(op.operands[0]), self.length)
            case Spread.VECTOR:
                return read_vector(row.contents[op.operands[0]], [index(0), self.column], self.length)
        return on_numbers(op, [self[operand] for operand in op.operands])


def _join(name: str, one: Any, other: Any) -> Any:
    build = arithmetic(name, element_type("f32"))
    assert build is not None
    return build(one, other)


def _total(name: str, vector: Any) -> Any:
    """The reduction of a vector of floats."""
    return code.reduced(_KINDS[name], vector)
