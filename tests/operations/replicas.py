"""Rows and malformed uses of collectives; rows have one replica, as reference engines do."""

from __future__ import annotations

from hloforge.dialect import ops
from tests.operations.row import Malformed, Row, varying

_ONE = [[0]]
_TYPES = frozenset({"pred", "f32"})
_MOVED = "the operation moves elements as they are: some types of each kind stand for all"

ROWS = (
    Row("ReplicaId", lambda: ops.replica_id(), expected=0),
    Row("PartitionId", lambda: ops.partition_id(), expected=0),
    Row("AllReduce", lambda x: ops.all_reduce(x, ops.add, _ONE), (varying(4),), on=_TYPES, reason=_MOVED),
    Row(
        "AllReduce",
        lambda x, y: ops.all_reduce(ops.tuple([x, y]), lambda a, b: ops.and_(a, b) if _is_pred(a) else a * b),
        (varying(4), varying(2, 3)),
        "tuple",
        on=_TYPES,
        reason=_MOVED,
    ),
    Row(
        "AllReduce",
        lambda x: ops.all_reduce(x, ops.max, _ONE, channel_id=1, use_global_device_ids=True),
        (varying(4),),
        "devices",
        on=frozenset({"f32"}),
        reason=_MOVED,
    ),
    Row("CrossReplicaSum", lambda x: ops.cross_replica_sum(x, _ONE), (varying(4),), on=_TYPES, reason=_MOVED),
    Row("AllGather", lambda x: ops.all_gather(x, -1, 1, _ONE), (varying(2, 3),), on=_TYPES, reason=_MOVED),
    Row(
        "AllGather",
        lambda x, y: ops.all_gather([x, y], 0, 1, _ONE),
        (varying(2, 3), varying(4, 1)),
        "tuple",
        on=_TYPES,
        reason=_MOVED,
    ),
    Row("AllToAll", lambda x: ops.all_to_all(x, 1, 0, 1, _ONE), (varying(2, 3),), on=_TYPES, reason=_MOVED),
    Row("AllToAll", lambda x: ops.all_to_all(x, 0, 0, 1), (varying(2, 3),), "no group", on=_TYPES, reason=_MOVED),
    Row(
        "ReduceScatter",
        lambda x: ops.reduce_scatter(x, ops.add, 1, 1, _ONE),
        (varying(2, 3),),
        on=_TYPES,
        reason=_MOVED,
    ),
    Row(
        "ReduceScatter",
        lambda x, y: ops.reduce_scatter([x, y], ops.add, 0, 1, _ONE),
        (varying(2, 3), varying(4)),
        "tuple",
        on=_TYPES,
        reason=_MOVED,
    ),
    Row("CollectivePermute", lambda x: ops.collective_permute(x, [(0, 0)]), (varying(4),), on=_TYPES, reason=_MOVED),
    Row(
        "CollectivePermute", lambda x: ops.collective_permute(x, []), (varying(4),), "nobody", on=_TYPES, reason=_MOVED
    ),
    Row(
        "CollectiveBroadcast",
        lambda x: ops.collective_broadcast(x, _ONE),
        (varying(4),),
        on=_TYPES,
        oracle=lambda x: x,
        reason=_MOVED,
    ),
)


def _is_pred(x: ops.Value) -> bool:
    return x.element_type.name == "pred"


