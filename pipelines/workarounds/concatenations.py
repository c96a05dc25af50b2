"""``legalize-concatenations``: separate concatenations that IREE would write into one array for several results.

Before::

    %y = stablehlo.concatenate %a, %b, dim = 0 : tensor<1xui32>, tensor<1xui32>
    %z = stablehlo.concatenate %a, %c, dim = 0 : tensor<1xui32>, tensor<1xui32>

After::

    %y = stablehlo.select (iota < 1), broadcast %a, broadcast %b
    %z = stablehlo.select (iota < 1), broadcast %a, broadcast %c

IREE 3.13 writes one array after the other into an empty one, and makes ``%y`` and ``%z`` share the array that begins
with ``%a``: the later of the two is written in its place. If the host reads what is computed from the later one (a
slice's start), IREE runs it before the earlier one, which then begins with what the later one holds, and gives the
later one a position of its own that nothing is written to: results that differ from call to call. It also finds arrays
equal that no pass of ours does (``%a * 1``), so that types alone tell which concatenations may begin alike.

Where the host waits for what is computed from one of several, each joins what comes from a barrier of its own, which
costs the fusion with what computes the arrays. In programs of static shape, small concatenations become a choice by
position, which also fuses with what is around them: the keys of JAX's random numbers are of this kind. A slice of one
of their arrays is taken from that array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import integer, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.aliasing import waited_for
from hloforge.pipelines.framework import generics
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace

_CONCATENATE, _BARRIER = "stablehlo.concatenate", "stablehlo.optimization_barrier"
_FUNCTION = "func.func"
# The most elements of a result that is always chosen by position, and the most arrays, as each adds work to all
# elements and IREE binds 32 to a dispatch.
_SMALL, _FEW, _MOST = 64, 8, 30


@register
@dataclass(frozen=True)
class LegalizeConcatenations(Pass):
    """Replace small concatenations by selects on the position, and separate those that may begin alike."""

    name: ClassVar[str] = "legalize-concatenations"
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.SAFE_FILLS})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            found = [op for op in operations(module, {_CONCATENATE}) if _joins_static(op)]
            if not found:
                return
            # Beside windows of dynamic size IREE does not compile a choice by position.
            can_choose = all(map(_is_static, operations(module)))
            for op, is_alike in zip(found, _may_begin_alike(found), strict=True):
                if can_choose and _can_spread(op) and (_is_small(op) or (is_alike and _joins_carries(op))):
                    _choose(op)
                elif is_alike:
                    _keep_apart(op)


def _joins_static(op: ir.Operation) -> bool:
    arrays = list(map(Value, op.operands))
    return bool(len(arrays) > 1 and all(array.shape.is_static and array.shape.element_count for array in arrays))


def _is_static(op: ir.Operation) -> bool:
    return all(not isinstance(r.type, ir.RankedTensorType) or r.type.has_static_shape for r in op.results)


def _can_spread(op: ir.Operation) -> bool:
    """Whether IREE can broadcast an element of the arrays: it fills with patterns of at most 64 bits."""
    return bool(Value(op.results[0]).element_type.bits <= 64)


def _is_small(op: ir.Operation) -> bool:
    return len(op.operands) <= _FEW and Value(op.results[0]).shape.element_count <= _SMALL


def _joins_carries(op: Any) -> bool:
    """Whether an array is what a loop carries, of which keep-loop-buffers takes barriers away."""
    is_nested = op.parent.name != _FUNCTION
    return is_nested and len(op.operands) <= _MOST and any(isinstance(value.owner, ir.Block) for value in op.operands)


def _may_begin_alike(found: Sequence[Any]) -> list[bool]:
    """Of each concatenation, whether another one may have an equal array first, and the host waits for one of them."""
    keys = [(op.operands[0].type, op.results[0].type, op.attributes["dimension"]) for op in found]
    counts = Counter(keys)
    waited_at_top = waited_for(_top(found[0])) if len(counts) < len(found) else set()
    # In a loop, an iteration waits for the one before.
    is_waited = [op.parent.name != _FUNCTION or op.operation in waited_at_top for op in found]
    waited = {key for key, waits in zip(keys, is_waited, strict=True) if waits and counts[key] > 1}
    return [key in waited for key in keys]


def _top(op: Any) -> Any:
    """The block of the function that an operation is in."""
    while op.parent.name != _FUNCTION:
        op = op.parent
    return op.operation.block


def _keep_apart(op: AnyOp) -> None:
    """Join arrays that IREE cannot take for another concatenation's: barriers become one if all their arrays are."""
    with ir.InsertionPoint(op), op.location:
        barrier = ir.Operation.create(_BARRIER, results=[v.type for v in op.operands], operands=list(op.operands))
    for number, array in enumerate(barrier.results):
        op.operands[number] = array


def _choose(op: ir.Operation) -> None:
    """Replace a concatenation by a choice, and its slices where they are of one array."""
    for part in [use.owner.operation for use in op.results[0].uses]:
        _take_from_one(part, op)
    with ir.InsertionPoint(op), op.location:
        replace(op, [_chosen(op)])


def _take_from_one(part: Any, op: ir.Operation) -> None:
    """Make what is a slice of one of the arrays alone read that one: JAX's keys are read number by number."""
    if part.name != "stablehlo.slice":
        return
    dimension = integer(op, "dimension")
    starts, limits, strides = (list(part.attributes[name]) for name in ("start_indices", "limit_indices", "strides"))
    before = 0
    for array in map(Value, op.operands):
        end = before + array.dims[dimension]
        if before <= starts[dimension] and limits[dimension] <= end:
            starts[dimension] -= before
            limits[dimension] -= before
            with ir.InsertionPoint(part), part.location:
                replace(part, [ops.slice(array, starts, limits, strides)])
            return
        before = end


def _chosen(op: ir.Operation) -> Value:
    """The result by its positions along the joined dimension."""
    dims, dimension = Value(op.results[0]).dims, integer(op, "dimension")
    along = ops.iota("s32", dims, dimension)
    arrays = list(map(Value, op.operands))
    before = dims[dimension]
    joined: Value | None = None
    for array in reversed(arrays):
        end, before = before, before - array.dims[dimension]
        stretched = _stretched(array, dims, dimension, before)
        joined = stretched if joined is None else ops.select(ops.lt(along, end), stretched, joined)
    assert joined is not None
    return joined


def _stretched(array: Value, dims: Sequence[int], dimension: int, before: int) -> Value:
    """An array that starts at a position of the result, its first and last elements repeated up to the ends."""
    size = array.dims[dimension]
    if size == 1:
        return ops.broadcast_in_dim(array, dims, range(len(dims)))
    source = generics.signless(array.ir)

    def rule(*position: Any) -> Any:
        inside = generics.clamp(0, generics.subtract(position[dimension], before), size - 1)
        return generics.extract(source, [*position[:dimension], inside, *position[dimension + 1 :]])

    made = generics.array_by_index(dims, source.type.element_type, rule)
    return generics.restored(made, ir.RankedTensorType.get(list(dims), array.ir.type.element_type))
