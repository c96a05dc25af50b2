"""``lower-collectives``: collectives of a program that several threads or processes run, as calls of their host.

Before, in a module whose ``hloforge.grid`` is ``array<i64: 2, 1>``::

    %s = "stablehlo.all_reduce"(%x) ({ add }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}

After::

    %x0, %x1, %known = stablehlo.custom_call @hloforge.gather(%x) {backend_config = {groups = [[0, 1]], ...}}
    %s = stablehlo.map(%x0, %x1) ({ add })

``hloforge.gather`` brings the operands of all members of the caller's group, and ``hloforge.move`` those of one other
device, or zeros; what is computed of them, the program computes, so that any computation of any element type is right.
Collectives of large arrays are ``hloforge.combine``, in parts (``in_parts.py``). Groups are lists of devices here; the
grid they are for is part of the call, and is compared with the one that runs.

A program of one device is left to ``decompose-single-replica``. Source: XLA "AllReduce", "AllGather", "AllToAll",
"ReduceScatter", "CollectivePermute", "CollectiveBroadcast", "ReplicaId".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

from hloforge.dialect.emission import create, flag, i32, i64, i64_matrix, text
from hloforge.dialect.host_calls import TYPED_FFI
from hloforge.dialect.marks import COMBINE, GATHER, MOVE
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.replicas.combine import COLLECTIVES, PERMUTE, REDUCING, check_size, combined, share, terms
from hloforge.pipelines.replicas.grid import Grid, channel_of, grid_of, groups_of, sources_of
from hloforge.pipelines.replicas.in_parts import in_parts, is_large, row_types
from hloforge.pipelines.replicas.names import NOBODY, NUMBERS


@register
@dataclass(frozen=True)
class LowerCollectives(Pass):
    """Replace collectives and device ids of a program for several devices by host calls.

    Raises (on run):
        UnsupportedError: groups do not fit the grid of the module.
    """

    name: ClassVar[str] = "lower-collectives"
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.HOST_CALLS})

    def run(self, module: ir.Module) -> None:
        grid = grid_of(module)
        if grid.devices == 1:
            return
        with in_context(module):
            numbers = count()
            for op in operations(module, {*COLLECTIVES, *NUMBERS}):
                with ir.InsertionPoint(op), op.location:
                    replace(op, _lowered(op, grid, numbers))


def _lowered(op: AnyOp, grid: Grid, numbers: count[int]) -> list[Value]:
    if op.name in NUMBERS:
        return host_call(NUMBERS[op.name], [], [op.results[0].type], effects=False, **described(op, grid))
    what = {**described(op, grid), "number": i64(next(numbers))}
    operands = terms(op)
    if op.name == PERMUTE:
        return _moved(operands, sources_of(op, grid), grid, what)
    groups = groups_of(op, grid)
    if op.name == "stablehlo.collective_broadcast":
        return _moved(operands, {device: group[0] for group in groups for device in group}, grid, what)
    members = {len(group) for group in groups}
    if is_large(op) and len(members) == 1 and members != {1}:
        return _combined(op, operands, groups, what)
    return _gathered(op, operands, groups, what)


def _moved(operands: Sequence[Value], sources: dict[int, int], grid: Grid, what: dict[str, Any]) -> list[Value]:
    rows = [sources.get(device, NOBODY) for device in range(grid.devices)]
    return host_call(MOVE, operands, [value.type for value in operands], **what, sources=i64_matrix([rows], len(rows)))


def _gathered(
    op: AnyOp, operands: Sequence[Value], groups: Sequence[Sequence[int]], what: dict[str, Any]
) -> list[Value]:
    width, least = max(map(len, groups)), min(map(len, groups))
    # After the members' arrays: the caller's position in its group, and how many members that has.
    counts = ir.RankedTensorType.get([2], ir.IntegerType.get_signless(32))
    types = [*(value.type for value in operands for _ in range(width)), counts]
    *results, known = host_call(GATHER, operands, types, **what, groups=i64_matrix(groups, width))
    columns = [results[start : start + width] for start in range(0, len(results), width)]
    members = [list(member) for member in zip(*columns, strict=True)]
    ragged = (least, known[1]) if width > least and op.name in REDUCING else None
    return share(op, combined(op, members, ragged), known[0])


def _combined(
    op: AnyOp, operands: Sequence[Value], groups: Sequence[Sequence[int]], what: dict[str, Any]
) -> list[Value]:
    members = len(groups[0])
    check_size(op, members)

    def call(kind: str, arrays: Sequence[Value], sizes: Sequence[Sequence[int]], computation: str) -> list[Value]:
        attributes = {**what, "kind": text(kind), "computation": text(computation)}
        return host_call(COMBINE, arrays, row_types(arrays, sizes), **attributes, groups=i64_matrix(groups, members))

    return in_parts(op, operands, members, call)


def described(op: AnyOp, grid: Grid) -> dict[str, Any]:
    """What every call says, for checks and for messages."""
    location = str(op.location)
    return {
        "operation": text(op.name.removeprefix("stablehlo.")),
        "channel": i64(channel_of(op)),
        "grid": i64_matrix([[grid.replicas, grid.partitions]], 2),
        "at": text("" if location == "loc(unknown)" else location.removeprefix("loc(").removesuffix(")")),
    }


def host_call(
    target: str, operands: Sequence[Value], types: Sequence[Any], *, effects: bool = True, **attributes: Any
) -> list[Value]:
    """A call of one of hloforge's own functions of the host at the insertion point; attributes are MLIR's."""
    op = create(
        "stablehlo.custom_call",
        operands,
        types,
        0,
        call_target_name=text(target),
        api_version=i32(TYPED_FFI),
        backend_config=ir.DictAttr.get(attributes),
        has_side_effect=flag(effects),
    )
    return [Value(result) for result in op.results]
