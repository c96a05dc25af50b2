"""``legalize-single-windows``: a scatter of one window that lies in the array is an update of that part.

Before, ``x.at[:, 1:].add(y)`` of JAX::

    %r = stablehlo.scatter(%x, %one, %y) ({ add }) : (tensor<8x9xf32>, tensor<1xi32>, tensor<8x8xf32>)

After::

    %old = stablehlo.slice %x [0:8, 1:9] : (tensor<8x9xf32>) -> tensor<8x8xf32>
    %new = stablehlo.add %old, %y : tensor<8x8xf32>
    %r   = stablehlo.dynamic_update_slice %x, %new, %zero, %one : tensor<8x9xf32>

A window whose place is not known, but within bounds that keep it inside, is read by a dynamic slice. The update is
elementwise then: what it is computed of has no memory, and a loop's carry is changed where it is. A window that may lie
outside stays a scatter, because a slice would move it. Source: StableHLO spec "scatter".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.mlir import ir
from hloforge.dialect.regions import is_elementwise, vectorize_region
from hloforge.dialect.values import Value
from hloforge.pipelines.codegen.passes.integer_factors import known_array
from hloforge.pipelines.decompose.scatter_windows import Windows
from hloforge.pipelines.evaluation.known import KnownValues
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# Components of index vectors that are looked into.
_MOST = 64


@pattern("stablehlo.scatter")
def of_one_window(op: ir.Operation) -> Replacement:
    """Slice, compute, and put back."""
    windows = Windows.of(op)
    if not windows.is_static or windows.count != 1 or not is_elementwise(op.regions[0]):
        return NoMatch("several windows, of unknown size, or its computation is not one of single operations")
    if 0 in windows.window or 0 in windows.dims:
        return NoMatch("of no element")
    starts = _known(windows) or _dynamic(windows)
    if starts is None:
        return NoMatch("its window may lie outside")
    updates = [ops.reshape(update, list(windows.window)) for update in windows.updates]
    old = [_part(operand, starts, windows.window) for operand in windows.operands]
    new = vectorize_region(op.regions[0], [*old, *updates])
    return [
        ops.dynamic_update_slice(operand, part, [_scalar(start) for start in starts])
        for operand, part in zip(windows.operands, new, strict=True)
    ]


def _known(windows: Windows) -> list[int] | None:
    """Where the window begins in each dimension, if the program states it and the window lies inside."""
    array = known_array(windows.indices.ir, KnownValues(_MOST))
    if array is None:
        return None
    starts = [0] * len(windows.dims)
    for d, start in zip(windows.scattered, array.reshape(-1).tolist(), strict=True):
        starts[d] = int(start)
    rooms = [size - part for size, part in zip(windows.dims, windows.window, strict=True)]
    is_inside = all(0 <= start <= room for start, room in zip(starts, rooms, strict=True))
    return starts if is_inside else None


def _dynamic(windows: Windows) -> list[Value] | None:
    """The same by values; None unless bounds of these keep the window inside."""
    if windows.uncertain():
        return None
    known = {d: ops.reshape(start, []) for d, start in windows.starts().items()}
    zero = constant(0, next(iter(known.values())).element_type if known else "s32")
    return [known.get(d, zero) for d in range(len(windows.dims))]


def _part(operand: Value, starts: Sequence[int] | Sequence[Value], window: Sequence[int]) -> Value:
    places = [start for start in starts if isinstance(start, int)]
    if len(places) == len(window):
        limits = [start + size for start, size in zip(places, window, strict=True)]
        return ops.slice(operand, places, limits, [1] * len(window))
    return ops.dynamic_slice(operand, [_scalar(start) for start in starts], window)


def _scalar(start: int | Value) -> Value:
    return start if isinstance(start, Value) else constant(start, "s32")


@register
@dataclass(frozen=True)
class LegalizeSingleWindows(PatternPass):
    """Scatters of one window are elementwise updates."""

    name: ClassVar[str] = "legalize-single-windows"
    requires: ClassVar[Facts] = NORMALIZED
    patterns: ClassVar[tuple[Pattern, ...]] = of_one_window
