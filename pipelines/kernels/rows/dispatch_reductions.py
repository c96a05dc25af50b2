"""``dispatch-reductions``: sums, products and extremes over outer dimensions as dispatches of their own loops.

Before::

    %y = stablehlo.multiply %x, %x
    %s = stablehlo.reduce(%y init: %start) applies stablehlo.add across dimensions = [0] : [m, n] to [n]

After::

    %p = dispatch { for rows of a chunk, 8 at a time: for columns: p[chunk, columns] += sum (x[rows, columns]^2) }
    %s = stablehlo.reduce(%p init: %start) applies stablehlo.add across dimensions = [1] : [1, chunks, n] to [1, n]

IREE 3.13 gives each workgroup a few columns, whose rows lie far apart, and adds them one at a time: sums of columns
take four times as long as here, where rows are read from begin to end. All elements of an array are summed so too, as
rows of 64 to 256. What IREE would compute on the way to the reduction is computed here (``vector_expressions``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd, inf, prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import AnyOp, arith, in_context, ir
from hloforge.dialect.operations import integers, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import combiner
from hloforge.pipelines.framework.builders import (
    constant,
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
from hloforge.pipelines.kernels.lang.elementwise import arithmetic
from hloforge.pipelines.kernels.lang.vector_expressions import VECTOR_TYPES, Expression

# Elements that are worth a dispatch of their own, by those that are moved one by one in its time.
_WORTH = 8
# Rows that are combined in registers before they meet what is in memory: a power of two.
_ROWS = 8
# Columns of a workgroup: what it writes stays in the nearest cache, and its rows are long enough to be read ahead.
_MOST_COLUMNS, _LEAST_COLUMNS = 2048, 64
# Vectors of a row that all elements of an array are laid out in.
_VECTORS_OF_ALL = 16
# Multiplications that take as long as reading an element.
_WORK = 6
# The computations, and what leaves any number as it is.
_COMBINERS: dict[str, tuple[Callable[..., Value], Callable[[int], float], Callable[[int], int]]] = {
    "stablehlo.add": (ops.add, lambda _: -0.0, lambda _: 0),
    "stablehlo.multiply": (ops.mul, lambda _: 1.0, lambda _: 1),
    "stablehlo.maximum": (ops.max, lambda _: -inf, lambda bits: -(1 << (bits - 1))),
    "stablehlo.minimum": (ops.min, lambda _: inf, lambda bits: (1 << (bits - 1)) - 1),
}


@register
@dataclass(frozen=True)
class DispatchReductions(MachinePass):
    """Make dispatches of large reductions over outer dimensions; they are in IREE's dialects, which no pass reads."""

    name: ClassVar[str] = "dispatch-reductions"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SHARED_DISPATCHES})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.reduce"}):
                tiles = None if stands_in_dispatch(op) else _tiles_of(op, self.machine)
                expression = tiles and Expression.of(Value(op.operands[0]), tiles.dims)
                if tiles and expression:
                    with ir.InsertionPoint(op), op.location:
                        replace(op, [_dispatched(op, tiles, expression)])


