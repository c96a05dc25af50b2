"""Matrices in memory and the loops that factorizations share: copies, transpositions, ``c - a b``.

A matrix is seen through its steps, so that its transpose, or its rows from the last to the first, cost no copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from hloforge.pipelines.codegen.algorithms.arrays import Element, Elements, parts
from hloforge.pipelines.codegen.algorithms.places import each, fold, minus, plus, times
from hloforge.pipelines.codegen.algorithms.vectors import flattened, like, mapped, spread
from hloforge.pipelines.codegen.chains import Terms, add_up
from hloforge.pipelines.codegen.elements import memory as element_memory
from hloforge.pipelines.codegen.elements.kinds import pair, part_of, single, width
from hloforge.pipelines.codegen.lang.functions import NO_VECTORS, Function
from hloforge.pipelines.codegen.lang.values import Number, Value

# Loops over code that is vectors already: to unroll them costs LLVM more than it saves. Those of single numbers are
# short, or each number needs the one before, so that LLVM's passes over loops, two fifths of its time, gain nothing.
_HINTS = f"unroll.disable,{NO_VECTORS}"
steps, folded = partial(each, hints=_HINTS), partial(fold, hints=_HINTS)
# Rows that are computed together.
ROWS = 4
# The side of a square that is transposed in registers.
_SQUARE = 8


@dataclass(frozen=True)
class Matrix:
    """Elements of an array as rows and columns.

    Attributes:
        first: the place of the first element.
        row, column: steps from one row to the next, and from one column to the next.
        conjugated: whether the conjugates of the elements are meant, which cannot be written.
    """

    array: Elements
    row: int
    column: int = 1
    first: Number = 0
    conjugated: bool = False

    def place(self, row: Number, column: Number) -> Number:
        """Where an element is in the array."""
        return plus(times(row, self.row), times(column, self.column), self.first)

    def at(self, row: Number, column: Number, lanes: int = 0) -> Element:
        """An element, or so many of a row."""
        element = self.array.at(self.place(row, column), lanes)
        return conjugate(element) if self.conjugated else element

    def put(self, element: Element, row: Number, column: Number) -> None:
        """Write an element, or several of a row."""
        self.array.put(element, self.place(row, column))

    def transposed(self) -> Matrix:
        """Rows as columns."""
        return replace(self, row=self.column, column=self.row)

    def adjoint(self) -> Matrix:
        """Rows as columns, and conjugates."""
        return replace(self.transposed(), conjugated=not self.conjugated)

    def below(self, row: Number, column: Number = 0) -> Matrix:
        """The rows from one on, and the columns from one on."""
        return replace(self, first=self.place(row, column))

    def reversed(self, rows: int, columns: int) -> Matrix:
        """The last row and column first, of so many."""
        first = plus(self.first, (rows - 1) * self.row + (columns - 1) * self.column)
        return replace(self, row=-self.row, column=-self.column, first=first)

    def reversed_rows(self, rows: int) -> Matrix:
        """The last row first, of so many."""
        return replace(self, row=-self.row, first=plus(self.first, (rows - 1) * self.row))


@dataclass(frozen=True)
class Registers:
    """How loops over matrices use vectors.

    Attributes:
        lanes: of a vector.
        vectors: beside each other, times ``ROWS`` rows of results.
    """

    lanes: int
    vectors: int

    @classmethod
    def of(cls, element: str, columns: int, vector_bytes: int) -> Registers:
        """The registers for matrices of some columns."""
        # A square of ROWS is in one vector, if need be of several registers.
        most = max(ROWS, vector_bytes * 8 // width(part_of(element)))
        lanes = min(most, max(ROWS, 1 << (columns - 1).bit_length()))
        numbers = 1 if part_of(element) == element else 2
        return cls(lanes, max(1, vector_bytes // 16 // numbers))

    def padded(self, columns: int) -> int:
        """Columns as a multiple of the lanes."""
        return -(-columns // self.lanes) * self.lanes

    def pitch(self, columns: int, element: str) -> int:
        """The same, but rows of several columns are no power of two of the cache's lines apart."""
        side = self.padded(columns)
        is_even = columns > self.lanes * self.vectors and side * element_memory.size(element) % 512 == 0
        return side + self.lanes if is_even else side