MALFORMED = (
    Malformed("AllReduce", lambda p: ops.all_reduce(p("f32[2]"), ops.add, [[0, 0]]), "name a replica twice"),
    Malformed("AllReduce", lambda p: ops.all_reduce(p("f32[2]"), ops.add, [[0, 2]]), "leave out replica 1"),
    Malformed("AllReduce", lambda p: ops.all_reduce(p("f32[2]"), ops.add, [[0], []]), "an empty group"),
    Malformed("AllReduce", lambda p: ops.all_reduce(p("f32[2]"), ops.add, [[-1]]), "a negative number"),
    Malformed("AllReduce", lambda p: ops.all_reduce(p("f32[2]"), ops.add, [[0]], 0), "channel 0 must be a positive"),
    Malformed("AllReduce", lambda p: ops.all_reduce(p("f32[2]"), ops.add, [[0]], None, True), "needs channel_id"),
    Malformed("AllReduce", lambda p: ops.all_reduce(p("f32[2]"), ops.add, [], 1, True), "needs replica_groups"),
    Malformed("AllReduce", lambda p: ops.all_reduce([p("f32[2]"), p("s32[2]")], ops.add), "one element type"),
    Malformed("AllReduce", lambda p: ops.all_reduce(p("()"), ops.add), "at least one array"),
    Malformed("AllReduce", lambda p: ops.all_reduce(p("(f32[2], token[])"), ops.add), "not an element of shape token"),
    Malformed("AllReduce", lambda p: ops.all_reduce(p("f32[2]"), ops.lt), "returns (pred[]), where (f32[])"),
    Malformed("AllReduce", lambda p: (lambda y: ops.all_reduce(y, lambda a, b: y))(p("f32[]")), "from around it"),
    Malformed("CrossReplicaSum", lambda p: ops.cross_replica_sum(p("f32[2]"), [[0, 0]]), "name a replica twice"),
    Malformed("CrossReplicaSum", lambda p: ops.cross_replica_sum(p("()")), "at least one array"),
    Malformed("CrossReplicaSum", lambda p: ops.cross_replica_sum(p("token[]")), "not token"),
    Malformed("AllGather", lambda p: ops.all_gather(p("f32[2]"), 1, 2), "all_gather_dimension 1 is out of range"),
    Malformed("AllGather", lambda p: ops.all_gather(p("f32[2]"), 0, 0), "shard_count 0 must be positive"),
    Malformed("AllGather", lambda p: ops.all_gather(p("f32[2]"), 0, 3, [[0, 1]]), "must be the number of members"),
    Malformed("AllGather", lambda p: ops.all_gather(p("f32[2]"), 0, 2, [[0, 1], [2]]), "must have equal sizes"),
    Malformed("AllGather", lambda p: ops.all_gather([p("f32[2]"), p("f32[2,2]")], -1, 2), "means different dimensions"),
    Malformed("AllToAll", lambda p: ops.all_to_all(p("f32[2]"), 1, 0, 2), "split_dimension 1 is out of range"),
    Malformed("AllToAll", lambda p: ops.all_to_all(p("f32[2]"), 0, 1, 2), "concat_dimension 1 is out of range"),
    Malformed("AllToAll", lambda p: ops.all_to_all(p("f32[3]"), 0, 0, 2), "must be a multiple of 2"),
    Malformed(
        "AllToAll", lambda p: ops.all_to_all(p("f32[4]"), 0, 0, 2, [[0, 1, 2, 3]]), "must be the number of members"
    ),
    Malformed("AllToAll", lambda p: ops.all_to_all(p("f32[4]"), 0, 0, 0), "split_count 0 must be positive"),
    Malformed("ReduceScatter", lambda p: ops.reduce_scatter(p("f32[3]"), ops.add, 0, 2), "must be a multiple of 2"),
    Malformed("ReduceScatter", lambda p: ops.reduce_scatter(p("f32[2]"), ops.add, 1, 2), "is out of range"),
    Malformed("ReduceScatter", lambda p: ops.reduce_scatter(p("f32[2]"), ops.eq, 0, 2), "returns (pred[]), where"),
    Malformed("ReduceScatter", lambda p: ops.reduce_scatter(p("f32[4]"), ops.add, 0, 4, [[0, 1]]), "number of members"),
    Malformed("CollectivePermute", lambda p: ops.collective_permute(p("f32[2]"), [(0, 1), (0, 2)]), "a source twice"),
    Malformed("CollectivePermute", lambda p: ops.collective_permute(p("f32[2]"), [(0, 1), (2, 1)]), "a target twice"),
    Malformed("CollectivePermute", lambda p: ops.collective_permute(p("f32[2]"), [(0, -1)]), "is no pair of a source"),
    Malformed("CollectivePermute", lambda p: ops.collective_permute(p("f32[2]"), [(0, 1, 2)]), "(0, 1, 2) is no pair"),
    Malformed("CollectiveBroadcast", lambda p: ops.collective_broadcast(p("f32[2]"), []), "at least one group"),
    Malformed("CollectiveBroadcast", lambda p: ops.collective_broadcast(p("f32[2]"), [[1], [1]]), "a replica twice"),
    Malformed("CollectiveBroadcast", lambda p: ops.collective_broadcast(p("token[]"), [[0]]), "not token"),
    Malformed("CollectiveBroadcast", lambda p: ops.collective_broadcast(p("f32[2]"), [[0]], -1), "channel -1"),
)