@dataclass(frozen=True)
class _Tiles:
    """How a reduction of ``[outer, middle, inner]`` to ``[outer, inner]`` is shared out.

    Attributes:
        fold: rows of the array that make one of ``middle``.
        rows: of a workgroup; the last of them may have fewer.
        columns: of a workgroup; they divide ``inner``.
        length: of a vector; divides the columns.
    """

    outer: int
    middle: int
    inner: int
    fold: int
    rows: int
    columns: int
    length: int

    @property
    def dims(self) -> tuple[int, int, int]:
        return self.outer, self.middle, self.inner

    @property
    def chunks(self) -> int:
        """Workgroups that share the rows."""
        return -(-self.middle // self.rows)


def _tiles_of(op: ir.Operation, machine: Machine) -> _Tiles | None:
    """The tiles of a reduction that gains by them; None for others."""
    whole = Value(op.operands[0])
    if len(op.results) != 1 or combiner(op) not in _COMBINERS or not whole.shape.is_static:
        return None
    row, is_worth = whole.element_type, whole.shape.element_count >= _WORTH * machine.dispatch_elements
    if row.name not in VECTOR_TYPES or row != Value(op.results[0]).element_type or not is_worth:
        return None
    reduced = sorted(integers(op, "dimensions"))
    first, end = reduced[0], reduced[-1] + 1
    if len(reduced) != end - first:
        return None
    outer, middle, inner = (prod(part) for part in (whole.dims[:first], whole.dims[first:end], whole.dims[end:]))
    lanes = machine.line_bytes * 8 // row.bits
    if inner == 1 and outer > 1:
        return None
    # Rows beside each other fill vectors.
    wanted = lanes * _VECTORS_OF_ALL if inner == 1 else lanes // gcd(inner, lanes)
    fold = gcd(wanted, middle)
    middle, inner = middle // fold, inner * fold
    columns = max(
        (d for d in range(lanes // 2, min(inner, _MOST_COLUMNS) + 1, lanes // 2) if inner % d == 0), default=0
    )
    if middle < 2 * _ROWS or columns < min(inner, _LEAST_COLUMNS):
        return None
    least = min(-(-middle * columns // machine.group_elements), middle // _ROWS)
    others = outer * (inner // columns)
    # The workers share them evenly.
    chunks = min(
        range(least, min(least + 16, middle // _ROWS) + 1),
        key=lambda count: code.imbalance(count * others, machine.workers),
    )
    return _Tiles(outer, middle, inner, fold, -(-middle // chunks), columns, gcd(columns, lanes))


def _dispatched(op: AnyOp, tiles: _Tiles, expression: Expression) -> Value:
    """Reduce each chunk of rows, and then the chunks."""
    element = op.operands[0].type.element_type
    parts = ir.RankedTensorType.get([tiles.outer, tiles.chunks, tiles.inner], element)
    operands = expression.operands

    def run(places: Sequence[Any], sources: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
        column = code.combine(arith.muli, places[0], tiles.columns)
        arrays = [code.load(m, o.type, [0] * len(o.type.shape)) for m, o in zip(sources, operands, strict=True)]
        chunk = _Chunk(tiles, expression, arrays, combiner(op), element, (places[2], column))
        code.store(chunk.reduced(places[1]), targets[0], [places[2], places[1], column])

    counts = [tiles.inner // tiles.columns, tiles.chunks, tiles.outer]
    work = _WORK * prod(tiles.dims)
    found = Value(code.workgroups(counts, operands, (), [parts], run, work=work)[0])
    rows = ops.reshape(found, [tiles.outer, tiles.chunks * tiles.fold, tiles.inner // tiles.fold])
    result = ops.reduce(rows, Value(op.operands[1]), _COMBINERS[combiner(op)][0], [1])
    return ops.reshape(result, Value(op.results[0]).dims)


@dataclass(frozen=True)
class _Chunk:
    """The work of one workgroup.

    Attributes:
        arrays: the contents of the expression's operands.
        name: of the computation.
        element: type.
        start: where it begins along the outer and the inner dimension.
    """

    tiles: _Tiles
    expression: Expression
    arrays: Sequence[Any]
    name: str
    element: Any
    start: tuple[Any, Any]

    def reduced(self, number: Any) -> Any:
        """The reduction of the rows of a chunk: ``[1, 1, columns]``."""
        tiles = self.tiles
        first = code.combine(arith.muli, number, tiles.rows)
        stop = code.combine(arith.minsi, code.combine(arith.addi, first, tiles.rows), tiles.middle)
        whole = code.combine(arith.divui, code.combine(arith.subi, stop, first), _ROWS)
        rest = code.combine(arith.addi, first, code.combine(arith.muli, whole, _ROWS))
        total = code.for_each(rest, [self._identity()], self._combined(_ROWS), start=first, step=_ROWS)
        return code.for_each(stop, total, self._combined(1), start=rest)[0]

    def _identity(self) -> Any:
        _, of_float, of_integer = _COMBINERS[self.name]
        if isinstance(self.element, ir.IntegerType):
            value: ir.Attribute = ir.IntegerAttr.get(self.element, of_integer(self.element.width))
        else:
            value = ir.FloatAttr.get(self.element, of_float(self.element.width))
        vector = full_vector(constant(value), self.tiles.length)
        part = empty(ir.RankedTensorType.get([1, 1, self.tiles.columns], self.element))
        return self._along(part, lambda _, into, at: write_vector(vector, into, at))

    def _along(self, part: Any, body: Callable[[Any, Any, list[Any]], Any]) -> Any:
        """``for column: part = body(column, part, where it lies in the part)``."""
        origin = index(0)
        return code.for_each(
            self.tiles.columns,
            [part],
            lambda column, into: [body(column, into, [origin, origin, column])],
            step=self.tiles.length,
        )[0]

    def _combined(self, count: int) -> Callable[[Any, Any], list[Any]]:
        """From the number of a row and the part to the part with some rows combined into it."""

        def turn(row: Any, part: Any) -> list[Any]:
            rows = [code.combine(arith.addi, row, number) for number in range(count)]
            return [self._along(part, lambda column, into, at: joined(rows, column, into, at))]

        def joined(rows: Sequence[Any], column: Any, into: Any, at: list[Any]) -> Any:
            column = code.combine(arith.addi, self.start[1], column)
            vectors = [self._vector(row, column) for row in rows]
            while len(vectors) > 1:
                vectors = [self._join(*vectors[pair : pair + 2]) for pair in range(0, len(vectors), 2)]
            return write_vector(self._join(read_vector(into, at, self.tiles.length), vectors[0]), into, at)

        return turn

    def _vector(self, row: Any, column: Any) -> Any:
        return self.expression.evaluate(self.arrays, [self.start[0], row, column], self.tiles.length)

    def _join(self, one: Any, other: Any) -> Any:
        build = arithmetic(self.name, element_type(self.element))
        assert build is not None
        return build(one, other)
