"""``legalize-paddings``: paddings that cut nothing off, and stand apart from other paddings with steps.

Before::

    %c = stablehlo.pad %x, %z, low = [-1], high = [2], interior = [0] : (tensor<4xf32>, ... -> tensor<5xf32>
    %p = stablehlo.pad %y, %z, low = [0], high = [0], interior = [1] : ... -> tensor<31xf32>
    %r = stablehlo.pad %p, %z, low = [0], high = [1], interior = [0] : ... -> tensor<32xf32>

After::

    %s = stablehlo.slice %x [1:4] : (tensor<4xf32>) -> tensor<3xf32>
    %c = stablehlo.pad %s, %z, low = [0], high = [2], interior = [0] : (tensor<3xf32>, ... -> tensor<5xf32>
    %b = stablehlo.optimization_barrier %p : tensor<31xf32>
    %r = stablehlo.pad %b, %z, low = [0], high = [1], interior = [0] : ... -> tensor<32xf32>

IREE 3.13 makes one padding of two with the same value and forgets the steps of the first one
(``FoldSuccessiveTensorInsertSliceOps`` checks the steps of the second one twice): silently, the elements stand side by
side. It makes paddings of windows with edges, too. Of a scatter's result it has no code for the padding ("write
affecting operations on global resources are restricted to workgroup distributed contexts").

A negative padding it takes for a padding and a slice afterwards, which computes what is cut off, and it has no code for
some where nothing of the array is left ("failed to translate the MLIR LLVM dialect"). Source: StableHLO spec "pad".

For Vulkan it has no code that writes a computed row with steps, of which the rest is padding ("unresolved
materialization" from ``memref<16xi64>`` to ``memref<8x2xi64>``): the even and odd elements that an associative scan
joins, where one of them is computed. Windows over a row with dilations are such paddings. There the row is in memory
before it is padded::

    %m = stablehlo.minimum %x, %y : tensor<8x1xi64>
    %b = stablehlo.optimization_barrier %m : tensor<8x1xi64>
    %p = stablehlo.pad %b, %z, low = [0, 1], high = [0, 0], interior = [0, 1] : ... -> tensor<8x2xi64>

It stands after every pass that moves rearrangements or splits complex numbers, too: they bring two paddings together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import integers, is_made_by
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.analysis.origins import PADDING, cuts, padded_in_steps, steps_between
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Replacement, apply_patterns, pattern


@pattern("stablehlo.pad")
def cut_before(op: ir.Operation) -> Replacement:
    """pad x with negative edges -> pad (slice x); the value alone where nothing of ``x`` is left."""
    x, value = Value(op.operands[0]), Value(op.operands[1])
    if not is_static(op) or not cuts(op):
        return NoMatch("it cuts nothing off")
    dims = list(op.results[0].type.shape)
    edges: list[tuple[int, int, int]] = []
    starts, ends = [], []
    for size, made, low, between in zip(
        x.dims, dims, integers(op, "edge_padding_low"), integers(op, "interior_padding"), strict=True
    ):
        step = between + 1
        start = max(0, -(low // step))
        end = min(size, (made - 1 - low) // step + 1)
        if start >= end:
            return ops.broadcast(value, dims)
        first = low + start * step
        starts.append(start)
        ends.append(end)
        edges.append((first, made - 1 - first - (end - 1 - start) * step, between))
    return ops.pad(ops.slice(x, starts, ends), value, edges)


@pattern(*PADDING)
def padded_after_a_barrier(op: ir.Operation) -> Replacement:
    """Pad what was scattered into, or padded with steps, after a barrier."""
    found = padded_in_steps(op)
    if not found:
        return NoMatch("it pads what was neither scattered into nor padded")
    for number in found:
        op.operands[number] = ops.optimization_barrier(Value(op.operands[number])).ir
    return REWRITTEN


@pattern("stablehlo.pad", "stablehlo.reduce_window")
def row_in_memory(op: ir.Operation) -> Replacement:
    """Write the elements of a row with steps after a barrier: not while they are computed."""
    row = Value(op.operands[0])
    if not is_static(op) or not steps_between(op) or sum(size > 1 for size in row.dims) != 1:
        return NoMatch("it writes no row with steps")
    read = range(1 if op.name == "stablehlo.pad" else len(op.results))
    computed = [n for n in read if not _is_in_memory(op.operands[n])]
    if not computed:
        return NoMatch("its rows are in memory")
    for number in computed:
        op.operands[number] = ops.optimization_barrier(Value(op.operands[number])).ir
    return REWRITTEN


def _is_in_memory(value: SSAValue) -> bool:
    return isinstance(value.owner, ir.Block) or is_made_by(value, "stablehlo.optimization_barrier")


@register
@dataclass(frozen=True)
class LegalizePaddings(Pass):
    """Slice before paddings, and put barriers between paddings and the scatters or paddings that they read.

    Attributes:
        for_vulkan: have rows that are written with steps in memory before.
    """

    name: ClassVar[str] = "legalize-paddings"
    for_vulkan: bool = False
    establishes: ClassVar[Facts] = frozenset({Fact.SEPARATE_PADS})

    def run(self, module: ir.Module) -> None:
        apply_patterns(module, cut_before)
        apply_patterns(module, padded_after_a_barrier)
        if self.for_vulkan:
            apply_patterns(module, row_in_memory)
