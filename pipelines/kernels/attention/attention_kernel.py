"""The micro-kernel of ``dispatch-attention``: a tile of queries over all keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from hloforge.dialect.mlir import SSAValue, arith, ir, math_dialect, vector_dialect
from hloforge.pipelines.framework.builders import empty, full_vector, index, read_vector, write_vector, zero
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.kernels.lang import loops as code


@dataclass(frozen=True)
class Tile:
    """What the code of a workgroup works on at once.

    Attributes:
        queries: side by side in a line.
        keys: whose weights are held.
        rows: sums, each of a line of queries.
    """

    queries: int
    keys: int
    rows: int

    @classmethod
    def of(cls, machine: Machine) -> Tile:
        """Weights in a quarter of the nearest cache, beside the queries and the totals."""
        return cls(machine.line_bytes // 4, machine.l1_bytes // (4 * machine.line_bytes), machine.summed_lines)


@dataclass(frozen=True)
class Kernel:
    """The work of one workgroup.

    Attributes:
        queries: ``[1, q, d]``, those of a tile.
        keys: ``[1, n, d]``.
        values: ``[1, n, e]``.
        score: from a vector of products with the queries and the number of a key to their scores.
        tile: the sizes of what is worked on at once.
    """

    queries: Any
    keys: Any
    values: Any
    score: Callable[[Any, Any], Any]
    tile: Tile

    @property
    def element(self) -> Any:
        return self.queries.type.element_type

    def result(self) -> Any:
        """The values' mean, weighted by the softmax of the scores: ``[1, q, e]``."""
        count, width = int(self.keys.type.shape[1]), int(self.values.type.shape[2])
        nothing = self._filled(0.0)
        totals = self._array(width)
        totals = code.for_each(width, [totals], lambda row, into: [_written(nothing, into, row)])[0]
        carried = [self._filled(-inf), nothing, totals, self._array(min(self.tile.keys, count))]
        flipped = self._flipped()

        def block(key: SSAValue, lines: int, *carried: SSAValue) -> list[Any]:
            return self._block(flipped, key, lines, carried)

        _, sums, totals, _ = code.in_steps(count, self.tile.keys, carried, block)
        part = empty(ir.RankedTensorType.get([1, self.tile.queries, width], self.element))
        return code.for_each(width, [part], lambda row, into: [self._stored(row, into, totals, sums)])[0]

    def _block(self, flipped: SSAValue, key: SSAValue, lines: int, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """Add what some keys contribute to the sums of the weights and the weighted values.

        All weights are relative to the greatest score so far: what was added before is scaled when that grows.
        """
        before, sums, totals, weights = carried

        def scores(row: SSAValue, count: int, greatest: SSAValue, weights: SSAValue) -> list[Any]:
            return self._scores(flipped, key, row, count, greatest, weights)

        greatest, weights = code.in_steps(lines, self.tile.rows, [before, weights], scores)
        # Where no score is above -inf yet, any other number leaves weights of 0.
        least = self._filled(-inf)
        base = code.choose(code.compare_floats("OEQ", greatest, least), self._filled(0.0), greatest)
        scale = _exponential(code.combine(arith.subf, before, base))

        def weigh(line: SSAValue, sums: SSAValue, weights: SSAValue) -> list[SSAValue]:
            weight = _exponential(code.combine(arith.subf, _read(weights, line), base))
            return [code.combine(arith.addf, sums, weight), _written(weight, weights, line)]

        sums, weights = code.for_each(lines, [code.combine(arith.mulf, sums, scale), weights], weigh)

        def add(row: SSAValue, count: int, totals: SSAValue) -> list[Any]:
            return [self._added(key, lines, row, count, scale, totals, weights)]

        totals = code.in_steps(int(self.values.type.shape[2]), self.tile.rows, [totals], add)[0]
        return [greatest, sums, totals, weights]

    def _scores(
        self, flipped: SSAValue, key: SSAValue, row: SSAValue, count: int, greatest: SSAValue, weights: SSAValue
    ) -> list[SSAValue]:
        """Write the scores of some keys; the greatest ones grow by them."""
        lines = [code.combine(arith.addi, row, number) for number in range(count)]
        at = [code.combine(arith.addi, key, line) for line in lines]
        products = self._products(int(self.keys.type.shape[2]), [self._filled(0.0)] * count, flipped, self.keys, at)
        for line, where, product in zip(lines, at, products, strict=True):
            score = self.score(product, where)
            greatest = code.combine(arith.maximumf, greatest, score)
            weights = _written(score, weights, line)
        return [greatest, weights]

    def _products(
        self, depth: int, sums: Sequence[SSAValue], lines: SSAValue, factors: SSAValue, rows: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Add the products of lines of vectors with the numbers of some rows ``[1, row, depth]``."""

        def turn(k: SSAValue, *sums: SSAValue) -> list[SSAValue]:
            line = _read(lines, k)
            numbers = [code.read(factors, index(0), row, k) for row in rows]
            return [_multiply_add(number, line, sum_) for number, sum_ in zip(numbers, sums, strict=True)]

        return code.for_each(depth, sums, turn)

    def _added(
        self, key: SSAValue, lines: int, row: SSAValue, count: int, scale: SSAValue, totals: SSAValue, weights: SSAValue
    ) -> SSAValue:
        """Add the values of some keys, by their weights, to some rows of the totals."""
        rows = [code.combine(arith.addi, row, number) for number in range(count)]

        def turn(line: SSAValue, *sums: SSAValue) -> list[SSAValue]:
            weight, at = _read(weights, line), code.combine(arith.addi, key, line)
            numbers = [code.read(self.values, index(0), at, number) for number in rows]
            return [_multiply_add(number, weight, sum_) for number, sum_ in zip(numbers, sums, strict=True)]

        before = [code.combine(arith.mulf, _read(totals, number), scale) for number in rows]
        for number, sum_ in zip(rows, code.for_each(lines, before, turn), strict=True):
            totals = _written(sum_, totals, number)
        return totals

    def _flipped(self) -> SSAValue:
        """The queries ``[d, q]``."""
        depth = int(self.queries.type.shape[2])

        def line(k: SSAValue, into: SSAValue) -> list[Any]:
            numbers = [code.read(self.queries, index(0), index(query), k) for query in range(self.tile.queries)]
            vector = vector_dialect.from_elements(self._vector, numbers)
            return [_written(vector, into, k)]

        return code.for_each(depth, [self._array(depth)], line)[0]

    def _stored(self, row: SSAValue, into: SSAValue, totals: SSAValue, sums: SSAValue) -> SSAValue:
        """Write a row of the totals, divided by the sums of the weights, as a column."""
        mean = code.combine(arith.divf, _read(totals, row), sums)
        for query in range(self.tile.queries):
            number = vector_dialect.extract(mean, [], [query])
            into = code.write(number, into, index(0), index(query), row)
        return into

    @property
    def _vector(self) -> ir.Type:
        return ir.VectorType.get([self.tile.queries], self.element)

    def _filled(self, number: float) -> Any:
        scalar = code.float_number(number, self.element) if number else zero(self.element)
        return full_vector(scalar, self.tile.queries)

    def _array(self, lines: int) -> Any:
        return empty(ir.RankedTensorType.get([lines, self.tile.queries], self.element))


def _read(array: SSAValue, line: SSAValue) -> Any:
    return read_vector(array, [line, index(0)], int(array.type.shape[1]))


def _written(vector: SSAValue, array: SSAValue, line: SSAValue) -> Any:
    return write_vector(vector, array, [line, index(0)])


def _multiply_add(number: SSAValue, line: SSAValue, total: SSAValue) -> Any:
    return vector_dialect.fma(full_vector(number, int(line.type.shape[0])), line, total)


def _exponential(vector: SSAValue) -> Any:
    return math_dialect.exp(vector)
