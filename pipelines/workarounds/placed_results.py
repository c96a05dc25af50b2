"""``legalize-placed-results``: what is computed for a part of another array is in memory before, if it begins unevenly.

Before::

    %y = stablehlo.add %x, %x : tensor<1024xi32>
    %r = stablehlo.dynamic_update_slice %a, %y, %seven : (tensor<2000xi32>, tensor<1024xi32>, tensor<i32>) -> ...

After::

    %b = stablehlo.optimization_barrier %y : tensor<1024xi32>
    %r = stablehlo.dynamic_update_slice %a, %b, %seven

IREE 3.13 lets a dispatch write its result where it belongs in an array that is made of parts: in a padded array, among
what is concatenated, in what a slice updates. For Vulkan it then writes vectors of 16 bytes, and takes the first byte
for a multiple of 16, which it rounds down to (``SPIRVVectorizeLoadStore``): silently, everything lay up to three
numbers too early. ``cumsum`` of 384 flags is the sum of padded arrays, and was wrong, as was ``jnp.nonzero``. It has no
code where the array is read as numbers, too ("unresolved materialization" from ``memref<256xvector<4xi32>>``).

Parts that are not neighbours in memory, such as columns, are copied by another dispatch. Sources: XLA "Pad",
"ConcatInDim", "DynamicUpdateSlice".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, SSAValue, ir
from hloforge.dialect.operations import integer, integers, is_made_by
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.passes import VULKAN, PatternPass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.workarounds.constant_folds import number_of

# Bytes of a vector.
_EVEN = 16


@pattern("stablehlo.pad", "stablehlo.concatenate", "stablehlo.dynamic_update_slice")
def placed_from_memory(op: ir.Operation) -> Replacement:
    """Read the parts that begin unevenly after a barrier."""
    uneven = [number for number, start in _starts(op).items() if _is_uneven(op, number, start)]
    if not uneven:
        return NoMatch("its parts are in memory, or begin with a vector")
    for number in uneven:
        op.operands[number] = ops.optimization_barrier(Value(op.operands[number])).ir
    return REWRITTEN


def _starts(op: AnyOp) -> dict[int, list[int | None]]:
    """The operands that are parts of the result, and where they begin; None where a call decides that."""
    rank = len(op.results[0].type.shape)
    if op.name == "stablehlo.pad":
        return {0: [*integers(op, "edge_padding_low")]}
    if op.name == "stablehlo.concatenate":
        along = integer(op, "dimension")
        sizes = [operand.type.shape[along] for operand in op.operands]
        return {n: [sum(sizes[:n]) if d == along else 0 for d in range(rank)] for n in range(len(sizes))}
    numbers = [number_of(index) for index in list(op.operands)[2:]]
    return {1: [None if number is None else int(number) for number in numbers]}


def _is_uneven(op: AnyOp, number: int, starts: list[int | None]) -> bool:
    """Whether a computed part lies in one piece that may not begin at a multiple of 16 bytes; any of unknown sizes."""
    part = op.operands[number]
    if _is_in_memory(part) or not is_static(op):
        return not _is_in_memory(part)
    whole, dims = op.results[0].type.shape, part.type.shape
    cut = next((d for d, size in enumerate(whole) if size != 1 and dims[d] != 1), len(whole))
    if list(dims[cut + 1 :]) != list(whole[cut + 1 :]):
        return False
    width = max(1, Value(part).element_type.bits // 8)
    steps = [prod(whole[d + 1 :]) * width for d in range(len(whole))]
    return any(
        size > 1 and step % _EVEN and (start is None or start * step % _EVEN)
        for size, step, start in zip(whole, steps, starts, strict=True)
    )


def _is_in_memory(value: SSAValue) -> bool:
    return isinstance(value.owner, ir.Block) or any(
        is_made_by(value, name) for name in ("stablehlo.optimization_barrier", "stablehlo.constant", "stablehlo.while")
    )


@register
@dataclass(frozen=True)
class LegalizePlacedResults(PatternPass):
    """Put barriers between what is computed and the arrays of which it becomes a part."""

    name: ClassVar[str] = "legalize-placed-results"
    targets: ClassVar[frozenset[str]] = VULKAN
    patterns: ClassVar[tuple[Pattern, ...]] = placed_from_memory
