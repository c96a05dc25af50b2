"""``combine-all-reduces``: all_reduces that do not depend on each other are one of several arrays.

Before::

    %s = "stablehlo.all_reduce"(%x) ({ add }) {replica_groups = dense<[[0, 1]]>}
    %u = stablehlo.negate %s
    %t = "stablehlo.all_reduce"(%y) ({ add }) {replica_groups = dense<[[0, 1]]>}

After::

    %st:2 = "stablehlo.all_reduce"(%x, %y) ({ add }) {replica_groups = dense<[[0, 1]]>}
    %u = stablehlo.negate %st#0

Devices then wait for each other once. XLA's partitioner makes an all_reduce for each array, such as the gradient of a
parameter; XLA combines them later, after the module was taken from it. Only those of the same groups, of one plain
operation (a sum, a maximum) on one element type are combined. Source: XLA "AllReduceCombiner".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hloforge.dialect.computations import fill_region
from hloforge.dialect.emission import create
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.regions import inline_region, read_values
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.replicas.combine import plain_operation
from hloforge.pipelines.replicas.grid import channel_of

_ALL_REDUCE = "stablehlo.all_reduce"
# As many arrays as XLA combines.
_MOST = 256
# What keeps its order: functions of the host, transfers, and functions that may call them.
_EFFECTS = frozenset(
    {
        "stablehlo.custom_call",
        "stablehlo.infeed",
        "stablehlo.outfeed",
        "stablehlo.recv",
        "stablehlo.rng",
        "stablehlo.send",
        "func.call",
    }
)


@register
@dataclass(frozen=True)
class CombineAllReduces(Pass):
    """Combine independent all_reduces of a block."""

    name: ClassVar[str] = "combine-all-reduces"
    needs: ClassVar[frozenset[str]] = frozenset({_ALL_REDUCE})

    def run(self, module: ir.Module) -> None:
        combine_all_reduces(module)


def combine_all_reduces(module: ir.Module) -> None:
    """Combine independent all_reduces in every block of a module."""
    with in_context(module):
        found: dict[Hashable, list[AnyOp]] = {}
        for op in operations(module, {_ALL_REDUCE}):
            if kind := _kind(op):
                found.setdefault((op.block, *kind), []).append(op)
        for alike in found.values():
            if len(alike) > 1:
                for group in list(_groups(alike)):
                    group.combine()


def _kind(op: AnyOp) -> tuple[Hashable, ...]:
    """What combined all_reduces have in common; nothing if an operation is combined with no other."""
    computation = plain_operation(op.regions[0])
    if not computation:
        return ()
    elements = {str(ir.ShapedType(value.type).element_type) for value in (*op.operands, *op.results)}
    scalar = str(op.regions[0].blocks[0].arguments[0].type)
    # The number of a channel tells programs of several modules apart; that there is one says whom a group names.
    others = sorted((name, str(op.attributes[name])) for name in op.attributes if name != "channel_handle")
    return computation, scalar, *sorted(elements), channel_of(op) > 0, *others


@dataclass
class _Group:
    """All_reduces that are to be one, and what stands between them.

    Attributes:
        members: in their order.
        readers: the operations after the first member that depend on one, in their order.
        moved: how many of these stand before the last member.
    """

    members: list[AnyOp] = field(default_factory=list)
    readers: list[AnyOp] = field(default_factory=list)
    moved: int = 0
    _values: set[Any] = field(default_factory=set)

    def reads(self, op: AnyOp) -> bool:
        """Whether an operation depends on a member."""
        read = read_values(op) if len(op.regions) else op.operands
        return bool(self._values) and any(value in self._values for value in read)

    def takes(self, op: AnyOp) -> bool:
        """Whether an all_reduce can be computed with the members: it needs none, and all others can wait for it."""
        arrays = sum(len(member.operands) for member in (*self.members, op))
        return arrays <= _MOST and not self.reads(op) and not any(map(_has_effects, self.readers[self.moved :]))

    def add(self, op: AnyOp) -> None:
        self.members.append(op)
        self.moved = len(self.readers)
        self._values.update(op.results)

    def add_reader(self, op: AnyOp) -> None:
        self.readers.append(op)
        self._values.update(op.results)

    def combine(self) -> None:
        """Replace the members by one operation at the last one's place, and move what reads them behind it."""
        if len(self.members) == 1:
            return
        first, last = self.members[0], self.members[-1]
        operands = [Value(operand) for member in self.members for operand in member.operands]
        results = [result for member in self.members for result in member.results]
        attributes = {name: first.attributes[name] for name in first.attributes}
        with ir.InsertionPoint(last), first.location:
            made = create(_ALL_REDUCE, operands, [result.type for result in results], 1, **attributes)
            region = first.regions[0]
            types = [argument.type for argument in region.blocks[0].arguments]
            fill_region(made.regions[0], types, lambda *scalars: inline_region(region, scalars))
        for old, new in zip(results, made.results, strict=True):
            old.replace_all_uses_with(new)
        after = made
        for reader in self.readers[: self.moved]:
            reader.move_after(after)
            after = reader
        for member in self.members:
            member.erase()


def _groups(alike: Sequence[AnyOp]) -> Iterator[_Group]:
    """Groups of a block's all_reduces of one kind; one that cannot join its predecessors begins another."""
    wanted = {*alike}
    group = _Group()
    for op in [op.operation for op in alike[0].operation.block.operations]:
        if op in wanted:
            if not group.takes(op):
                yield group
                group = _Group()
            group.add(op)
        elif group.reads(op):
            group.add_reader(op)
    yield group


def _has_effects(op: AnyOp) -> bool:
    return op.name in _EFFECTS or bool(operations(op, _EFFECTS))
