"""Groups of ``all-to-all`` without ``replica_groups``, which means all replicas, or all partitions, in one group.

Before: ``all-to-all(x), dimensions={0}``; after: ``all-to-all(x), dimensions={0}, replica_groups={{0}}``, and the
number of the instruction, so that the reader marks the operation: how many members there are is known with the devices
that the program is compiled for (``pipelines/replicas/grid.py``).

StableHLO says "all" by an empty list as HLO does, except for this operation, whose ``split_count`` is the number of
members. All-to-alls of tuples have as many members as operands, and collectives of other kinds may leave groups out.
Field numbers as found in jaxlib 0.10.2's protos: HloInstructionProto, CollectiveDeviceListProto.
"""

from __future__ import annotations

from itertools import count

from hloforge.dialect.protobuf import encode, fields, first, pack, rewrite
from hloforge.importers.hlo_proto import COMPUTATIONS, INSTRUCTIONS

_OPCODE, _DIMENSIONS = 2, 14
# Groups in the forms of several years; the second is the one that is written.
_OLD_GROUPS, _GROUPS, _IOTA_GROUPS = 49, 87, 92
_GROUP, _MEMBERS = 1, 1
_NAME = b"all-to-all"


def with_named_members(module: bytes) -> tuple[bytes, frozenset[int]]:
    """The ``HloModuleProto`` whose every ``all-to-all`` of one array has groups.

    Returns:
        The module, and the instructions that got one, counted over the whole module.

    Raises:
        ValueError: the bytes are not a module.
    """
    if _NAME not in module:
        return module, frozenset()
    numbers, named = count(), set[int]()

    def visit(instruction: memoryview) -> bytes | memoryview:
        number = next(numbers)
        if not _means_all(instruction):
            return instruction
        named.add(number)
        kept = [instruction[one.start : one.end] for one in fields(instruction) if one.number != _GROUPS]
        return b"".join([*kept, encode(_GROUPS, encode(_GROUP, encode(_MEMBERS, pack([0]))))])

    made = rewrite(memoryview(module), COMPUTATIONS, lambda one: rewrite(one, INSTRUCTIONS, visit))
    return made, frozenset(named)


def _means_all(instruction: memoryview) -> bool:
    opcode = first(instruction, _OPCODE)
    if opcode is None or bytes(opcode.payload) != _NAME or first(instruction, _DIMENSIONS) is None:
        return False
    given = (first(instruction, number) for number in (_OLD_GROUPS, _GROUPS, _IOTA_GROUPS))
    return not any(entry is not None and len(entry.payload) for entry in given)
