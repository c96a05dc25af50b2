"""``lower-to-channels``: collectives of a target whose devices IREE itself connects (CUDA: NCCL), in IREE's one form.

Before, in a module whose ``hloforge.grid`` is ``array<i64: 2, 2>``::

    %s = "stablehlo.all_reduce"(%x) ({ add }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}

After, where IREE makes ``flow.collective.all_reduce`` on a ``flow.channel`` of it::

    %s = "stablehlo.all_reduce"(%x) ({ add }) {replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}

IREE's ranks are the numbers of the devices: the module tells it of as many replicas of one partition each, so that
groups of any mode become lists of devices, and replica and partition are computed of the rank. Members are along a
leading dimension, one array an operation. Computations that IREE does not know become exchanges and arithmetic
(``in_parts.py``).

IREE 3.13 takes a single group for all ranks in their order: where members have another one, blocks change positions.
Source: IREE's ConvertCollectives; XLA "AllReduce" and the other collectives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.computations import fill_region
from hloforge.dialect.element_types import mlir_type
from hloforge.dialect.emission import create, i32, i64, i64_matrix
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import location_of, operations
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import CUDA, Pass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.replicas.combine import COLLECTIVES, PERMUTE, check_size, combined, share
from hloforge.pipelines.replicas.grid import Grid, grid_of, groups_of, sources_of
from hloforge.pipelines.replicas.in_parts import in_parts, plain_computation, row
from hloforge.pipelines.replicas.names import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL

_IDS = frozenset({"stablehlo.replica_id", "stablehlo.partition_id"})
# The computations that IREE's channels know, and the elements that they carry.
_COMPUTE = {"add": ops.add, "multiply": ops.mul, "maximum": ops.max, "minimum": ops.min}
COMPUTATIONS = frozenset(_COMPUTE)
_CARRIED = frozenset(["s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "bf16", "f16", "f32", "f64"])


@register
@dataclass(frozen=True)
class LowerToChannels(Pass):
    """Rewrite collectives and device ids of a program for several devices; after ``normalize``.

    Raises (on run):
        UnsupportedError: groups do not fit the grid of the module, differ in size where that changes the result's,
            leave out devices, or have elements that no channel carries.
    """

    name: ClassVar[str] = "lower-to-channels"
    targets: ClassVar[frozenset[str]] = CUDA

    def run(self, module: ir.Module) -> None:
        grid = grid_of(module)
        if grid.devices == 1:
            return
        with in_context(module):
            for op in operations(module, {*COLLECTIVES, *_IDS}):
                with ir.InsertionPoint(op), op.location:
                    replace(op, _lowered(op, grid))
            module.operation.attributes["mhlo.num_replicas"] = i32(grid.devices)
            module.operation.attributes["mhlo.num_partitions"] = i32(1)


def _lowered(op: AnyOp, grid: Grid) -> list[Value]:
    if op.name in _IDS:
        return [_number(op, grid)]
    operands = [Value(operand) for operand in op.operands]
    if op.name == PERMUTE:
        pairs = i64_matrix([(source, target) for target, source in sources_of(op, grid).items()], 2)
        return [_emitted(op, x, x.dims, source_target_pairs=pairs) for x in operands]
    groups = groups_of(op, grid)
    _check_groups(op, groups, grid)
    members = len(groups[0])
    if members == 1 and len(groups) == grid.devices:
        return share(op, combined(op, [operands]), 0)

    def call(kind: str, arrays: Sequence[Value], sizes: Sequence[Sequence[int]], computation: str) -> list[Value]:
        pairs = zip(arrays, sizes, strict=True)
        return [_collective(op, kind, x, dims, computation, groups) for x, dims in pairs]

    if op.name == "stablehlo.collective_broadcast":
        gathered = call(ALL_GATHER, operands, [(members, *x.dims) for x in operands], "")
        return [row(x, 0) for x in gathered]
    return in_parts(op, operands, members, call, COMPUTATIONS)


def _check_groups(op: AnyOp, groups: Sequence[Sequence[int]], grid: Grid) -> None:
    if len({device for group in groups for device in group}) < grid.devices:
        raise _refused(op, "groups that leave out devices")
    plain = op.name == "stablehlo.all_reduce" and plain_computation(op) in COMPUTATIONS
    if len({len(group) for group in groups}) > 1 and not plain:
        raise _refused(op, "groups of several sizes")
    check_size(op, len(groups[0]))


def _collective(
    op: Any, kind: str, x: Value, sizes: Sequence[int], computation: str, groups: Sequence[Sequence[int]]
) -> Value:
    """A collective with the members along the leading dimension, as of ``in_parts``."""
    order = list(groups[0]) if len(groups) == 1 else list(range(len(groups[0])))
    ranks = i64_matrix([sorted(groups[0])] if len(groups) == 1 else groups, max(map(len, groups)))
    if kind == ALL_REDUCE:
        return _emitted(op, x, sizes, kind, computation, replica_groups=ranks)
    if kind == ALL_GATHER:
        single = ops.reshape(x, [1, *x.dims])
        return _in_order(_emitted(op, single, sizes, kind, replica_groups=ranks, all_gather_dim=i64(0)), order)
    by_rank = _in_order(x, [order.index(number) for number in range(len(order))])
    if kind == ALL_TO_ALL:
        places: dict[str, Any] = {"split_dimension": i64(0), "concat_dimension": i64(0), "split_count": i64(x.dims[0])}
        return _in_order(_emitted(op, by_rank, sizes, kind, replica_groups=ranks, **places), order)
    block = _emitted(op, by_rank, [1, *sizes], kind, computation, replica_groups=ranks, scatter_dimension=i64(0))
    return ops.reshape(block, sizes)


def _in_order(x: Value, order: Sequence[int]) -> Value:
    """Blocks along the leading dimension by their numbers."""
    if list(order) == list(range(x.dims[0])):
        return x
    return ops.concat_in_dim([ops.reshape(row(x, number), [1, *x.dims[1:]]) for number in order], 0)


def _emitted(
    op: Any, x: Value, sizes: Sequence[int], kind: str = "collective_permute", computation: str = "", **attributes: Any
) -> Value:
    """One operation for IREE, of elements that its channels carry: booleans as bytes."""
    element = x.element_type
    if element.name == "pred":
        x = ops.convert_element_type(x, "u8")
    if x.element_type.name not in _CARRIED:
        raise _refused(op, f"elements of type {element}")
    result = ir.RankedTensorType.get(list(sizes), mlir_type(x.element_type))
    made = create(f"stablehlo.{kind}", [x], [result], 1 if computation else 0, **attributes)
    if computation:
        scalar = ir.RankedTensorType.get([], mlir_type(x.element_type))
        fill_region(made.regions[0], [scalar, scalar], lambda a, b: [_COMPUTE[computation](a, b)])
    return ops.convert_element_type(Value(made.results[0]), element)


def _number(op: AnyOp, grid: Grid) -> Value:
    """The replica or partition, of the rank."""
    rank = Value(create("stablehlo.replica_id", [], [op.results[0].type], 0).results[0])
    count = ops.constant(grid.partitions, "u32")
    return rank / count if op.name == "stablehlo.replica_id" else rank % count


def _refused(op: AnyOp, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{op.name} with {what} goes by no channel of IREE",
        location=location_of(op),
        hint="fold the replicas into one program (--fold-replicas), or compile for the CPU",
    )
