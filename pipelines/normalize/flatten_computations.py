"""``flatten-computations``: computations of reductions, windows, sorts and scatters without branches and loops.

Before::

    %r = stablehlo.reduce(%x init: %zero) ... { %m = "stablehlo.if"(%a > %b) ({ return %a }, { return %b }); return %m }

After::

    %r = stablehlo.reduce(%x init: %zero) ... { return select(%a > %b, %a, %b) }

A branch of scalars computes nothing that costs or has effects, so both are computed. Where a loop is left (``gcd``), or
arrays are, a reduction is a loop over its elements, and one of windows such a reduction of all windows. No other pass
has to know control flow in computations: IREE's compiler crashes on it, and code generation has none for scalars.
Source: StableHLO spec "if", "case": an index out of range takes the last branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.idioms import for_loop
from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import blocks, integers, operations
from hloforge.dialect.regions import ELEMENTWISE, inline_region
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace

_BARRIER = "stablehlo.optimization_barrier"
_CONDITIONALS = frozenset({"stablehlo.if", "stablehlo.case"})
_NAMES = "all_reduce map reduce reduce_scatter reduce_window scatter select_and_scatter sort"
_COMPUTING = frozenset(f"stablehlo.{name}" for name in _NAMES.split())
# Elements of windows for a result: each of them is a slice.
_WIDEST = 256


@register
@dataclass(frozen=True)
class FlattenComputations(Pass):
    """Replace branches in computations by choices, and reductions by loops where theirs stay."""

    name: ClassVar[str] = "flatten-computations"
    needs: ClassVar[frozenset[str]] = _COMPUTING
    requires: ClassVar[Facts] = frozenset({Fact.ONE_FUNCTION})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, _COMPUTING):
                for inner in operations(op, {_BARRIER}):
                    replace(inner, [Value(operand) for operand in inner.operands])
                # Inner conditionals come first, so that they are choices when an outer one is looked at.
                for inner in operations(op, _CONDITIONALS):
                    if all(_is_plain(block) for block in blocks(inner)):
                        _choose(inner)
                if _has_more(op) and op.operands[0].type.has_static_shape:
                    with ir.InsertionPoint(op), op.location:
                        _as_loop(op)


def _has_more(op: ir.Operation) -> bool:
    """Whether a computation has loops or arrays."""
    return any(inner.regions or not all(map(_is_scalar, inner.results)) for inner in operations(op))


def _is_scalar(value: SSAValue) -> bool:
    return isinstance(value.type, ir.RankedTensorType) and value.type.rank == 0


def _is_plain(block: ir.Block) -> bool:
    *body, _ = block.operations
    return all(op.operation.name in ELEMENTWISE and all(map(_is_scalar, op.results)) for op in body)


def _choose(op: ir.Operation) -> None:
    """Both branches of an ``if``, or all of a ``case``, and a selection of their results."""
    with ir.InsertionPoint(op), op.location:
        chosen, *_ = map(Value, op.operands)
        found = [inline_region(region, []) for region in op.regions]
        if op.name == "stablehlo.if":
            results = [ops.select(chosen, yes, no) for yes, no in zip(*found, strict=True)]
        else:
            results = found[-1]
            for number, branch in enumerate(found[:-1]):
                results = [ops.select(chosen.eq(number), one, rest) for one, rest in zip(branch, results, strict=True)]
        replace(op, results)


def _as_loop(op: ir.Operation) -> None:
    count = len(op.results)
    arrays, inits = [Value(one) for one in op.operands[:count]], [Value(one) for one in op.operands[count:]]
    if op.name == "stablehlo.reduce":
        replace(op, _reduced(op.regions[0], arrays, inits, integers(op, "dimensions")))
    elif op.name == "stablehlo.reduce_window" and prod(integers(op, "window_dimensions")) <= _WIDEST:
        windows = [_windows(op, array, init) for array, init in zip(arrays, inits, strict=True)]
        replace(op, _reduced(op.regions[0], windows, inits, [0]))


def _reduced(
    region: ir.Region, arrays: Sequence[Value], inits: Sequence[Value], dimensions: Sequence[int]
) -> list[Value]:
    """A reduction, element by element."""
    kept = [d for d in range(arrays[0].rank) if d not in dimensions]
    sizes = [arrays[0].dims[d] for d in kept]
    depth = prod(arrays[0].dims[d] for d in dimensions)
    flat = [ops.reshape(ops.transpose(a, [*kept, *dimensions]), [prod(a.dims)]) for a in arrays]
    totals = [ops.broadcast_in_dim(init, [prod(sizes)], []) for init in inits]

    def turn(number: Value, *before: Value) -> list[Value]:
        place = number / depth
        scalars = [ops.reshape(ops.dynamic_slice(total, [place], [1]), []) for total in before]
        scalars += [ops.reshape(ops.dynamic_slice(values, [number], [1]), []) for values in flat]
        made = inline_region(region, scalars)
        rows = zip(before, made, strict=True)
        return [ops.dynamic_update_slice(total, ops.reshape(one, [1]), [place]) for total, one in rows]

    if prod(sizes) * depth:
        totals = for_loop(prod(sizes) * depth, totals, turn)
    return [ops.reshape(total, sizes) for total in totals]


def _windows(op: ir.Operation, array: Value, init: Value) -> Value:
    """The elements of all windows, the element's number in its window as the first dimension."""
    rank, sizes = array.rank, integers(op, "window_dimensions")
    strides, holes, spread = (
        integers(op, name) or [1] * rank for name in ("window_strides", "base_dilations", "window_dilations")
    )
    padding = integers(op, "padding") or [0] * (2 * rank)
    around = [(padding[2 * d], padding[2 * d + 1], holes[d] - 1) for d in range(rank)]
    padded = ops.pad(array, init, around)
    made = Value(op.results[0]).dims
    if not prod(made):
        return ops.broadcast_in_dim(init, [prod(sizes), *made], [])
    parts = []
    for place in product(*map(range, sizes)):
        starts = [n * step for n, step in zip(place, spread, strict=True)]
        ends = [start + (count - 1) * step + 1 for start, count, step in zip(starts, made, strides, strict=True)]
        parts.append(ops.reshape(ops.slice(padded, starts, ends, strides), [1, *made]))
    return ops.concat_in_dim(parts, 0)
