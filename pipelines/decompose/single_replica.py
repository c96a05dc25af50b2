"""``decompose-single-replica``: collectives of a program that runs as one replica and one partition.

Before::

    %id = stablehlo.replica_id : tensor<ui32>
    %y = "stablehlo.all_reduce"(%x) ({...}) {replica_groups = dense<0> : tensor<1x1xi64>}

After: ``%id`` is 0 and ``%y`` is ``%x``. Groups with more than one member are left for the audit to refuse.

Source: XLA "AllReduce", "AllGather", "ReduceScatter", "AllToAll", "CollectivePermute", "ReplicaId".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.constants import constant, full
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.replicas.grid import grid_of

_GROUPED = tuple(
    f"stablehlo.{name}" for name in ("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "reduce_scatter")
)


@pattern("stablehlo.replica_id", "stablehlo.partition_id")
def only_id(op: ir.Operation) -> Replacement:
    """The only replica is number 0."""
    return constant(0, "u32")


@pattern(*_GROUPED)
def only_member(op: ir.Operation) -> Replacement:
    """A collective over groups of one is the identity: it combines, gathers or scatters one replica's data.

    A broadcast to groups without this replica leaves it zeros.
    """
    groups = op.attributes["replica_groups"]
    shape = ir.ShapedType(groups.type).shape
    members = shape[1] if len(shape) == 2 else 0
    if members > 1:
        return NoMatch(f"groups of {members} replicas")
    if op.name == "stablehlo.collective_broadcast" and 0 not in integers(op, "replica_groups"):
        return [full(Value(operand), 0) for operand in op.operands]
    if [value.type for value in op.operands] != [value.type for value in op.results]:
        return NoMatch("its result has more parts than the one replica gives")
    return [Value(operand) for operand in op.operands]


@pattern("stablehlo.collective_permute")
def only_source(op: ir.Operation) -> Replacement:
    """Replica 0 receives from itself, or zeros if nobody sends to it."""
    pairs = integers(op, "source_target_pairs")
    if any(pairs):
        return NoMatch("it names a replica other than 0")
    operand = Value(op.operands[0])
    return operand if pairs else full(operand, 0)


@register
@dataclass(frozen=True)
class DecomposeSingleReplica(PatternPass):
    """Replace replica ids and the collectives whose groups have one member, in a program of one device."""

    name: ClassVar[str] = "decompose-single-replica"
    patterns: ClassVar[tuple[Pattern, ...]] = (*only_id, *only_member, *only_source)

    def run(self, module: ir.Module) -> None:
        if grid_of(module).devices == 1:
            super().run(module)
