"""Communication between the replicas and partitions that run one program.

``replica_groups`` lists the members of each group in order; no group at all means one of all replicas. A ``channel_id``
makes the communication cross partitions: in the group of a replica is then every partition of it, or, with
``use_global_device_ids``, the groups name devices (``replica * partitions + partition``).

Source: XLA "ReplicaId", "AllReduce", "CrossReplicaSum", "AllGather", "AllToAll", "ReduceScatter", "CollectivePermute",
"CollectiveBroadcast"; StableHLO specification of the same names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hloforge.dialect.channels import channel, device_attributes, pairs, replica_group_matrix
from hloforge.dialect.computations import Computation, check_closed, trace_region
from hloforge.dialect.emission import create, emit, emit_all, i64, mlir_type_of, one_or_tuple, results_of
from hloforge.dialect.errors import OperationError
from hloforge.dialect.op import ARRAY, NOTHING, TUPLE, op
from hloforge.dialect.ops.elementwise_binary import add, or_
from hloforge.dialect.rules import dimension, same_element_type
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import TupleValue, Value

Groups = Sequence[Sequence[int]]


@op("ReplicaId", emits="stablehlo.replica_id", on=NOTHING)
def replica_id() -> Value:
    """The number of the replica that runs this program, a u32 scalar from 0.

    Example:
        >>> replica_id().shape
        u32[]
    """
    return emit("stablehlo.replica_id", [], Shape.array("u32"))


@op("PartitionId", emits="stablehlo.partition_id", on=NOTHING)
def partition_id() -> Value:
    """The number of the partition that runs this program, a u32 scalar from 0.

    Example:
        >>> partition_id().shape
        u32[]
    """
    return emit("stablehlo.partition_id", [], Shape.array("u32"))


@op("AllReduce", emits="stablehlo.all_reduce", on=ARRAY | TUPLE)
def all_reduce(
    operand: Value | Sequence[Value],
    computation: Computation,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> Value:
    """Combine the operands of all members of a group, element by element; each gets the result.

    Args:
        operand: an array, or several of one element type (a tuple), each of which is reduced.
        computation: from two scalars of the element type to one; associative and commutative.
        replica_groups: the groups, of any sizes.
        channel_id: a positive number that names the communication across partitions.
        use_global_device_ids: the groups name devices.

    Returns:
        An array or tuple of the operand's shape.

    Raises:
        OperationError: there is no operand, element types differ, the groups do not hold each replica once, the
            computation is not one of two such scalars, or device ids come without a channel or groups.

    Example:
        >>> all_reduce(constant([1.0, 2.0], "f32"), add, [[0]]).shape
        f32[2]
    """
    operands = _operands(operand)
    same_element_type(*operands)
    attributes = {
        "replica_groups": replica_group_matrix(replica_groups, equal=False),
        **device_attributes(replica_groups, channel_id, use_global_device_ids),
    }
    return _wrapped(
        operand, _reducing("stablehlo.all_reduce", operands, [v.shape for v in operands], computation, attributes)
    )


@op("CrossReplicaSum", emits="stablehlo.all_reduce", on=ARRAY | TUPLE)
def cross_replica_sum(operand: Value | Sequence[Value], replica_groups: Groups = ()) -> Value:
    """AllReduce by addition; for pred by logical or.

    Operands, result and errors as of ``all_reduce``.

    Example:
        >>> cross_replica_sum(constant([1, 2], "s32"), [[0]]).shape
        s32[2]
    """
    first, *_ = _operands(operand)
    return all_reduce(operand, or_ if first.element_type.name == "pred" else add, replica_groups)


@op("AllGather", emits="stablehlo.all_gather", on=ARRAY | TUPLE)
def all_gather(
    operand: Value | Sequence[Value],
    all_gather_dimension: int,
    shard_count: int,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> Value:
    """Concatenate the operands of all members of a group, in the group's order; each gets the result.

    Args:
        operand: an array, or several.
        all_gather_dimension: the dimension that grows; negative ones count from the last.
        shard_count: the number of members of each group.
        replica_groups: the groups, of equal sizes.
        channel_id, use_global_device_ids: as of ``all_reduce``.

    Returns:
        Arrays in which the dimension is ``shard_count`` times as large.

    Raises:
        OperationError: there is no such dimension, the groups do not have ``shard_count`` members or do not hold each
            replica once, or device ids come without a channel or groups.

    Example:
        >>> all_gather(constant([1.0, 2.5], "f32"), 0, 2, [[0, 1]]).shape
        f32[4]
    """
    operands = _operands(operand)
    _check_count("shard_count", shard_count, replica_groups, channel_id, use_global_device_ids)
    grown = [dimension(all_gather_dimension, value.rank, "all_gather_dimension") for value in operands]
    if len(set(grown)) > 1:
        raise OperationError(f"all_gather_dimension {all_gather_dimension} means different dimensions of the operands")
    shapes = [_scaled(value.shape, grown[0], shard_count) for value in operands]
    results = emit_all(
        "stablehlo.all_gather",
        operands,
        shapes,
        all_gather_dim=i64(grown[0]),
        replica_groups=replica_group_matrix(replica_groups, equal=True),
        **device_attributes(replica_groups, channel_id, use_global_device_ids),
    )
    return _wrapped(operand, results)


@op("AllToAll", emits="stablehlo.all_to_all", on=ARRAY)
def all_to_all(
    operand: Value,
    split_dimension: int,
    concat_dimension: int,
    split_count: int,
    replica_groups: Groups = (),
    channel_id: int | None = None,
) -> Value:
    """Cut the operand into as many blocks as a group has members, send block i to member i, and concatenate what
    arrives in the group's order.

    Args:
        split_dimension: along which the operand is cut; negative ones count from the last.
        concat_dimension: along which the blocks are joined.
        split_count: the number of blocks, and of members of each group.
        replica_groups: the groups, of equal sizes; no group means replicas 0 to ``split_count - 1``.
        channel_id: as of ``all_reduce``.

    Returns:
        An array in which the split dimension is smaller and the other one larger by ``split_count``.

    Raises:
        OperationError: there is no such dimension, its size is no multiple of ``split_count``, or the groups do not
            have that many members or do not hold each replica once.

    Example:
        >>> all_to_all(constant(np.zeros((4, 16), np.float32)), 1, 0, 4).shape
        f32[16,4]
    """
    # StableHLO's verifier divides by the size of a group, so that "all replicas" are listed.
    groups = replica_groups or [list(range(split_count))]
    _check_count("split_count", split_count, groups, channel_id, False)
    split = dimension(split_dimension, operand.rank, "split_dimension")
    joined = dimension(concat_dimension, operand.rank, "concat_dimension")
    sizes = _scaled(_divided(operand.shape, split, split_count), joined, split_count)
    return emit(
        "stablehlo.all_to_all",
        [operand],
        replace(sizes, layout=None),
        split_dimension=i64(split),
        concat_dimension=i64(joined),
        split_count=i64(split_count),
        replica_groups=replica_group_matrix(groups, equal=True),
        channel_handle=channel(channel_id),
    )


@op("ReduceScatter", emits="stablehlo.reduce_scatter", on=ARRAY | TUPLE)
def reduce_scatter(
    operand: Value | Sequence[Value],
    computation: Computation,
    scatter_dimension: int,
    shard_count: int,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> Value:
    """AllReduce, of whose result member i of a group gets the i-th of equal blocks.

    Args:
        operand: an array, or several (one operation each).
        computation: as of ``all_reduce``.
        scatter_dimension: along which the result is cut; negative ones count from the last.
        shard_count: the number of blocks, and of members of each group.
        replica_groups: the groups, of equal sizes.
        channel_id, use_global_device_ids: as of ``all_reduce``.

    Returns:
        Arrays in which the dimension is smaller by ``shard_count``.

    Raises:
        OperationError: as of ``all_gather`` and ``all_reduce``, or the dimension's size is no multiple of
            ``shard_count``.

    Example:
        >>> reduce_scatter(constant([1.0, 2.25], "f32"), add, 0, 2, [[0, 1]]).shape
        f32[1]
    """
    operands = _operands(operand)
    same_element_type(*operands)
    _check_count("shard_count", shard_count, replica_groups, channel_id, use_global_device_ids)
    cut = [dimension(scatter_dimension, value.rank, "scatter_dimension") for value in operands]
    shapes = [_divided(value.shape, d, shard_count) for value, d in zip(operands, cut, strict=True)]
    groups = replica_group_matrix(replica_groups, equal=True)
    devices = device_attributes(replica_groups, channel_id, use_global_device_ids)
    results: list[Value] = []
    for value, d, shape in zip(operands, cut, shapes, strict=True):
        attributes = {"scatter_dimension": i64(d), "replica_groups": groups, **devices}
        results += _reducing("stablehlo.reduce_scatter", [value], [shape], computation, attributes)
    return _wrapped(operand, results)


@op("CollectivePermute", emits="stablehlo.collective_permute", on=ARRAY)
def collective_permute(
    operand: Value, source_target_pairs: Sequence[Sequence[int]], channel_id: int | None = None
) -> Value:
    """Send each replica's operand to another one; a replica to which nobody sends gets zeros.

    Args:
        source_target_pairs: ``(source, target)``; no replica sends or receives twice.
        channel_id: a positive number: the pairs then name partitions.

    Returns:
        An array of the operand's shape.

    Raises:
        OperationError: an entry is no pair of non-negative numbers, or a source or target is in two of them.

    Example:
        >>> collective_permute(constant([1, 2], "s32"), [(0, 0)]).shape
        s32[2]
    """
    return emit(
        "stablehlo.collective_permute",
        [operand],
        operand.shape,
        source_target_pairs=pairs(source_target_pairs, distinct=True),
        channel_handle=channel(channel_id),
    )


@op("CollectiveBroadcast", emits="stablehlo.collective_broadcast", on=ARRAY)
def collective_broadcast(operand: Value, replica_groups: Groups, channel_id: int | None = None) -> Value:
    """Send the operand of the first member of each group to all of them; replicas in no group get zeros.

    Args:
        replica_groups: the groups; not every replica has to be in one.
        channel_id: a positive number that names the communication across partitions.

    Returns:
        An array of the operand's shape.

    Raises:
        OperationError: there is no group, or a replica is in two of them.

    Example:
        >>> collective_broadcast(constant([1, 2], "s32"), [[0]]).shape
        s32[2]
    """
    if not replica_groups:
        raise OperationError("it needs at least one group", hint="its first member is the one that sends")
    return emit(
        "stablehlo.collective_broadcast",
        [operand],
        operand.shape,
        replica_groups=replica_group_matrix(replica_groups, equal=False, every=False),
        channel_handle=channel(channel_id),
    )


def _operands(operand: Value | Sequence[Value]) -> list[Value]:
    """The arrays of an operand."""
    if isinstance(operand, Value) and not isinstance(operand, TupleValue):
        return [operand]
    values = list(operand)
    if not values:
        raise OperationError("it needs at least one array")
    for value in values:
        if not value.shape.is_array:
            raise OperationError(f"it takes arrays, not an element of shape {value.shape}")
    return values


def _wrapped(operand: Value | Sequence[Value], results: Sequence[Value]) -> Value:
    """The results in the form of the operand: a tuple for a tuple of one array as well."""
    return TupleValue(results) if isinstance(operand, TupleValue) else one_or_tuple(results)


def _reducing(
    name: str, operands: Sequence[Value], shapes: Sequence[Shape], computation: Computation, attributes: dict[str, Any]
) -> list[Value]:
    scalar = Shape.array(operands[0].element_type)
    reduction = create(name, operands, map(mlir_type_of, shapes), 1, **attributes)
    trace_region(reduction, 0, [scalar, scalar], computation, [scalar])
    check_closed(reduction)
    return results_of(reduction, shapes)


def _check_count(name: str, count: int, groups: Groups, channel_id: int | None, by_device: bool) -> None:
    if count < 1:
        raise OperationError(f"{name} {count} must be positive")
    # Across partitions, a group of replicas has that many members for each partition.
    if groups and (channel_id is None or by_device) and len(groups[0]) != count:
        raise OperationError(f"{name} {count} must be the number of members of each group, {len(groups[0])}")


def _scaled(shape: Shape, number: int, factor: int) -> Shape:
    sizes = [size * factor if d == number and size > 0 else size for d, size in enumerate(shape.dimensions)]
    return replace(shape, dimensions=tuple(sizes))


def _divided(shape: Shape, number: int, count: int) -> Shape:
    size = shape.dimensions[number]
    if size > 0 and size % count:
        raise OperationError(f"dimension {number} of {shape} must be a multiple of {count}")
    sizes = [size // count if d == number and size > 0 else size for d, size in enumerate(shape.dimensions)]
    return replace(shape, dimensions=tuple(sizes))