def minus_product(total: Element, a: Element, b: Element) -> Element:
    """``total - a b``."""
    if isinstance(total, Value):
        assert isinstance(a, Value) and isinstance(b, Value)
        return total - a * b
    assert not isinstance(a, Value) and not isinstance(b, Value)
    (real, imaginary), (c, d), (e, f) = total, a, b
    return real - c * e + d * f, imaginary - c * f - d * e


def sum_of(one: Element, other: Element) -> Element:
    """``one + other``."""
    made = [left + right for left, right in zip(parts(one), parts(other), strict=True)]
    return made[0] if len(made) == 1 else (made[0], made[1])


def conjugate(element: Element) -> Element:
    """The complex conjugate; a real number itself."""
    return element if isinstance(element, Value) else (element[0], -element[1])


def scaled(element: Element, factor: Value) -> Element:
    """An element times a real number."""
    return mapped(element, lambda value: value * factor)


def minus_products(
    function: Function,
    totals: Sequence[Sequence[Element]],
    limits: tuple[Number, Number],
    factor: Callable[[int, Value], Element],
    vector: Callable[[Value, int], Element],
    *,
    most: int,
) -> list[list[Element]]:
    """Rows of vectors without the products of factors and vectors, which are added up in chains of limited length.

    Args:
        totals: the rows, each of some vectors.
        limits: the first number of a factor and the one after the last.
        factor: of a row, with a number.
        vector: with a number, beside others.
        most: numbers at most.
    """
    forms = [element for row in totals for element in row]
    count = len(totals[0])
    first = forms[0] if isinstance(forms[0], Value) else forms[0][0]
    lanes = int(first.kind[1:].split()[0])

    def turn(numbers: list[Value], values: list[Value]) -> list[Value]:
        (number,) = numbers
        found = like(values, forms)
        vectors = [vector(number, place) for place in range(count)]
        for row in range(len(totals)):
            own = spread(factor(row, number), lanes)
            for place in range(count):
                at = row * count + place
                found[at] = minus_product(found[at], own, vectors[place])
        return flattened(found)

    begin, end = limits
    terms = [Terms(minus(end, begin), most, (1,))]
    found = like(add_up(function, terms, [function.index(begin)], flattened(forms), turn), forms)
    return [found[row * count : (row + 1) * count] for row in range(len(totals))]


def each_columns(
    function: Function, limits: tuple[Number, Number], registers: Registers, body: Callable[[Value, int], None]
) -> None:
    """Loops over vectors of columns: as many at once as there are registers, then one by one.

    Args:
        limits: the first column and the one after the last, a multiple of the lanes apart.
        body: given the first column and how many vectors it is to do.
    """
    first, last = limits
    group = registers.lanes * registers.vectors
    if isinstance(first, Value) or isinstance(last, Value):
        count = function.index(minus(last, first))
        middle: Number = plus(count - count.urem(group), first)
    else:
        middle = first + (last - first) // group * group
    if isinstance(middle, Value) or isinstance(first, Value) or middle > first:
        with steps(function, first, middle, group) as column:
            body(column, registers.vectors)
    if registers.vectors > 1 and (isinstance(middle, Value) or isinstance(last, Value) or middle < last):
        with steps(function, middle, last, registers.lanes) as column:
            body(column, 1)


def subtract_product(
    function: Function,
    c: Matrix,
    a: Matrix,
    b: Matrix,
    rows: tuple[Number, Number],
    columns: tuple[Number, Number],
    inner: tuple[Number, Number],
    registers: Registers,
    most: int,
) -> None:
    """``c -= a b`` for some rows and columns of c, which are multiples of ``ROWS`` and of the lanes.

    Args:
        most: columns of a at most.
    """
    lanes = registers.lanes
    zero = spread(element_memory.constant(function, c.array.element, 0), lanes)

    def strip(column: Value, vectors: int) -> None:
        columns = [plus(column, place * lanes) for place in range(vectors)]
        with steps(function, *rows, ROWS) as row:
            own = [plus(row, place) for place in range(ROWS)]
            # c may go on from one call to the next: the products are one number that is added to it.
            changes = minus_products(
                function,
                [[zero] * vectors] * ROWS,
                inner,
                lambda place, number: a.at(own[place], number),
                lambda number, place: b.at(number, columns[place], lanes),
                most=most,
            )
            for at, elements in zip(own, changes, strict=True):
                for here, change in zip(columns, elements, strict=True):
                    c.put(sum_of(c.at(at, here, lanes), change), at, here)

    each_columns(function, columns, registers, strip)


