"""Products of a factor that is repeated along a batch: whoever shares it are rows of one product.

Before, four heads of a query to one of the keys, each with one row::

    %b = stablehlo.broadcast_in_dim %k, dims = [0, 2, 3] : (tensor<8x512x64xf32>) -> tensor<8x4x512x64xf32>
    %c = stablehlo.reshape %b : (tensor<8x4x512x64xf32>) -> tensor<32x512x64xf32>
    %r = stablehlo.dot_general %q, %c, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      : (tensor<32x1x64xf32>, tensor<32x512x64xf32>) -> tensor<32x1x512xf32>

After::

    %p = stablehlo.reshape %q : (tensor<32x1x64xf32>) -> tensor<8x4x1x64xf32>
    %s = stablehlo.dot_general %p, %k, batching_dims = [0] x [0], contracting_dims = [3] x [2]
      : (tensor<8x4x1x64xf32>, tensor<8x512x64xf32>) -> tensor<8x4x1x512xf32>
    %r = stablehlo.reshape %s : (tensor<8x4x1x512xf32>) -> tensor<32x1x512xf32>

The factor is read once instead of written and read for each of them. Transpositions and elementwise operations on the
way are those of the factor before it is repeated.
"""

from __future__ import annotations

from itertools import accumulate
from math import gcd, prod
from operator import mul

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.shapes import Shape
from hloforge.dialect.traits import keeps_shape
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static, multiplies_nothing
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, pattern

_BROADCAST, _RESHAPE, _TRANSPOSE = "stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose"
# Operations between a product and what repeats its factor.
_MOST_STEPS = 8
# Rows of each of those that share a factor: more are worth a copy of it that lies as tiles read it.
_MOST_ROWS = 64


@pattern("stablehlo.dot_general")
def of_repeated_factors(op: ir.Operation) -> Replacement:
    """x[g r, m, k] repeat(y[g, k, n], r) -> x[g, r m, k] y[g, k, n]."""
    if not is_static(op) or multiplies_nothing(op):
        return NoMatch("of unknown or no size")
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    depth = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    x, y = Value(op.operands[0]), Value(op.operands[1])
    free = [d for d in range(x.rank) if d not in (*batch[0], *depth[0])]
    # Dimensions of size 1 do not count: those who share are the innermost of the batch, and rows follow them.
    along = next((n for n in reversed(range(len(batch[0]))) if x.dims[batch[0][n]] != 1), None)
    if along is None:
        return NoMatch("no batch")
    lead = batch[0][along]
    if prod(x.dims[d] for d in free) > _MOST_ROWS:
        return NoMatch("of many rows")
    if any(d < lead and x.dims[d] != 1 for d in free):
        return NoMatch("rows lie before the batch")
    count = _repetition(y.ir, batch[1][along])
    if count < 2:
        return NoMatch("nothing is repeated")
    parted = ops.reshape(x, [*x.dims[:lead], x.dims[lead] // count, count, *x.dims[lead + 1 :]])
    moved = [[d + (d > lead) for d in dims] for dims in (batch[0], depth[0])]
    attributes = {name: op.attributes[name] for name in op.attributes}
    attributes["dot_dimension_numbers"] = stablehlo.DotDimensionNumbers.get(moved[0], batch[1], moved[1], depth[1])
    factor = _once(y.ir, batch[1][along], count)
    result = Value(op.results[0])
    kept = [d for d in range(parted.rank) if d not in (*moved[0], *moved[1])]
    dims = [parted.dims[d] for d in (*moved[0], *kept)]
    dims += [factor.dims[d] for d in range(factor.rank) if d not in (*batch[1], *depth[1])]
    product = emit(op.name, [parted, factor], Shape(result.element_type, tuple(dims)), **attributes)
    return ops.reshape(product, list(result.dims))


def _repetition(value: SSAValue, along: int, steps: int = _MOST_STEPS) -> int:
    """How many neighbours along a dimension are the same, for each of the first of them; 1 if nothing says so."""
    size: int = value.type.shape[along]
    op = defining_op(value)
    if size == 1 or op is None or not steps:
        return 1
    if op.name == "stablehlo.constant":
        return size if ir.DenseElementsAttr(op.attributes["value"]).is_splat else 1
    if op.name == _BROADCAST:
        source = _source(op, along)
        return size if source is None else _repetition(op.operands[0], source, steps - 1)
    if op.name == _TRANSPOSE:
        return _repetition(op.operands[0], integers(op, "permutation")[along], steps - 1)
    if op.name == _RESHAPE:
        source = _innermost(op, along)
        return 1 if source is None else _repetition(op.operands[0], source, steps - 1)
    if not keeps_shape(op) or len(op.results) != 1 or any(_dims(operand) != _dims(value) for operand in op.operands):
        return 1
    found = 0
    for operand in op.operands:
        if found != 1:
            found = gcd(found, _repetition(operand, along, steps - 1))
    return found


def _once(value: SSAValue, along: int, count: int) -> Value:
    """An array with one of so many neighbours along a dimension, as ``_repetition`` has found them."""
    op = defining_op(value)
    assert op is not None
    dims = [size // count if d == along else size for d, size in enumerate(_dims(value))]
    if op.name == _BROADCAST:
        source = _source(op, along)
        before = Value(op.operands[0]) if source is None else _once(op.operands[0], source, count)
        return ops.broadcast_in_dim(before, dims, integers(op, "broadcast_dimensions"))
    if op.name == _TRANSPOSE:
        order = list(integers(op, "permutation"))
        return ops.transpose(_once(op.operands[0], order[along], count), order)
    if op.name == _RESHAPE:
        source = _innermost(op, along)
        assert source is not None
        return ops.reshape(_once(op.operands[0], source, count), dims)
    if op.name == "stablehlo.constant":
        return ops.slice(Value(value), [0] * len(dims), dims, [1] * len(dims))
    attributes = {name: op.attributes[name] for name in op.attributes}
    shape = Shape(Value(value).element_type, tuple(dims))
    return emit(op.name, [_once(operand, along, count) for operand in op.operands], shape, **attributes)


def _source(op: ir.Operation, along: int) -> int | None:
    """The dimension that a broadcast has along one of its result; None if it repeats it."""
    places = list(integers(op, "broadcast_dimensions"))
    if along not in places:
        return None
    source = places.index(along)
    return source if _dims(op.operands[0])[source] == _dims(op.results[0])[along] else None


def _innermost(op: ir.Operation, along: int) -> int | None:
    """The last dimension larger than 1 of those that a reshape makes one of; None if it takes one apart."""
    before, after = _dims(op.operands[0]), _dims(op.results[0])
    ends = list(accumulate(before, mul))
    first, last = prod(after[:along]), prod(after[: along + 1])
    starts = [1, *ends]
    if first not in starts or last not in ends:
        return None
    return next(d for d in range(len(before)) if ends[d] == last and before[d] > 1)


def _dims(value: SSAValue) -> tuple[int, ...]:
    return tuple(value.type.shape)
