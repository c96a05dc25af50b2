"""XLA's broadcasting of the operands of elementwise operations.

Equal ranks need nothing; a scalar goes anywhere; for other ranks ``broadcast_dimensions`` maps each dimension of the
operand of lower rank to one of the other. Then dimensions of size 1 expand.
Source: XLA "Broadcasting semantics".
"""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.dialect.constants import operand_pair, spread
from hloforge.dialect.emission import emit, i64s
from hloforge.dialect.errors import OperationError
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Operand, Value


def broadcast_operands(lhs: Operand, rhs: Operand, broadcast_dimensions: Sequence[int] = ()) -> tuple[Value, Value]:
    """Two operands in one shape, apart from their element types.

    Raises:
        OperationError: they do not fit together; the message says which rule they break.
    """
    left, right = operand_pair(lhs, rhs)
    if left.dims == right.dims and not broadcast_dimensions:
        return left, right
    if left.rank != right.rank:
        left, right = _to_one_rank(left, right, broadcast_dimensions)
    elif list(broadcast_dimensions) not in ([], list(range(left.rank))):
        raise OperationError(
            f"operands of equal rank {left.rank} need no broadcast_dimensions, and {list(broadcast_dimensions)} is not "
            f"{list(range(left.rank))}"
        )
    return _expand(left, right)


def _to_one_rank(lhs: Value, rhs: Value, broadcast_dimensions: Sequence[int]) -> tuple[Value, Value]:
    if lhs.rank < rhs.rank:
        right, left = _to_one_rank(rhs, lhs, broadcast_dimensions)
        return left, right
    if not rhs.rank and not broadcast_dimensions:
        return lhs, spread(rhs, lhs)
    _check_mapping(lhs.shape, rhs.shape, broadcast_dimensions)
    sizes = [1] * lhs.rank
    for size, dimension in zip(rhs.dims, broadcast_dimensions, strict=True):
        sizes[dimension] = size
    wide = [lhs.dims[d] if d not in broadcast_dimensions else size for d, size in enumerate(sizes)]
    if any(lhs.shape.dynamic[d] for d in range(lhs.rank) if d not in broadcast_dimensions):
        return lhs, _spread(rhs, lhs, broadcast_dimensions)
    dynamic = [False] * lhs.rank
    for flag, dimension in zip(rhs.shape.dynamic, broadcast_dimensions, strict=True):
        dynamic[dimension] = flag
    shape = Shape(rhs.element_type, tuple(wide), tuple(dynamic))
    return lhs, emit("stablehlo.broadcast_in_dim", [rhs], shape, broadcast_dimensions=i64s(broadcast_dimensions))


def _check_mapping(larger: Shape, smaller: Shape, broadcast_dimensions: Sequence[int]) -> None:
    if not broadcast_dimensions and smaller.rank:
        raise OperationError(
            f"{larger} and {smaller} have different ranks, and broadcasting is never implicit",
            hint="broadcast_dimensions maps each dimension of the smaller one to one of the larger",
        )
    if len(broadcast_dimensions) != smaller.rank:
        raise OperationError(
            f"broadcast_dimensions {list(broadcast_dimensions)} must name one dimension of {larger} for each of the "
            f"{smaller.rank} of {smaller}"
        )
    for number, dimension in enumerate(broadcast_dimensions):
        if not 0 <= dimension < larger.rank:
            raise OperationError(f"broadcast dimension {dimension} is out of range for {larger}")
        if number and dimension <= broadcast_dimensions[number - 1]:
            raise OperationError(f"broadcast_dimensions {list(broadcast_dimensions)} must increase strictly")
        here, there = smaller.dimensions[number], larger.dimensions[dimension]
        if here != there and 1 not in (here, there) and min(here, there) >= 0:
            raise OperationError(
                f"dimension {number} of {smaller} has size {here}, and dimension {dimension} of {larger}, to which it "
                f"is broadcast, {there}"
            )


def _expand(lhs: Value, rhs: Value) -> tuple[Value, Value]:
    """Dimensions of size 1 to the size that the other operand has there."""
    pairs = list(zip(lhs.dims, rhs.dims, strict=True))
    for d, (left, right) in enumerate(pairs):
        if left != right and 1 not in (left, right) and min(left, right) >= 0:
            raise OperationError(
                f"{lhs.shape} and {rhs.shape} differ in dimension {d}: {left} and {right} are neither equal nor 1"
            )
    return _widen(lhs, rhs), _widen(rhs, lhs)


def _widen(value: Value, other: Value) -> Value:
    grows = [mine == 1 and theirs != 1 for mine, theirs in zip(value.dims, other.dims, strict=True)]
    if not any(grows):
        return value
    if any(grown and other.shape.dynamic[d] for d, grown in enumerate(grows)):
        return _spread(value, other, range(value.rank))
    sizes = tuple(theirs if grown else mine for mine, theirs, grown in zip(value.dims, other.dims, grows, strict=True))
    shape = Shape(value.element_type, sizes, value.shape.dynamic)
    return emit("stablehlo.broadcast_in_dim", [value], shape, broadcast_dimensions=i64s(range(value.rank)))


def _spread(value: Value, like: Value, broadcast_dimensions: Sequence[int]) -> Value:
    """Along dynamic dimensions, where the other operand cannot expand as well."""
    for size, dimension in zip(value.dims, broadcast_dimensions, strict=True):
        if size not in (1, like.dims[dimension]):
            raise OperationError(
                f"{value.shape} and {like.shape} cannot both be broadcast where one has dynamic dimensions",
                hint="broadcast one of them first with broadcast_in_dim",
            )
    return spread(value, like, broadcast_dimensions)
