"""Sizes of bounded dimensions as XLA infers them, where the types of a program do not say them.

* ``keep_sizes``: ``set_dimension_size`` of another dimension keeps the sizes that were set before, whether or not the
  type of its result says so.
* ``fit_sizes``: two arrays of which an elementwise operation makes one have the smaller of both sizes; an array of size
  1 is repeated. Sizes that were set to one value are equal, and of sizes that come from elsewhere nothing is known.

Source: XLA, ``DynamicDimensionInference`` (HandleSetDimensionSize, HandleElementwiseNary), ``RewriteDynamicBinaryOp``.
"""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.emission import emit, i64, i64s
from hloforge.dialect.mlir import SSAValue, ir, stablehlo
from hloforge.dialect.operations import defining_op, integer, operations
from hloforge.dialect.traits import ELEMENTWISE, TABLE
from hloforge.dialect.values import Value
from hloforge.pipelines.dynamic.size_symbols import Known, Symbol, element, size_of

_SET = "stablehlo.set_dimension_size"
_BINARY = frozenset(name for name in ELEMENTWISE if TABLE[name].arity == 2)
# Whose types follow those of operations around them.
_BORDERS = frozenset({"func.return", "stablehlo.return", "stablehlo.while", "stablehlo.if", "stablehlo.case"})


def keep_sizes(module: ir.Module) -> None:
    """Give dimensions whose size was set before their bounds again."""
    for op in operations(module, ELEMENTWISE | {_SET}):
        own = integer(op, "dimension") if op.name == _SET else None
        operands = list(op.operands)[: 1 if op.name == _SET else None]
        type_ = op.results[0].type
        lost = {
            d: bounds[d]
            for operand in operands
            if isinstance(operand.type, ir.RankedTensorType) and operand.type.rank == type_.rank
            for bounds in [_bounds(operand.type)]
            for d in range(type_.rank)
            if d != own and operand.type.is_dynamic_dim(d) and not type_.is_dynamic_dim(d) and bounds
        }
        users = [use.owner.operation.name for use in op.results[0].uses]
        if lost and not _BORDERS.intersection(users):
            op.results[0].set_type(_with_bounds(type_, lost))


def _bounds(type_: ir.RankedTensorType) -> Sequence[int]:
    if type_.encoding is None or not stablehlo.TypeExtensions.isinstance(type_.encoding):
        return ()
    return list(stablehlo.TypeExtensions(type_.encoding).bounds)


def _with_bounds(type_: ir.RankedTensorType, lost: dict[int, int]) -> ir.RankedTensorType:
    open_ = ir.ShapedType.get_dynamic_size()
    before = _bounds(type_) or [open_] * type_.rank
    bounds = [lost.get(d, before[d]) for d in range(type_.rank)]
    shape = [open_ if d in lost else size for d, size in enumerate(type_.shape)]
    return ir.RankedTensorType.get(shape, type_.element_type, stablehlo.TypeExtensions.get(bounds))


def fit_sizes(module: ir.Module) -> None:
    """Cut or repeat operands of elementwise operations whose sizes were set to different values."""
    known: Known = {}
    for op in operations(module, _BINARY):
        left, right = op.operands
        if left.type.rank != right.type.rank:
            continue
        apart = [d for d in range(left.type.rank) if _differ(left, right, d, known)]
        if not apart:
            continue
        with ir.InsertionPoint(op), op.location:
            fitted = {d: _common_size(Value(left), Value(right), d) for d in apart}
            for number, operand in enumerate((left, right)):
                op.operands[number] = _fit(Value(operand), fitted).ir


def _differ(left: SSAValue, right: SSAValue, dimension: int, known: Known) -> bool:
    """Whether the sizes of a dimension were set to different values."""
    if not (left.type.is_dynamic_dim(dimension) and right.type.is_dynamic_dim(dimension)):
        return False
    one, other = (_symbol(value, dimension, known) for value in (left, right))
    return one is not None and other is not None and one != other


def _symbol(value: SSAValue, dimension: int, known: Known) -> Symbol | None:
    """The name of a size that was set; None for one that comes from elsewhere."""
    while True:
        symbol = size_of(value, dimension, known)
        if not isinstance(symbol, tuple) or symbol[0] != "size":
            return symbol
        op = defining_op(symbol[1], _SET)
        if op is None:
            return None
        value, dimension = op.operands[0], symbol[2]
        if integer(op, "dimension") == dimension:
            found = element(op.operands[1], 0, known)
            if not isinstance(found, tuple) or found[0] != "size":
                return found
            # It was set to the size of another array.
            _, value, dimension = found


def _common_size(left: Value, right: Value, dimension: int) -> Value:
    """The smaller of two sizes; the larger one if the smaller is 1."""
    sizes = dimension_size(left, dimension), dimension_size(right, dimension)
    smaller, larger = ops.min(*sizes), ops.max(*sizes)
    return ops.select(smaller.eq(1), larger, smaller)


def _fit(x: Value, sizes: dict[int, Value]) -> Value:
    own = [dimension_size(x, d) if x.type.is_dynamic_dim(d) else dim for d, dim in enumerate(x.dims)]
    ends = [ops.min(own[d], sizes[d]) if d in sizes else end for d, end in enumerate(own)]
    operands = [x, size_vector([0] * x.rank), size_vector(ends), size_vector([1] * x.rank)]
    part = emit("stablehlo.real_dynamic_slice", operands, x.type)
    wanted = size_vector([sizes.get(d, one) for d, one in enumerate(own)])
    return emit(
        "stablehlo.dynamic_broadcast_in_dim", [part, wanted], x.type, broadcast_dimensions=i64s(list(range(x.rank)))
    )


def dimension_size(x: Value, dimension: int) -> Value:
    """The size of a dimension (s32)."""
    scalar = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
    return emit("stablehlo.get_dimension_size", [x], scalar, dimension=i64(dimension))


def size_vector(sizes: Sequence[int | Value]) -> Value:
    """Sizes, each known or a scalar, as an array (s32)."""
    if all(isinstance(one, int) for one in sizes):
        return constant(list(sizes), "s32")
    parts = [ops.reshape(one if isinstance(one, Value) else constant(one, "s32"), [1]) for one in sizes]
    return ops.concat_in_dim(parts, 0)
