"""``hoist-products``: loop-invariant code motion for matrix products.

Before::

    %last:2 = stablehlo.while(%i = %zero, %v = %x, %w = %kernel) cond {...} do {
      %p = dot_general %w, %image ...       // %w comes back unchanged, %image is from outside
      ... }

After::

    %p = dot_general %kernel, %image ...
    %last:2 = stablehlo.while(...) cond {...} do { ... }

Other operations stay: a broadcast or a conversion costs less where it is used than a read of its result from memory.
A loop of no iterations computes its products in vain. Source: XLA's WhileLoopInvariantCodeMotion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.passes import CPU, Pass, register

_PRODUCTS = frozenset({"stablehlo.convolution", "stablehlo.dot_general"})
# Operations that may give another result, or do something, each time.
_KEPT = frozenset(f"stablehlo.{name}" for name in ("custom_call", "optimization_barrier", "rng", "rng_bit_generator"))


@register
@dataclass(frozen=True)
class HoistProducts(Pass):
    """Loop-invariant code motion: move invariant products and their operands out of loops, inner loops first."""

    name: ClassVar[str] = "hoist-products"
    targets: ClassVar[frozenset[str]] = CPU

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for loop in operations(module, ["stablehlo.while"]):
                for op in list(loop.regions[1].blocks[0].operations):
                    if op.operation.name in _PRODUCTS:
                        _hoist(op.operation, loop)


def _hoist(product: Any, loop: Any) -> None:
    body = loop.regions[1].blocks[0]
    moved = _invariant(product, loop, body, [])
    if moved is None:
        return
    outside: dict[Any, Any] = {}
    with ir.InsertionPoint(loop), product.location:
        for op in moved:
            copy = op.clone()
            for number, operand in enumerate(op.operands):
                copy.operation.operands[number] = outside.get(operand, _before(operand, loop, body))
            outside |= dict(zip(op.results, copy.operation.results, strict=True))
    product.results[0].replace_all_uses_with(outside[product.results[0]])
    product.erase()


def _invariant(op: AnyOp, loop: Any, body: Any, found: list[Any]) -> list[Any] | None:
    """The operations of the body that ``op`` is computed from, itself last; None if they differ between iterations."""
    if op in found:
        return found
    if op.regions or op.name in _KEPT or not op.name.startswith("stablehlo."):
        return None
    for operand in op.operands:
        owner = operand.owner
        if isinstance(owner, ir.Block):
            if owner == body and not _returns_unchanged(operand, body):
                return None
        elif owner.operation.block == body and _invariant(owner.operation, loop, body, found) is None:
            return None
    found.append(op)
    return found


def _returns_unchanged(carry: Any, body: Any) -> bool:
    returned: Sequence[Any] = list(body.operations)[-1].operation.operands
    return bool(returned[carry.arg_number] == carry)


def _before(operand: Any, loop: Any, body: Any) -> Any:
    """What an operand is before the loop: of a carry, its first value."""
    is_carry = isinstance(operand.owner, ir.Block) and operand.owner == body
    return loop.operands[operand.arg_number] if is_carry else operand
