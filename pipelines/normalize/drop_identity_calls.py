"""``drop-identity-calls``: custom calls that only annotate their operand.

Before::

    %r = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{devices=[2]0,1}"} : (tensor<4xf32>) -> tensor<4xf32>

After: uses of ``%r`` are uses of ``%x``. The value is a whole array in the view that a program of one device has of it.
Source: XLA "SPMD partitioner", "Host offloading"; Shardy "MHLO round trip".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import string_attribute
from hloforge.dialect.tuples import members
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.normalize.unwrap_async import CONTROL_DEPENDENCY

# Annotations of where an array lies: a sharding, a layout, a memory.
_ANNOTATIONS = frozenset(
    {
        "Sharding",
        "LayoutConstraint",
        "annotate_device_placement",
        "MoveToHost",
        "MoveToDevice",
        "PinToDevice",
        "PinToDeviceSram",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.PropagationBarrier",
        "xla.sdy.ShardingGroup",
        "InspectSharding",
        "ShardBarrierFrom",
        "ShardBarrierTo",
        # Where XLA outlines a block.
        "__xla_internal_call_marker_before",
        "__xla_internal_call_marker_after",
        # What XLA schedules first.
        CONTROL_DEPENDENCY,
    }
)
# The borders of a manually partitioned region: identities when there is one partition.
_BORDERS = frozenset(
    {
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "xla.sdy.GlobalToLocalShape",
        "xla.sdy.LocalToGlobalShape",
    }
)
IDENTITIES = _ANNOTATIONS | _BORDERS


@pattern("stablehlo.custom_call", "mhlo.custom_call")
def identity_call(op: ir.Operation) -> Replacement:
    """``custom_call @Sharding(x)`` -> x, for every annotation; results and operands of the same types."""
    target = string_attribute(op, "call_target_name")
    if target not in IDENTITIES:
        return NoMatch(f"@{target} computes something")
    # A tuple comes whole, and goes as its arrays (``flatten-tuples``).
    operands = [member for operand in op.operands for member in members(operand)][: len(op.results)]
    if len(operands) < len(op.results):
        return NoMatch(f"@{target} has more results than operands")
    changed = [(o.type, r.type) for o, r in zip(operands, op.results, strict=True) if o.type != r.type]
    if not changed:
        return [Value(operand) for operand in operands]
    if target in _ANNOTATIONS:
        return NoMatch(f"@{target} changes the type")
    raise UnsupportedError(
        f"@{target} cuts {changed[0][0]} into {changed[0][1]}: this program is partitioned over several devices",
        hint="run it on as many devices as it is for: --partitions; or export it for a mesh of size 1",
    )


@register
@dataclass(frozen=True)
class DropIdentityCalls(PatternPass):
    """Remove custom calls that only annotate their operand.

    Raises (on run):
        UnsupportedError: a border of a partitioned region that changes the shape.
    """

    name: ClassVar[str] = "drop-identity-calls"
    requires: ClassVar[Facts] = frozenset({Fact.NO_TUPLES, Fact.ONE_FUNCTION})
    patterns: ClassVar[tuple[Pattern, ...]] = identity_call
