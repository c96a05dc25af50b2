"""Programs whose operations IREE must run in the order in which they stand.

IREE 3.13 makes groups of operations that may run at once (``ScheduleConcurrency``), and leaves those alone that fit
into no group. An operation alone that reads an array ends up behind a group in which an update overwrites the array,
though it stands before the update: no value goes from one to the other. It then reads what the update wrote. Without
groups, operations run as they stand; so programs are compiled in which an update and a reader of the same array stand
beside each other. Arrays with readers behind an update have copies (``protect-updated``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import in_block, operations
from hloforge.pipelines.legalize.protect_updated import names_of, needs

_UPDATE, _SCATTER = "stablehlo.dynamic_update_slice", "stablehlo.scatter"
# Sorts and Fourier transforms lie where their operands were.
_WHOLE = frozenset({"stablehlo.sort", "stablehlo.fft"})
_DISPATCHES = frozenset({"flow.dispatch", "flow.dispatch.workgroups"})


def has_readers_beside_updates(module: Any) -> bool:
    """Whether something reads an array that something else overwrites, and neither needs the other's results."""
    in_place = operations(module, {_UPDATE, _SCATTER, *_WHOLE, *_DISPATCHES})
    return any(_has_reader_beside(op, number) for op in in_place for number in _overwritten(op))


def _overwritten(op: Any) -> Iterator[int]:
    """The operands in whose place results of an operation lie."""
    if op.name in _DISPATCHES:
        workload = op.attributes["operandSegmentSizes"][0]
        tied = [ir.IntegerAttr(number).value for number in op.attributes["tied_operands"]]
        yield from (workload + number for number in tied if number >= 0)
    else:
        yield from range(1 if op.name == _UPDATE else len(op.results))


def _has_reader_beside(op: Any, number: int) -> bool:
    names = names_of(op.operands[number])
    others = [use for name in names for use in name.uses if (use.owner.operation, use.operand_number) != (op, number)]
    block = names[0].owner if isinstance(names[0].owner, ir.Block) else names[0].owner.operation.block
    if block != op.block:
        return bool(others)
    return any(not needs(op, in_block(use.owner.operation, block)) for use in others)
