"""``slice-operands``: move slices before elementwise operations.

Before::

    %gates = stablehlo.add %product, (broadcast_in_dim %bias) : tensor<8x512xf32>
    %i = stablehlo.slice %gates [0:8, 0:128]
    %f = stablehlo.slice %gates [0:8, 128:256]

After, if slices are all that reads ``%gates``, and they overlap nowhere::

    %i = stablehlo.add (slice %product [0:8, 0:128]), (broadcast_in_dim (slice %bias [0:128]))
    %f = ...

IREE 3.13 makes a dispatch of the whole array, and another one of what its parts are used for: the gates of an LSTM are
one dispatch so. Runs after the passes that compute in a product what follows it number by number.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import AnyOp, SSAValue, in_context, ir
from hloforge.dialect.operations import integers, operations
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import CPU, Pass, register
from hloforge.pipelines.framework.patterns import NoMatch, Replacement, apply_patterns, pattern
from hloforge.pipelines.workarounds.sliced_operands import narrow_part

_SLICE, _SPREAD = "stablehlo.slice", "stablehlo.broadcast_in_dim"
# Slices of one array: of many, each a part of the code, IREE's compiler takes its time.
_MOST = 8


@pattern(_SLICE)
def of_operands(op: ir.Operation) -> Replacement:
    """slice (f x y) -> f (slice x) (slice y)."""
    made = op.operands[0].owner
    if isinstance(made, ir.Block) or len(made.operation.results) != 1 or not _are_apart(op.operands[0]):
        return NoMatch("it is no part of what only such parts are read of")
    made = made.operation
    if made.name == _SPREAD:
        return _of_broadcast(op, made)
    if made.name not in ELEMENTWISE or made.name == "stablehlo.constant":
        return NoMatch("it is no part of what is computed element by element")
    result = op.results[0].type
    if any(list(operand.type.shape) != list(op.operands[0].type.shape) for operand in made.operands):
        return NoMatch("an operand has another shape")
    parts = [_part(Value(operand), *_bounds(op)) for operand in made.operands]
    return emit(made.name, parts, result, **{name: made.attributes[name] for name in made.attributes})


def _of_broadcast(op: AnyOp, spread: Any) -> Value:
    """A part of an array's repetition, from the part of it that is repeated there."""
    source, places = Value(spread.operands[0]), integers(spread, "broadcast_dimensions")
    bounds = []
    for numbers, one in zip(_bounds(op), (0, 1, 1), strict=True):
        bounds.append([one if source.dims[d] == 1 else numbers[at] for d, at in enumerate(places)])
    return ops.broadcast_in_dim(_part(source, *bounds), Value(op.results[0]).dims, places)


def _part(value: Value, starts: list[int], limits: list[int], steps: list[int]) -> Value:
    return ops.slice(value, starts, limits, steps)


def _are_apart(value: SSAValue) -> bool:
    """Whether slices are all that reads a value, and no two of them an element."""
    readers = [use.owner.operation for use in value.uses]
    if not value.type.has_static_shape or len(readers) > _MOST or any(op.name != _SLICE for op in readers):
        return False
    return all(_is_disjoint(_bounds(one), _bounds(other)) for one, other in combinations(readers, 2))


def _is_disjoint(one: tuple[list[int], ...], other: tuple[list[int], ...]) -> bool:
    return any(a >= d or c >= b for a, b, c, d in zip(one[0], one[1], other[0], other[1], strict=True))


def _bounds(op: AnyOp) -> tuple[list[int], list[int], list[int]]:
    return integers(op, "start_indices"), integers(op, "limit_indices"), integers(op, "strides")


@register
@dataclass(frozen=True)
class SliceOperands(Pass):
    """Move slices before elementwise operations whose readers all slice."""

    name: ClassVar[str] = "slice-operands"
    targets: ClassVar[frozenset[str]] = CPU
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SAFE_FILLS})

    def run(self, module: ir.Module) -> None:
        while apply_patterns(module, (*of_operands, *narrow_part)).rewritten:
            # What nobody reads any more counts as a reader of its operands.
            with in_context(module):
                for op in reversed(operations(module, [*ELEMENTWISE, _SPREAD])):
                    if not any(True for result in op.results for _ in result.uses):
                        op.erase()
