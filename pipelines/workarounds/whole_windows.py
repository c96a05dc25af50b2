"""``legalize-whole-windows``: the only window over an array is a reduction of the array.

Before::

    %w = "stablehlo.reduce_window"(%x, %zero) ({ add }) {window [2, 2, 2]} : (tensor<2x2x2xf32>, ... -> ...

After::

    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : ... -> tensor<f32>
    %w = stablehlo.reshape %s : (tensor<f32>) -> tensor<1x1x1xf32>

For Vulkan, IREE 3.13 has no code for some that are as long as three dimensions: it keeps the window's one number in the
memory that a workgroup shares, and copies it ("failed to legalize operation 'memref.copy'"). For CUDA it reduces into
the memory of the initial value, which has one element as well: two windows that begin with one value, whose barriers
(``legalize-initial-values``) are of one memory, overwrite what the other one reads. A reduction's initial value is
repeated in its dispatch. What the window pads, and what it skips, is padded and cut before. Source: XLA "ReduceWindow".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, ir
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static, numbers_of
from hloforge.pipelines.framework.passes import CUDA, VULKAN, PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


def is_only_window(op: AnyOp) -> bool:
    """A ``reduce_window`` of static shape that reduces several elements to one in all."""
    places = prod(op.results[0].type.shape) if is_static(op) else 0
    return places == 1 < prod(integers(op, "window_dimensions")) and 0 not in op.operands[0].type.shape


@pattern("stablehlo.reduce_window")
def as_reduction(op: ir.Operation) -> Replacement:
    """reduce_window -> reshape (reduce (slice (pad x)))."""
    if not is_only_window(op):
        return NoMatch("it has several places, or nothing to reduce")
    count, rank = len(op.results), Value(op.operands[0]).rank
    arrays, inits = (list(map(Value, part)) for part in (list(op.operands)[:count], list(op.operands)[count:]))
    edges = numbers_of(op, "padding") or [0] * (2 * rank)
    between = [step - 1 for step in integers(op, "base_dilations") or [1] * rank]
    padding = [*zip(edges[::2], edges[1::2], between, strict=True)]
    windows, steps = integers(op, "window_dimensions"), integers(op, "window_dilations") or [1] * rank
    limits = [(size - 1) * step + 1 for size, step in zip(windows, steps, strict=True)]
    read = []
    for array, init in zip(arrays, inits, strict=True):
        padded = ops.pad(array, init, padding) if any(map(any, padding)) else array
        whole = padded.dims == tuple(windows)
        read.append(padded if whole else ops.slice(padded, [0] * rank, limits, steps))
    made = ir.Operation.create(
        "stablehlo.reduce",
        results=[init.ir.type for init in inits],
        operands=[value.ir for value in (*read, *inits)],
        attributes={"dimensions": ir.DenseI64ArrayAttr.get(list(range(rank)))},
        regions=1,
    )
    op.regions[0].blocks[0].append_to(made.regions[0])
    return [Value(result).reshape(*[1] * rank) for result in made.results]


@register
@dataclass(frozen=True)
class LegalizeWholeWindows(PatternPass):
    """Reduce the elements of the only window over an array."""

    name: ClassVar[str] = "legalize-whole-windows"
    targets: ClassVar[frozenset[str]] = VULKAN | CUDA
    patterns: ClassVar[tuple[Pattern, ...]] = as_reduction
