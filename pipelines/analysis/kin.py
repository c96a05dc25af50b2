"""Which values IREE may find to be one array: what is computed from each other, or from the same.

IREE knows many identities (additions of zero, choices by known flags, slices of broadcasts, reductions of nothing),
merges what is computed twice after it has applied them, and forgets barriers at last. Rather than to know all of them,
two values are *kin* here if one is computed from the other, or both from a third one, constants aside; those of as
many bytes may be one array.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op, operations
from hloforge.dialect.traits import Kind, of_kind
from hloforge.dialect.values import Value

_BARRIER = "stablehlo.optimization_barrier"
# Updates write an array of their own; loops and branches are asked apart.
_MAY_FOLD = of_kind(Kind.ELEMENTWISE, Kind.MOVES, Kind.COMBINES, Kind.ORDERS) | {_BARRIER}
_MAKES = of_kind(Kind.MAKES)


@dataclass
class Kin:
    """Values in groups, each of which may be one array where sizes agree.

    Attributes:
        leaders: another value of a value's group, whose own leader is followed in turn.
        groups: the values of a leader's group, if there are several.
    """

    leaders: dict[SSAValue, SSAValue] = field(default_factory=dict)
    groups: dict[SSAValue, list[SSAValue]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, module: ir.Module) -> Kin:
        """The groups of a module's values."""
        kin = cls()
        for op in operations(module, _MAY_FOLD):
            read = [operand for operand in op.operands if defining_op(operand, *_MAKES) is None]
            for value in read:
                for result in op.results:
                    kin.leaders[kin._leader(value)] = kin._leader(result)
        for value in tuple(kin.leaders):
            kin.groups[kin._leader(value)].append(value)
        return kin

    def equals(self, value: SSAValue) -> Iterator[SSAValue]:
        """A value, and those that may be the same array."""
        yield value
        size = _bytes_of(value)
        for one in self.groups.get(self._leader(value), ()):
            if one != value and _bytes_of(one) == size:
                yield one

    def _leader(self, value: SSAValue) -> SSAValue:
        passed = []
        while (leader := self.leaders.setdefault(value, value)) != value:
            passed.append(value)
            value = leader
        for one in passed:
            self.leaders[one] = value
        return value


def _bytes_of(value: SSAValue) -> int | None:
    shape = Value(value).shape
    return shape.byte_size if shape.is_static else None
