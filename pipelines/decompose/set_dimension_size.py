"""``decompose-set-dimension-size``: an array sliced to a size that is known at run time.

Before::

    %r = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<4x3xf32>, tensor<i32>) -> tensor<?x3xf32>

After::

    %r = stablehlo.real_dynamic_slice %x, [0, 0], [%n, 3], [1, 1] : ... -> tensor<?x3xf32>

A result of static size is the operand. An array that has a dynamic size already is filled up before, as it may grow.
Source: XLA "SetDimensionSize".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.emission import emit, i64
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import defining_op, integer
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern


@pattern("stablehlo.set_dimension_size")
def set_again(op: ir.Operation) -> Replacement:
    """set_dimension_size(set_dimension_size(x, n), m) -> set_dimension_size(x, m): XLA keeps the buffer."""
    before = defining_op(op.operands[0], op.name)
    if before is None or integer(before, "dimension") != integer(op, "dimension"):
        return NoMatch("its operand has its own size")
    operands = [Value(before.operands[0]), Value(op.operands[1])]
    return emit(op.name, operands, op.results[0].type, dimension=op.attributes["dimension"])


@pattern("stablehlo.set_dimension_size")
def cut(op: ir.Operation) -> Replacement:
    """set_dimension_size -> real_dynamic_slice; operands of any size."""
    operand, size = map(Value, op.operands)
    if operand.type == op.results[0].type and op.results[0].type.has_static_shape:
        return operand
    changed = integer(op, "dimension")
    if operand.dims[changed] < 0:
        operand = _grown(operand, changed, size)
    sizes = [ops.convert_element_type(size, "s32") if d == changed else _size(operand, d) for d in range(operand.rank)]
    limits = ops.concat_in_dim([ops.reshape(number, [1]) for number in sizes], 0)
    starts, strides = (constant([number] * operand.rank, "s32") for number in (0, 1))
    return emit("stablehlo.real_dynamic_slice", [operand, starts, limits, strides], op.results[0].type)


def _grown(operand: Value, dimension: int, size: Value) -> Value:
    """An array of at least this size. What it is filled up with XLA leaves open; here it is 0."""
    missing = ops.max(ops.convert_element_type(size, "s32") - _size(operand, dimension), constant(0, "s32"))
    high = [missing if d == dimension else constant(0, "s32") for d in range(operand.rank)]
    none = constant([0] * operand.rank, "s32")
    amounts = ops.concat_in_dim([ops.reshape(number, [1]) for number in high], 0)
    return emit(
        "stablehlo.dynamic_pad", [operand, constant(0, operand.element_type), none, amounts, none], operand.type
    )


def _size(operand: Value, d: int) -> Value:
    if operand.dims[d] >= 0:
        return constant(operand.dims[d], "s32")
    return emit("stablehlo.get_dimension_size", [operand], ir.RankedTensorType.get([], _s32()), dimension=i64(d))


def _s32() -> Any:
    return ir.IntegerType.get_signless(32)


@register
@dataclass(frozen=True)
class DecomposeSetDimensionSize(Pass):
    """Slice arrays to their dynamic sizes, after bounds are dropped."""

    name: ClassVar[str] = "decompose-set-dimension-size"

    def run(self, module: ir.Module) -> None:
        # Before the inner ones are slices.
        apply_patterns(module, set_again)
        apply_patterns(module, cut)
