"""Values without dimensions along which their elements are equal, for passes that look through broadcasts."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op, integer, integers
from hloforge.dialect.traits import keeps_shape
from hloforge.dialect.values import Value
from hloforge.pipelines.codegen.passes.other_shapes import elementwise, is_splat, repeated

# Operations that a value is computed by at most.
_MOST = 64


@dataclass
class Without:
    """Values without dimensions along which their elements are equal.

    Attributes:
        left: operations that may still be looked at.
    """

    left: int = _MOST
    found: dict[tuple[SSAValue, frozenset[int]], Value] = field(default_factory=dict)

    def has(self, value: SSAValue, dimensions: Iterable[int]) -> bool:
        """Whether the elements are equal along the dimensions, as far as a few operations tell."""
        op, self.left, rank = defining_op(value), self.left - 1, Value(value).rank
        dims = {d for d in dimensions if Value(value).dims[d] != 1}
        if not dims:
            return True
        if op is None or self.left < 0:
            return False
        if op.name == "stablehlo.constant":
            return is_splat(op)
        if op.name == "stablehlo.iota":
            return integer(op, "iota_dimension") not in dims
        if op.name == "stablehlo.broadcast_in_dim":
            return self.has(op.operands[0], _before(op, dims))
        return keeps_shape(op) and all(Value(one).rank == rank and self.has(one, dims) for one in op.operands)

    def of(self, value: SSAValue, dimensions: Iterable[int]) -> Value:
        """The value without them, at the current insertion point."""
        dims = frozenset(dimensions)
        if not dims:
            return Value(value)
        if (value, dims) not in self.found:
            self.found[value, dims] = self._made(value, dims)
        return self.found[value, dims]

    def _made(self, value: SSAValue, dimensions: frozenset[int]) -> Value:
        op, whole = defining_op(value), Value(value)
        kept = [d for d in range(whole.rank) if d not in dimensions]
        dims = [whole.dims[d] for d in kept]
        if all(whole.dims[d] == 1 for d in dimensions):
            return ops.reshape(whole, dims)
        assert op is not None
        if op.name == "stablehlo.iota":
            return ops.iota(whole.element_type, dims, kept.index(integer(op, "iota_dimension")))
        if op.name == "stablehlo.broadcast_in_dim":
            operand, places = self.of(op.operands[0], _before(op, dimensions)), integers(op, "broadcast_dimensions")
            return ops.broadcast_in_dim(operand, dims, [kept.index(d) for d in places if d in kept])
        if op.name == "stablehlo.constant":
            return repeated(whole, dims)
        return elementwise(op, [self.of(one, dimensions) for one in op.operands], dims)


def _before(op: ir.Operation, dimensions: Collection[int]) -> list[int]:
    """The dimensions of a broadcast's operand that become these ones."""
    return [n for n, d in enumerate(integers(op, "broadcast_dimensions")) if d in dimensions]
