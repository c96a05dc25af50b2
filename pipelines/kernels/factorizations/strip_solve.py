"""Triangular systems of real matrices by substitution, a strip of columns per workgroup.

Source: Golub & Van Loan, 3.1; BLAS "trsm"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.mlir import arith, ir
from hloforge.pipelines.framework.builders import empty, index, read_vector, write_vector
from hloforge.pipelines.kernels.factorizations.strips import (
    ROWS,
    Number,
    Strips,
    Vector,
    divided,
    lanes,
    minus_product,
    minus_products,
    plus,
    times,
)
from hloforge.pipelines.kernels.lang import loops as code


def solve(a: Any, b: Any, *, lower: bool, transposed: bool, unit_diagonal: bool) -> list[Any]:
    """x with op(a) x = b: ``[b, n, n]`` and ``[b, n, m]`` to ``[b, n, m]``, n and m multiples of a strip's width.

    Args:
        lower: the triangle of a that is read.
        transposed: op transposes a.
        unit_diagonal: take the diagonal for ones, whatever it holds.
    """
    batch, n, m = map(int, b.type.shape)
    element = b.type.element_type
    width = lanes(element)
    scratch = [Strips.type_of(batch, n, m, element)]

    def run(places: Sequence[Any], sources: Sequence[Any], _: Sequence[Any], targets: Sequence[Any]) -> None:
        strip, place = places
        column = times(strip, width)
        matrix = code.load(sources[0], ir.RankedTensorType.get([1, n, n], element), [place, 0, 0])
        right = code.load(sources[1], ir.RankedTensorType.get([1, n, width], element), [place, 0, column])
        strip_ = code.load(targets[1], Strips.type_of(1, n, width, element), [place, strip, 0, 0])
        x, work = _Substitution(matrix, right, strip_, lower, transposed, unit_diagonal).result()
        code.store(x, targets[0], [place, 0, column])
        code.store(work, targets[1], [place, strip, 0, 0])

    work = batch * n * n * m // 2
    return code.workgroups([m // width, batch], [a, b], (), [b.type], run, scratch=scratch, work=work)[:1]


@dataclass(frozen=True)
class _Substitution:
    """The work on one strip ``b`` ``[1, n, w]``."""

    a: Any
    b: Any
    work: Any
    lower: bool
    transposed: bool
    unit_diagonal: bool

    @property
    def n(self) -> int:
        return int(self.b.type.shape[1])

    @property
    def width(self) -> int:
        return int(self.b.type.shape[2])

    def result(self) -> tuple[Any, Any]:
        """The solution, and the same as a strip, by the order in which its rows are found."""
        x, work = code.for_each(self.n, [empty(self.b.type), self.work], self._rows, step=ROWS)
        return x, work

    def _place(self, number: Any) -> Any:
        """The row that is found as number ``number``."""
        is_down = self.lower != self.transposed
        return number if is_down else code.combine(arith.subi, index(self.n - 1), number)

    def _factor(self, row: Any, other: Any) -> Number:
        place = [self._place(row), self._place(other)]
        return code.read(self.a, index(0), *(reversed(place) if self.transposed else place))

    def _rows(self, row: Any, x: Any, work: Any) -> list[Any]:
        """Find four rows."""
        strip, origin = Strips(work), index(0)
        numbers = [plus(row, r) for r in range(ROWS)]
        sums = [read_vector(self.b, [origin, self._place(number), origin], self.width) for number in numbers]
        sums = minus_products(
            sums, row, lambda k: [self._factor(number, k) for number in numbers], lambda k: strip.vector(origin, k)
        )
        found: list[Vector] = []
        for number, vector in zip(numbers, sums, strict=True):
            for other, before in zip(numbers, found, strict=False):
                vector = minus_product(vector, self._factor(number, other), before)
            found.append(vector if self.unit_diagonal else divided(vector, self._factor(number, number)))
        for number, vector in zip(numbers, found, strict=True):
            strip = strip.with_vector(vector, origin, number)
            x = write_vector(vector, x, [origin, self._place(number), origin])
        return [x, strip.array]
