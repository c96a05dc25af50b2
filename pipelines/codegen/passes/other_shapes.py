"""What passes that compute values in other shapes share: elementwise operations again, and repeated constants."""

from __future__ import annotations

from collections.abc import Sequence

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value


def elementwise(op: ir.Operation, operands: Sequence[Value], dims: Sequence[int]) -> Value:
    """The same elementwise operation of operands of other sizes, at the current insertion point."""
    type_ = ir.RankedTensorType.get(dims, ir.RankedTensorType(op.results[0].type).element_type)
    attributes = {name: op.attributes[name] for name in op.attributes}
    return Value(ir.Operation.create(op.name, [type_], [one.ir for one in operands], attributes).results[0])


def is_splat(op: ir.Operation) -> bool:
    """Whether a constant repeats one element."""
    return ir.DenseElementsAttr(op.attributes["value"]).is_splat


def repeated(splat: Value, dims: Sequence[int]) -> Value:
    """The element that a constant repeats, in other sizes."""
    return ops.broadcast_in_dim(ops.reshape(ops.slice(splat, [0] * splat.rank, [1] * splat.rank), []), dims, [])
