"""``legalize-tall-reductions``: what many rows are reduced to is found of parts of the rows, which workers share out.

Before::

    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4000x2000xf32>, tensor<f32>) -> tensor<2000xf32>

After::

    %b = stablehlo.reshape %x : (tensor<4000x2000xf32>) -> tensor<8x500x2000xf32>
    %t = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [1] -> tensor<8x2000xf32>
    %s = stablehlo.reduce(%t init: %zero) applies stablehlo.add across dimensions = [0] -> tensor<2000xf32>

Otherwise each worker has some columns, and reads a piece of each row: memory that lies apart takes up to twice as long.
Dimensions that follow each other, as those of an image's pixels, are rows. Rows that are left of eight equal parts are
reduced apart. What is reduced may be stored as well, by a loop of its own then: gradients of activations and of their
biases take 0.3 to 0.7 of the time of one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import combiner, is_static
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# Parts: as many as workgroups at most. Elements from which on they are worth it, rows of a part, and bytes of a row
# from which on pieces of it are long enough.
_PARTS, _LARGE, _ROWS, _LONG_ROW = 8, 1 << 17, 8, 1 << 14
_BYTE = 8
# Computations whose order makes no difference.
COMBINERS: Mapping[str, Callable[[Value, Value], Value]] = {
    "stablehlo.add": ops.add,
    "stablehlo.maximum": ops.max,
    "stablehlo.minimum": ops.min,
}


@pattern("stablehlo.reduce")
def by_parts(op: ir.Operation) -> Replacement:
    """A reduction of many rows of a large array."""
    if len(op.results) != 1 or not is_static(op) or combiner(op) not in COMBINERS:
        return NoMatch("several results, or of unknown size or computation")
    array, start = map(Value, op.operands)
    dims, summed = array.dims, sorted(integers(op, "dimensions"))
    first = next((d for d, size in enumerate(dims) if size > 1), 0)
    kind = ir.RankedTensorType(array.ir.type).element_type
    if not isinstance(kind, ir.FloatType | ir.IntegerType) or kind.width < _BYTE:
        return NoMatch("complex numbers or flags")
    # Dimensions that follow each other are rows of one.
    last = next((d for d in range(first, len(dims)) if d not in summed), len(dims))
    n = prod(dims[first:last])
    if last == first or n < _PARTS * _ROWS or prod(dims) < _LARGE:
        return NoMatch("few rows, or other loops outside of them")
    row = prod(size for d, size in enumerate(dims) if d not in summed)
    if row == 1 or row * kind.width // _BYTE > _LONG_ROW:
        return NoMatch("one number, or rows of which parts are long")
    combine = COMBINERS[combiner(op)]
    # What is combined several times changes no extreme, and the sum of nothing is zero.
    none = 0 if combine is ops.add else start
    whole, kept = n - n % _PARTS, dims[last:]
    others = [d - last + 1 for d in summed if d >= last]
    rows = ops.reshape(array, [n, *kept])
    parts = ops.reshape(_rows(rows, 0, whole), [_PARTS, whole // _PARTS, *kept])
    inner = ops.reduce(parts, none, combine, [1, *(d + 1 for d in others)])
    total = ops.reduce(inner, start, combine, [0])
    if whole < n:
        total = combine(total, ops.reduce(_rows(rows, whole, n), none, combine, [0, *others]))
    return ops.reshape(total, Value(op.results[0]).dims)


def _rows(array: Value, first: int, last: int) -> Value:
    if (first, last) == (0, array.dims[0]):
        return array
    return ops.slice(array, [first] + [0] * (array.rank - 1), [last, *array.dims[1:]])


@register
@dataclass(frozen=True)
class LegalizeTallReductions(PatternPass):
    """Reduce the rows of large arrays in parts."""

    name: ClassVar[str] = "legalize-tall-reductions"
    patterns: ClassVar[tuple[Pattern, ...]] = by_parts
