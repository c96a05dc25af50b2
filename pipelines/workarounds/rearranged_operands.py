"""``legalize-rearranged-operands``: compute functions of one array before it is reshaped or transposed.

Before::

    %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %r = stablehlo.sqrt %t : tensor<4x4xf32>

After::

    %s = stablehlo.sqrt %x : tensor<4x4xf32>
    %r = stablehlo.transpose %s, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>

IREE 3.13 does so itself where the rearranged array has one reader (StableHLO's ``ReorderElementwiseAndShapeOp``), also
while it converts a program to linalg, where such an array may be down to its last reader. There it mixes up the types
before and after: arrays of other sizes end the compilation ("failed to legalize operation 'stablehlo.log'", as for a
softmax of bfloat16 beside its logarithm), and square ones lose their transposition, which is silently wrong.

In loops and branches as well: of ``negate`` and ``abs`` of a transposed carry, one was left out, silently.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.traits import UNARY
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register

_REARRANGING = ("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose")
# Functions of one array that keep its shape.
_FUNCTIONS = tuple(sorted(UNARY - {"stablehlo.bitcast_convert"}))


@register
@dataclass(frozen=True)
class LegalizeRearrangedOperands(Pass):
    """Move reshapes and transpositions after unary elementwise functions, a chain of functions at a time."""

    name: ClassVar[str] = "legalize-rearranged-operands"
    breaks: ClassVar[Facts] = REWRITES | {Fact.SEPARATE_PADS}

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, _FUNCTIONS):
                moved: Any = op
                while moved is not None and (source := _rearranging(moved)) is not None:
                    moved = _exchange(moved, source)


def _rearranging(op: ir.Operation) -> ir.Operation | None:
    """What rearranges an operand of a function; None for whatever else it is, and an argument.

    A broadcast to more elements stays where it is, unless what it spreads is itself rearranged: IREE computes the
    function ahead of both.
    """
    source = op.operands[0].owner
    if isinstance(source, ir.Block) or source.name not in _REARRANGING:
        return None
    inner = source.operation.operands[0].owner
    spreads = source.name == "stablehlo.broadcast_in_dim" and not isinstance(inner, ir.Block)
    is_inner = spreads and inner.name in _REARRANGING and _is_rearranged(inner.operation)
    return source.operation if _is_rearranged(source.operation) or is_inner else None


def _is_rearranged(op: ir.Operation) -> bool:
    """Whether a result has each element of the operand once, as also of a broadcast along dimensions of size 1."""
    before, after = op.operands[0].type, op.results[0].type
    is_static: bool = before.has_static_shape and after.has_static_shape
    return is_static and prod(before.shape) == prod(after.shape)


def _exchange(op: ir.Operation, rearranging: ir.Operation) -> ir.Operation:
    """Replace a function of a rearranged array by the rearranged function of it, and return that function."""
    before, after = rearranging.operands[0], op.results[0].type
    type_ = ir.RankedTensorType.get(before.type.shape, after.element_type)
    with ir.InsertionPoint(op), op.location:
        computed = ir.Operation.create(op.name, [type_], [before], _attributes(op))
        moved = ir.Operation.create(rearranging.name, [after], [computed.result], _attributes(rearranging))
    op.results[0].replace_all_uses_with(moved.result)
    op.erase()
    return computed


def _attributes(op: ir.Operation) -> dict[str, Any]:
    return {name: op.attributes[name] for name in op.attributes}