def fill(function: Function, target: Matrix, rows: tuple[Number, Number], columns: Number, element: Element) -> None:
    """Write the same element everywhere."""
    with steps(function, *rows) as row, steps(function, 0, columns) as column:
        target.put(element, row, column)


def pad(function: Function, target: Matrix, shape: tuple[int, int], padded: tuple[int, int], element: str) -> None:
    """Write zeros that follow the rows and columns of a matrix, of numbers of a type."""
    (rows, columns), (height, side) = shape, padded
    zero = element_memory.constant(function, element, 0)
    if side > columns:
        fill(function, target.below(0, columns), (0, rows), side - columns, zero)
    if height > rows:
        fill(function, target, (rows, height), side, zero)


def copy(
    function: Function,
    source: Matrix,
    target: Matrix,
    rows: int,
    columns: int,
    change: Callable[[Element], Element] | None = None,
) -> None:
    """Copy a matrix, of which one of both may be seen by columns; elements may be changed."""
    change = change or (lambda element: element)
    if abs(source.column) > 1 and abs(source.row) == 1:
        # Both along the rows of the source's memory, so that squares are turned in registers.
        source, target, rows, columns = source.transposed(), target.transposed(), columns, rows
    if target.column == source.column == 1:
        pieces = [piece for piece in (4, 2, 1) if columns & piece]
        with steps(function, 0, rows) as row:
            whole_columns = columns // _SQUARE * _SQUARE
            if whole_columns:
                with steps(function, 0, whole_columns, _SQUARE) as column:
                    target.put(change(source.at(row, column, _SQUARE)), row, column)
            for number, piece in enumerate(pieces):
                at = whole_columns + sum(pieces[:number])
                target.put(change(source.at(row, at, piece if piece > 1 else 0)), row, at)
        return
    if target.column == 1 or source.column != 1 or target.row != 1:
        with steps(function, 0, rows) as row, steps(function, 0, columns) as column:
            target.put(change(source.at(row, column)), row, column)
        return
    whole = rows // _SQUARE * _SQUARE, columns // _SQUARE * _SQUARE
    if all(whole):
        with steps(function, 0, whole[0], _SQUARE) as row, steps(function, 0, whole[1], _SQUARE) as column:
            lines = [change(source.at(plus(row, place), column, _SQUARE)) for place in range(_SQUARE)]
            for place, line in enumerate(turned_lines(lines)):
                target.array.put(line, target.place(row, plus(column, place)))
    for first, last, begin in ((0, whole[0], whole[1]), (whole[0], rows, 0)):
        if first < last and begin < columns:
            with steps(function, first, last) as row, steps(function, begin, columns) as column:
                target.put(change(source.at(row, column)), row, column)


def turned_lines(lines: Sequence[Element]) -> list[Element]:
    """The transpose of a square of vectors."""
    if isinstance(lines[0], Value):
        return list(turned([single(line) for line in lines]))
    both = [turned([pair(line)[number] for line in lines]) for number in (0, 1)]
    return list(zip(*both, strict=True))


def turned(lines: Sequence[Value]) -> list[Value]:
    """The transpose of a square of vectors of numbers: blocks of 1, 2, 4 lanes change places."""
    found, size = list(lines), 1
    while size < len(lines):
        for place in range(len(lines)):
            if place & size:
                continue
            one, other = found[place], found[place + size]
            count = len(lines)
            low = [lane if not lane & size else count + lane - size for lane in range(count)]
            high = [lane + size if not lane & size else count + lane for lane in range(count)]
            function = one.function
            found[place], found[place + size] = function.shuffle(one, other, low), function.shuffle(one, other, high)
        size *= 2
    return found
