"""``merge-induction-variables``: merge induction variables that always have the same value.

Before::

    %last:3 = stablehlo.while(%i = %zero, %j = %zero, %x = ...) cond { %i < %n & %j < %n } do {
      ... return %i + 1, %j + 1, ... }

After, where ``%j`` is left unread::

    %last:3 = stablehlo.while(%i = %zero, %j = %zero, %x = ...) cond { %i < %n } do { ... return %i + 1, %i + 1, ... }

TensorFlow counts the iterations of its loops beside the program's own counter. IREE 3.13 makes a loop of the host of
one that ends by one counter; for a condition on two it computes both on the device, and the host waits for them in each
iteration. ``legalize-loop-carries`` drops what is left unread.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

from hloforge.dialect.mlir import AnyOp, SSAValue, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.pipelines.framework.passes import CPU, Pass, register

# What a counter's next value may be computed by; and how many operations, one of another's result, are looked through.
_STEPS = frozenset(f"stablehlo.{name}" for name in ("add", "subtract", "constant", "convert", "reshape"))
_DEEPEST = 4


@register
@dataclass(frozen=True)
class MergeInductionVariables(Pass):
    """Merge induction variables that begin alike and change alike."""

    name: ClassVar[str] = "merge-induction-variables"
    targets: ClassVar[frozenset[str]] = CPU

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for loop in operations(module, ["stablehlo.while"]):
                _merge(loop)


def _merge(loop: ir.Operation) -> None:
    condition, body = (region.blocks[0] for region in loop.regions)
    end = list(body.operations)[-1].operation
    numbers = [i for i, value in enumerate(loop.operands) if _is_number(value)]
    for first, second in combinations(numbers, 2):
        pair = body.arguments[first], body.arguments[second]
        if not _is_alike(loop.operands[first], loop.operands[second], None):
            continue
        if not _is_alike(end.operands[first], end.operands[second], pair):
            continue
        loop.results[second].replace_all_uses_with(loop.results[first])
        for block in (condition, body):
            block.arguments[second].replace_all_uses_with(block.arguments[first])
    _join_equal_flags(condition)


def _is_number(value: SSAValue) -> bool:
    type_ = value.type
    return isinstance(type_, ir.RankedTensorType) and not type_.rank and isinstance(type_.element_type, ir.IntegerType)


def _is_alike(one: Any, other: Any, pair: tuple[Any, Any] | None, depth: int = 0) -> bool:
    """Whether two values are equal where those of ``pair`` are."""
    if one == other:
        return True
    if pair is not None and (one, other) == pair:
        return True
    if isinstance(one.owner, ir.Block) or isinstance(other.owner, ir.Block) or depth == _DEEPEST:
        return False
    a, b = one.owner.operation, other.owner.operation
    if a.name != b.name or a.name not in _STEPS or one.type != other.type or _attributes(a) != _attributes(b):
        return False
    return all(_is_alike(x, y, pair, depth + 1) for x, y in zip(a.operands, b.operands, strict=True))


def _join_equal_flags(condition: ir.Block) -> None:
    """``a & a`` is ``a``, by which IREE finds the loop's count."""
    for op in list(condition.operations):
        if op.operation.name == "stablehlo.and":
            one, other = op.operation.operands
            if one == other or _compares_alike(one, other):
                op.operation.results[0].replace_all_uses_with(one)
                op.operation.erase()


def _compares_alike(one: Any, other: Any) -> bool:
    if isinstance(one.owner, ir.Block) or isinstance(other.owner, ir.Block):
        return False
    a, b = one.owner.operation, other.owner.operation
    if a.name != "stablehlo.compare" or b.name != a.name or _attributes(a) != _attributes(b):
        return False
    return all(_is_alike(x, y, None) for x, y in zip(a.operands, b.operands, strict=True))


def _attributes(op: AnyOp) -> dict[str, Any]:
    return {name: op.attributes[name] for name in op.attributes}
