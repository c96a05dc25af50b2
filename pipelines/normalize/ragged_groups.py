"""Ragged products whose groups have sizes of their own in each row.

Before::

    %r = "chlo.ragged_dot"(%x, %y, %sizes) : (tensor<2x6x4xf32>, tensor<3x4x5xf32>, tensor<2x3xi64>) -> ...

After: the same of ``%y`` repeated for each row, and the rows a batch dimension of both.

jaxlib's expansion takes the leading dimensions of the sizes for batch dimensions alone; they are also the dimensions of
the left operand before the ragged one. It also takes batch dimensions to be the first of the left operand.
Source: CHLO "ragged_dot", mode 1 (ragged non-contracting dimension).
"""

from __future__ import annotations

from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import chlo, ir
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern

_NUMBERS = "ragged_dot_dimension_numbers"


@pattern("chlo.ragged_dot")
def batches_first(op: ir.Operation) -> Replacement:
    """ragged_dot -> ragged_dot whose left operand begins with all dimensions that the sizes have, as batches."""
    x, y, sizes = map(Value, op.operands)
    numbers: Any = chlo.RaggedDotDimensionNumbers(op.attributes[_NUMBERS])
    (ragged,) = numbers.lhs_ragged_dimensions
    batches, contracted = list(numbers.lhs_batching_dimensions), list(numbers.lhs_contracting_dimensions)
    if ragged in (*batches, *contracted):
        return NoMatch("the groups are of batches or of products")
    rows = [d for d in range(ragged) if d not in (*batches, *contracted)]
    # Groups that are the same in each row have sizes without dimensions for them.
    rows = rows if sizes.rank > 1 + len(batches) else []
    order = [*batches, *rows, *(d for d in range(x.rank) if d not in (*batches, *rows))]
    if order == list(range(x.rank)) and not rows:
        return NoMatch("batches are first")
    count = len(rows)
    repeated = ops.broadcast_in_dim(y, [*(x.dims[d] for d in rows), *y.dims], range(count, count + y.rank))
    moved = chlo.RaggedDotDimensionNumbers.get(
        lhs_batching_dimensions=list(range(len(batches) + count)),
        rhs_batching_dimensions=[*(count + d for d in numbers.rhs_batching_dimensions), *range(count)],
        lhs_contracting_dimensions=[order.index(d) for d in contracted],
        rhs_contracting_dimensions=[count + d for d in numbers.rhs_contracting_dimensions],
        lhs_ragged_dimensions=[order.index(ragged)],
        rhs_group_dimensions=[count + d for d in numbers.rhs_group_dimensions],
    )
    kept = {name: op.attributes[name] for name in op.attributes if name != _NUMBERS}
    operands = [ops.transpose(x, order), repeated, sizes]
    return emit(op.name, operands, op.results[0].type, **kept, **{_NUMBERS: moved})
